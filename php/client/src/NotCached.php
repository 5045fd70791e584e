<?php

/**
 * Says beside a controller that its pages are not to be kept, and why.
 *
 *     #[NotCached('everybody gets a pick of their own')]
 *
 * A page that says nothing is not kept either. This tells a decision from an oversight: the
 * dependency list fails where a controller says nothing at all.
 */

declare(strict_types=1);

namespace Pagewell;

/** A controller whose pages are made anew for everybody. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class NotCached
{
    public function __construct(public readonly string $why)
    {
    }
}
