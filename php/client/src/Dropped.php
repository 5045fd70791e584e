<?php

/**
 * The result of an invalidation.
 *
 * A value object, created from Pagewell's response. No purged page is not an error: the page was
 * not cached.
 */

declare(strict_types=1);

namespace Pagewell;

/** Pagewell's answer. */
final class Dropped
{
    /**
     * @param int $pages  how many pages left the store, each variant counted
     * @param int $number the change's number, which only grows
     */
    public function __construct(public readonly int $pages = 0, public readonly int $number = 0)
    {
    }

    /** Both together. */
    public function and(self $other): self
    {
        return new self($this->pages + $other->pages, max($this->number, $other->number));
    }
}
