<?php

/**
 * Says beside a controller how long its pages hold at most, whether or not their data has changed.
 *
 *     #[Uses('news'), FreshFor(86_400)]
 *     #[FreshFor(60)]                      by time alone
 */

declare(strict_types=1);

namespace Pagewell;

/** How long a controller's pages hold. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class FreshFor
{
    /** @param int $seconds zero or more */
    public function __construct(public readonly int $seconds)
    {
    }
}
