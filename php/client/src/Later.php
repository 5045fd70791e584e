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
 *     it is unreachable at the end             one line in the log, with the command to run
 *
 * Only now() throws, whatever an application's own Control does: a page or a job does not fail
 * because Pagewell is unreachable.
 */

declare(strict_types=1);

namespace Pagewell;

/** The queue to the control interface. */
final class Later
{
    private const OLDEST_NANOSECONDS = 1_000_000_000;

    private const PAUSE_NANOSECONDS = 10_000_000_000;

    private const END_NANOSECONDS = 5_000_000_000;

    private Held $held;

    private int $since = 0;

    private int $pausedUntil = 0;

    /**
     * @param Control $control where changes are sent
     * @param Log     $log     where failures are logged
     */
    public function __construct(private readonly Control $control, private readonly Log $log)
    {
        $this->held = new Held();
    }

    /** Adds changes, and sends everything if it is due. */
    public function add(Held $held, bool $atOnce = false): void
    {
        $now = hrtime(true);
        $this->since = $this->held->isEmpty() ? $now : $this->since;
        $this->held->add($held);
        $due = $atOnce || $this->held->count() >= Invalidation::TAGS_MAX || $now - $this->since >= self::OLDEST_NANOSECONDS;
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
        return $this->held->count();
    }

    /**
     * Sends all waiting changes. Those that could not be sent stay in the queue.
     *
     * @throws PagewellException see Control::invalidate()
     */
    public function now(): Dropped
    {
        $dropped = new Dropped();
        foreach ($this->held->calls() as $call) {
            $dropped = $dropped->and($this->control->invalidate($call));
        }
        $this->held = new Held();
        return $dropped;
    }

    /** Sends all waiting changes, or logs that it could not. The queue is empty afterwards. */
    public function end(): void
    {
        $held = $this->held;
        $this->held = new Held();
        $deadline = hrtime(true) + self::END_NANOSECONDS;
        foreach ($held->calls() as $call) {
            try {
                if (hrtime(true) > $deadline) {
                    throw new ControlAway('There was no time left to tell everything.');
                }
                $this->control->invalidate($call);
            } catch (\Throwable $failure) {
                $this->log->warn("pagewell: {$failure->getMessage()} Pages made from what has changed may still be shown. When it is back: {$held->command($this->control)}", $failure);
                return;
            }
        }
    }
}
