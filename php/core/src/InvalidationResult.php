<?php

/**
 * The result of an invalidation.
 *
 * A value object, created from Pagewell's response. No purged page is not an error: the page was
 * not cached.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** The response of the control interface. */
final class InvalidationResult
{
    /**
     * @param int $pages  number of purged pages; each variant counts
     * @param int $number the number of the change, which only increases
     */
    public function __construct(public readonly int $pages = 0, public readonly int $number = 0)
    {
    }

    /** Adds up two results. */
    public function and(self $other): self
    {
        return new self($this->pages + $other->pages, max($this->number, $other->number));
    }
}
