<?php

/**
 * The control interface of Pagewell, as far as a site needs it: dropping pages.
 *
 * Two forms: SocketControl calls Pagewell, RecordingControl keeps what it is told, for tests.
 * Whoever implements it returns only when the pages are gone, and throws when that is not known.
 */

declare(strict_types=1);

namespace Pagewell;

/** Tells Pagewell what to drop. */
interface Control
{
    /**
     * Drops pages, and returns when that is done.
     *
     * @throws ControlAway       Pagewell cannot be reached, or did not answer in time: a retry may help
     * @throws ControlRefused    Pagewell refused the call: the token, the site, the call itself
     * @throws ControlUnreadable what answered is not Pagewell
     * @throws InvalidControl    the address or the token file cannot be used
     */
    public function invalidate(Invalidation $invalidation): Dropped;
}
