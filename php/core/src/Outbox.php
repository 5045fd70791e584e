<?php

/**
 * A place that outlives the request, for calls of the control interface that could not be made.
 *
 *     PAGEWELL_OUTBOX=/var/lib/app/pagewell-outbox                       a file: FileOutbox
 *     Configuration::set(outbox: new TableOutbox($pdo))                  a table: TableOutbox
 *
 * Without an outbox such a change is only logged, and its pages stay cached until their TTL ends. A
 * call that was made twice does no harm, so an implementation may keep one that was made, but must
 * not lose one that was not.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** Keeps calls until Pagewell can be reached. */
interface Outbox
{
    /**
     * Stores calls, after those that wait already.
     *
     * @throws \RuntimeException they cannot be stored
     */
    public function store(Invalidation ...$calls): void;

    /** Whether a call waits, and the last failure is some seconds ago. Called in each request, so it is fast. */
    public function isDue(): bool;

    /**
     * Makes the calls that wait, the oldest first, and removes each that was made. If another process
     * is doing that, it may return at once.
     *
     * @param callable(Invalidation): void $send throws if Pagewell cannot be reached; the rest stays then
     *
     * @throws \Throwable what $send throws
     */
    public function deliver(callable $send): void;
}
