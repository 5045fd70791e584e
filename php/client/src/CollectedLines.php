<?php

/**
 * The field lines of a response that PHP does not send itself: they are collected until something takes them.
 */

declare(strict_types=1);

namespace Pagewell;

/** @internal The lines of a ResponseChannel, and their set(). */
trait CollectedLines
{
    /** @var list<string> */
    private array $lines = [];

    public function set(array $lines, ?string $replace = null): void
    {
        $other = static fn (string $line): bool => $replace === null || strcasecmp(explode(':', $line, 2)[0], $replace) !== 0;
        $this->lines = [...array_values(array_filter($this->lines, $other)), ...$lines];
    }
}
