<?php

/**
 * Implemented by a controller whose pages may be kept.
 *
 * Pages of a controller that does not implement it are never stored: forgetting this costs
 * speed, and never shows anybody an outdated page.
 */

declare(strict_types=1);

namespace News;

/** Says what its pages are made from. */
interface Declares
{
    /** Calls Pagewell\uses() for whatever the page that is asked for is made from. */
    public function madeFrom(Request $request): void;
}
