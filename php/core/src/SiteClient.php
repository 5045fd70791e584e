<?php

/**
 * A client of the control interface that is bound to one site.
 *
 * Calls that wait in an outbox keep that site, and the command for an operator names it.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** Knows the site that its calls are for. */
interface SiteClient extends InvalidationClient
{
    /** Returns the host of the site; null means every site. */
    public function site(): ?string;
}
