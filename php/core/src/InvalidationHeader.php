<?php

/**
 * The changes that the response reports. They are in its fields as soon as they are declared.
 *
 *     few tags                       all lines are rewritten with each change
 *     more than TOGETHER             new tags get lines of their own; each TOGETHER-th time, and
 *                                    whenever tags were merged, all lines are rewritten
 *     the header section is sent     all lines are rewritten
 *     more than 2 KB, and Pagewell   one line for every page: a server in between may refuse more,
 *     is not in front                and none of these lines reaches Pagewell if it is nowhere
 *
 * So a response is complete at any time, however its script ends, and the cost of thousands of
 * changes does not grow with the square of their number.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/**
 * Adds changes to the response.
 *
 * @internal
 */
final class InvalidationHeader
{
    private const FIELD = 'Cache-Group-Invalidation';

    private const TOGETHER = 64;

    private Changes $changes;

    /** Lines added since all of them were written. */
    private int $single = 0;

    /** @var array<string, true> the tags in the lines */
    private array $written = [];

    public function __construct(private readonly ResponseChannel $channel)
    {
        $this->changes = new Changes();
    }

    /** Adds these changes to the response. */
    public function add(Changes $more): void
    {
        [$bytes, $widenings] = [$this->changes->bytes(), $this->changes->widenings()];
        $this->changes->add($more);
        if ($this->isTooLong()) {
            $this->write();
            return;
        }
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
        $this->channel->set(Tag::lines(self::FIELD, $new));
    }

    /** Writes all lines, in place of the existing ones. */
    public function write(): void
    {
        $lines = $this->changes->lines();
        if ($lines !== []) {
            $this->single = 0;
            $this->written = array_fill_keys($this->changes->tags(), true);
            $this->channel->set($this->isTooLong() ? [self::FIELD . ': *'] : $lines, replace: self::FIELD);
        }
    }

    private function isTooLong(): bool
    {
        return $this->changes->bytes() > Declaration::TAG_BYTES_ELSEWHERE && !$this->channel->response()->isFronted;
    }

    /**
     * Whether the header section was sent without some of the lines: the application removed them,
     * and no callback ran before it was sent.
     */
    public function isMissed(): bool
    {
        if ($this->changes->isEmpty() || !$this->channel->isSent()) {
            return false;
        }
        return !self::isSaid($this->changes->lines(), $this->channel->response());
    }

    /**
     * Whether a response contains everything in these lines, in whatever form.
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

    /** Returns the changes so far, and clears them. */
    public function take(): Changes
    {
        $changes = $this->changes;
        [$this->changes, $this->single, $this->written] = [new Changes(), 0, []];
        return $changes;
    }
}
