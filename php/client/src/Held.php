<?php

/**
 * Changes that wait: for a commit, or for the control interface to be told.
 *
 * Hard ones and soft ones apart. Bounded: from IDS_MAX_BY_CONTROL ids of a kind on, the kind as a
 * whole stands for them.
 */

declare(strict_types=1);

namespace Pagewell;

/** Changes not yet told. */
final class Held
{
    /** Pages to be dropped. */
    public readonly Changes $hard;

    /** Pages to be marked as stale. */
    public readonly Changes $soft;

    public function __construct()
    {
        $this->hard = new Changes(Changes::IDS_MAX_BY_CONTROL);
        $this->soft = new Changes(Changes::IDS_MAX_BY_CONTROL);
    }

    /** One change alone. */
    public static function one(Changes $changes, bool $soft = false): self
    {
        $held = new self();
        ($soft ? $held->soft : $held->hard)->add($changes);
        return $held;
    }

    /** These too. */
    public function add(self $others): void
    {
        $this->hard->add($others->hard);
        $this->soft->add($others->soft);
    }

    /** Whether nothing waits. */
    public function isEmpty(): bool
    {
        return $this->hard->isEmpty() && $this->soft->isEmpty();
    }

    /** How many tags wait. */
    public function count(): int
    {
        return $this->hard->count() + $this->soft->count();
    }

    /** @return list<Invalidation> the calls that tell of it: hard ones first */
    public function calls(): array
    {
        return [
            ...(new Invalidation($this->hard->tags()))->batches(),
            ...(new Invalidation($this->soft->tags(), soft: true))->batches(),
        ];
    }

    /** @return string what an operator runs when Pagewell could not be told */
    public function command(): string
    {
        $tags = $this->count() > 20 ? [] : [...$this->hard->tags(), ...$this->soft->tags()];
        $named = implode(' --tag ', array_map('escapeshellarg', $tags));
        return 'pagewell invalidate ' . ($named === '' ? '--all' : "--tag $named");
    }
}
