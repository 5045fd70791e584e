<?php

/**
 * Queue of changes for the control interface: they are collected and sent together.
 *
 *     when                                     what happens
 *     the request or command ends              everything is sent, within END_SECONDS
 *     5,000 tags wait, or the oldest a second  everything is sent at the next change
 *     the response has been sent, and the end  everything is sent at once
 *     of the request is not reported; or the
 *     sending is not (HeaderCallback)
 *     Pagewell is unreachable                  they stay; retried after PAUSE_SECONDS, and at the end
 *     it is unreachable at the end             they go to the outbox; without one, the log has the command
 *
 * Only now() throws, whatever an application's own InvalidationClient does: a page or a job does not fail
 * because Pagewell is unreachable.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;
use Pagewell\Core\PendingChanges;
use Pagewell\Core\SiteClient;

/**
 * The queue to the control interface.
 *
 * @internal
 */
final class InvalidationQueue
{
    private const OLDEST_NANOSECONDS = 1_000_000_000;

    private const PAUSE_NANOSECONDS = 10_000_000_000;

    private const END_NANOSECONDS = 5_000_000_000;

    private PendingChanges $pending;

    private int $since = 0;

    private int $pausedUntil = 0;

    /**
     * @param InvalidationClient $client where changes are sent
     * @param Log                $log    where failures are logged
     */
    public function __construct(private readonly InvalidationClient $client, private readonly Log $log)
    {
        $this->pending = new PendingChanges();
    }

    /** Adds changes, and sends everything if it is due. */
    public function add(PendingChanges $pending, bool $atOnce = false): void
    {
        $now = hrtime(true);
        $this->since = $this->pending->isEmpty() ? $now : $this->since;
        $this->pending->add($pending);
        $due = $atOnce || $this->pending->count() >= Invalidation::TAGS_MAX || $now - $this->since >= self::OLDEST_NANOSECONDS;
        if (!$due || $now < $this->pausedUntil) {
            return;
        }
        try {
            $this->now();
        } catch (\Throwable $failure) {
            $this->pausedUntil = hrtime(true) + self::PAUSE_NANOSECONDS;
            $this->log->warn("pagewell: {$failure->getMessage()} Tried again later.", $failure);
        }
    }

    /** The number of waiting tags. */
    public function count(): int
    {
        return $this->pending->count();
    }

    /**
     * Sends all waiting changes. Those that could not be sent stay in the queue.
     *
     * @throws PagewellException see InvalidationClient::invalidate()
     */
    public function now(): InvalidationResult
    {
        $result = new InvalidationResult();
        foreach ($this->pending->calls() as $call) {
            $result = $result->and($this->client->invalidate($call));
        }
        $this->pending = new PendingChanges();
        return $result;
    }

    /**
     * Sends all waiting changes. Those that could not be sent are put into the outbox; without one,
     * they are logged. The queue is empty afterwards.
     */
    public function end(): void
    {
        $pending = $this->pending;
        $this->pending = new PendingChanges();
        $deadline = hrtime(true) + self::END_NANOSECONDS;
        $calls = $pending->calls();
        foreach ($calls as $at => $call) {
            try {
                if (hrtime(true) > $deadline) {
                    throw new PagewellUnreachable('There was no time left to send everything.');
                }
                $this->client->invalidate($call);
            } catch (\Throwable $failure) {
                $site = $this->client instanceof SiteClient ? $this->client->site() : null;
                $left = array_map(static fn (Invalidation $one): Invalidation => $one->for($one->site ?? $site), array_slice($calls, $at));
                $then = OutboxDelivery::store($left) ? 'Changes wait in the outbox.'
                    : "Old pages may be served until they are purged: {$pending->command($this->client)}";
                $this->log->warn("pagewell: {$failure->getMessage()} $then", $failure);
                return;
            }
        }
    }
}
