<?php

/**
 * Changes that wait for a commit, or for a call of the control interface.
 *
 * Hard and soft changes are separate. Both are bounded like Changes::byControl(): more than
 * IDS_MAX_BY_CONTROL ids of a kind are replaced by the kind as a whole, and more than 4 MiB of tags
 * by everything.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/**
 * Changes that have not been sent yet.
 *
 * @internal
 */
final class PendingChanges
{
    /** Pages to be purged. */
    public readonly Changes $hard;

    /** Pages to be marked as stale. */
    public readonly Changes $soft;

    public function __construct()
    {
        $this->hard = Changes::byControl();
        $this->soft = Changes::byControl();
    }

    /** Creates a single change. */
    public static function one(Changes $changes, bool $soft = false): self
    {
        $pending = new self();
        ($soft ? $pending->soft : $pending->hard)->add($changes);
        return $pending;
    }

    /** Adds further changes. */
    public function add(self $others): void
    {
        $this->hard->add($others->hard);
        $this->soft->add($others->soft);
    }

    /** Whether no change waits. */
    public function isEmpty(): bool
    {
        return $this->hard->isEmpty() && $this->soft->isEmpty();
    }

    /** The number of waiting tags. */
    public function count(): int
    {
        return $this->hard->count() + $this->soft->count();
    }

    /** @return list<Invalidation> the calls to make: hard ones first */
    public function calls(): array
    {
        return [
            ...$this->hard->invalidation()->batches(),
            ...$this->soft->invalidation(soft: true)->batches(),
        ];
    }

    /**
     * @param InvalidationClient|null $client the unreachable interface: the command is for the same site
     *
     * @return string the command for an operator if Pagewell was unreachable
     */
    public function command(?InvalidationClient $client = null): string
    {
        $tags = $this->count() > 20 || $this->hard->isEverything() || $this->soft->isEverything() ? [] : [...$this->hard->tags(), ...$this->soft->tags()];
        $named = implode(' --tag ', array_map('escapeshellarg', $tags));
        $site = $client instanceof SiteClient && $client->site() !== null ? '--site ' . escapeshellarg($client->site()) . ' ' : '';
        return "pagewell purge $site" . ($named === '' ? '--all' : "--tag $named");
    }
}
