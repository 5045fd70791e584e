<?php

/**
 * The control interface of Pagewell, as far as a site needs it: purging pages.
 *
 * Two implementations: SocketControl calls Pagewell, RecordingControl records calls, for tests. An
 * implementation returns only after the pages are purged, and throws if that is unknown.
 */

declare(strict_types=1);

namespace Pagewell;

/** Purges pages in Pagewell. */
interface Control
{
    /**
     * Purges pages, and returns after that is done.
     *
     * @throws ControlAway       Pagewell cannot be reached, or did not answer in time: a retry may help
     * @throws ControlRefused    Pagewell refused the call: the token, the site, the call itself
     * @throws ControlUnreadable what answered is not Pagewell
     * @throws InvalidControl    the address or the token file cannot be used
     */
    public function invalidate(Invalidation $invalidation): Dropped;
}
