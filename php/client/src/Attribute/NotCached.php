<?php

/**
 * Declares at a controller that its pages are not cached, and why.
 *
 *     #[NotCached('every visitor gets a random article')]
 *
 * A page without a declaration is not cached either. The attribute marks it as a decision: the
 * dependency list fails for a controller without any declaration.
 */

declare(strict_types=1);

namespace Pagewell\Attribute;

/** A controller whose pages are rendered for each request. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class NotCached
{
    public function __construct(public readonly string $why)
    {
    }
}
