<?php

/**
 * The control interface of Pagewell, as far as a site needs it: purging pages.
 *
 * Two implementations: SocketClient calls Pagewell, Testing\RecordingClient records calls, for tests. An
 * implementation returns only after the pages are purged, and throws if that is unknown.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Exception\UnreadableResponse;

/** Purges pages in Pagewell. */
interface InvalidationClient
{
    /**
     * Purges pages, and returns after that is done.
     *
     * @throws PagewellUnreachable   Pagewell cannot be reached, or did not answer in time: a retry may help
     * @throws InvalidationRefused   Pagewell refused the call: the token, the site, the call itself
     * @throws UnreadableResponse    what answered is not Pagewell
     * @throws InvalidConfiguration  the address or the token file cannot be used
     */
    public function invalidate(Invalidation $invalidation): InvalidationResult;
}
