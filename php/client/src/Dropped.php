<?php

/**
 * What came of an invalidation.
 *
 * A value, made from Pagewell's answer. Nothing dropped is no error: nobody had asked for the page.
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
