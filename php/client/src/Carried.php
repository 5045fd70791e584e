<?php

/**
 * What the response says has changed: on the wire from the moment it is said.
 *
 *     few tags                       all lines are written anew with each change
 *     more than TOGETHER             what is new, and nothing else, becomes lines of its own; each
 *                                    TOGETHER-th time, and whenever tags have given way, all lines are
 *                                    written anew
 *     the header section is sent     all lines are written anew
 *
 * So a response says everything at any time, however its script ends, and thousands of changes do not
 * take the square of their number.
 */

declare(strict_types=1);

namespace Pagewell;

/** Puts changes onto the response. */
final class Carried
{
    private const FIELD = 'Cache-Group-Invalidation';

    private const TOGETHER = 64;

    private Changes $changes;

    /** lines since all of them were written */
    private int $single = 0;

    /** @var array<string, true> the tags in the lines */
    private array $written = [];

    public function __construct(private readonly Wire $wire)
    {
        $this->changes = new Changes();
    }

    /** The response says these too. */
    public function add(Changes $more): void
    {
        [$bytes, $widenings] = [$this->changes->bytes(), $this->changes->widenings()];
        $this->changes->add($more);
        $narrow = $this->changes->widenings() === $widenings;
        $many = $this->changes->count() > self::TOGETHER;
        if ($narrow && $many && $this->changes->bytes() === $bytes) {
            return;
        }
        if (!$narrow || !$many || ++$this->single >= self::TOGETHER) {
            $this->write();
            return;
        }
        $new = array_values(array_filter($more->tags(), fn (string $tag): bool => !isset($this->written[$tag])));
        $this->written += array_fill_keys($new, true);
        $this->wire->set(Tag::lines(self::FIELD, $new));
    }

    /** Writes all lines, in place of those that are there. */
    public function write(): void
    {
        $lines = $this->changes->lines();
        if ($lines !== []) {
            $this->single = 0;
            $this->written = array_fill_keys($this->changes->tags(), true);
            $this->wire->set($lines, replace: self::FIELD);
        }
    }

    /**
     * Whether the header section has gone out without some of them: taken off by the application, and
     * nobody was asked before it was sent.
     */
    public function isMissed(): bool
    {
        if ($this->changes->isEmpty() || !$this->wire->isSent()) {
            return false;
        }
        return !self::isSaid($this->changes->lines(), $this->wire->response());
    }

    /**
     * Whether a response says all that these lines say, on whichever lines of its own.
     *
     * @param list<string> $lines as they were set
     */
    public static function isSaid(array $lines, Response $response): bool
    {
        [$meant, $said] = [(new Response(lines: $lines))->values(self::FIELD), $response->values(self::FIELD)];
        if ($meant === [] || in_array('*', $said, true)) {
            return true;
        }
        return !in_array('*', $meant, true) && array_diff(Tag::listed(implode(', ', $meant)), Tag::listed(implode(', ', $said))) === [];
    }

    /** What is said so far. From here on it says nothing. */
    public function take(): Changes
    {
        $changes = $this->changes;
        [$this->changes, $this->single, $this->written] = [new Changes(), 0, []];
        return $changes;
    }
}
