<?php

/**
 * Declares at a controller the maximum TTL of its pages, even if their data does not change.
 *
 *     #[Uses('news'), FreshFor(86_400)]
 *     #[FreshFor(60)]                      by TTL only
 */

declare(strict_types=1);

namespace Pagewell\Attribute;

/** The maximum TTL of a controller's pages. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class FreshFor
{
    /** @param int $seconds zero or more */
    public function __construct(public readonly int $seconds)
    {
    }
}
