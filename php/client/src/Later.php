<?php

/**
 * Changes on their way to the control interface: collected, and told together.
 *
 *     when                                     what happens
 *     the request or command ends              everything is told, within END_SECONDS
 *     5,000 tags wait, or the oldest a second  everything is told at the next change
 *     the response has been sent, and nobody   everything is told at once
 *     says when its request is over; or nobody
 *     says when it is sent (HeaderCallback)
 *     Pagewell is away                         they stay; tried again after PAUSE_SECONDS, and at the end
 *     it is away at the end                    one line in the log, with the command to run
 *
 * Never throws but from now(), whatever a Control of the application's own does: a page or a job does not
 * fail because Pagewell is away.
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
     * @param Control $control whom to tell
     * @param Log     $log     where to say what could not be told
     */
    public function __construct(private readonly Control $control, private readonly Log $log)
    {
        $this->held = new Held();
    }

    /** Takes changes up, and tells if it is time to. */
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

    /** How many tags wait. */
    public function count(): int
    {
        return $this->held->count();
    }

    /**
     * Tells what waits. What could not be told goes on waiting.
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

    /** Tells what waits, or says in the log that it could not. Nothing waits afterwards. */
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
