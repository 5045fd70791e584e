<?php

/**
 * Selects the way of a change: the response, the control interface, or waiting.
 *
 *     a transaction is open             waits for its commit; discarded if it is rolled back
 *     an unsafe method, headers unsent  onto the response, unless ChangesBy::Control
 *     otherwise                         to the control interface (Later): before the header section, or at the end
 *     soft                              always to the control interface, because no field exists for it
 *     the control interface is off      onto the response, or refused if none can carry it
 *     PAGEWELL_CHANGES is mistyped      both ways, and a line in the log, because the write is done
 *
 * A change belongs to every open transaction. It is sent at the first commit and again at the next,
 * because it is unknown which connection made the write.
 */

declare(strict_types=1);

namespace Pagewell;

/** Sends changes by the right way. */
final class Teller
{
    private ?Later $later = null;

    /** @var array<string, Transaction> by connection */
    private array $transactions = [];

    private bool $endRegistered = false;

    private bool $hasWarned = false;

    /**
     * @param Control|false|null      $control false: off; null: as configured, or from the environment
     * @param \Closure(Changes): void $carry   puts changes onto the response
     */
    public function __construct(
        private readonly Wire $wire,
        private readonly Control|false|null $control,
        private readonly \Closure $carry,
    ) {
    }

    /**
     * Accepts a change.
     *
     * @param string $call as the program wrote it, for the exception
     *
     * @throws ChangeOnSafeMethod|ChangeAfterHeaders|ChangeOutsideRequest no response can carry it, and the control interface is off
     */
    public function say(string $call, Held $held): void
    {
        if (!$this->isCarried() && $this->later() === null) {
            throw $this->refused($call, $held);
        }
        $open = $this->open();
        foreach ($open as $transaction) {
            $transaction->hold($held);
        }
        $open === [] ? $this->release($held) : $this->registerEnd();
    }

    /** @throws PagewellException see Control::invalidate() */
    public function invalidate(Invalidation $invalidation): Dropped
    {
        $control = Configuration::control($this->control);
        if ($control === null) {
            throw new InvalidControl('The control interface is switched off (PAGEWELL_ADMIN=off).');
        }
        return $invalidation->isEmpty() ? new Dropped() : $control->invalidate($invalidation);
    }

    /** Whether a transaction is open, so that a change would wait. */
    public function isInTransaction(): bool
    {
        return $this->open() !== [];
    }

    /** Returns the transaction of a connection. */
    public function transaction(string $connection): Transaction
    {
        if (!isset($this->transactions[$connection])) {
            $this->transactions = $this->open();
            $this->transactions[$connection] = new Transaction($this->release(...));
        }
        return $this->transactions[$connection];
    }

    /**
     * Sends waiting changes at once.
     *
     * @return int how many pages were purged
     *
     * @throws PagewellException see Control::invalidate()
     */
    public function tell(): int
    {
        return $this->later()?->now()->pages ?? 0;
    }

    /** Like tell(), but failures are logged. */
    public function flush(): void
    {
        $this->later?->end();
    }

    /** Sends changes that their response can no longer carry. */
    public function late(Held $held): void
    {
        $later = $held->isEmpty() ? null : $this->later();
        if ($later !== null) {
            $this->add($later, $held);
        } elseif (!$held->isEmpty()) {
            Configuration::log()->warn("pagewell: the response that told of a change was lost, and the control interface is off. Run: {$held->command()}");
        }
    }

    /** Sends everything. A transaction that is still open counts as committed, because it may be, undetected. */
    public function end(): void
    {
        foreach ($this->open() as $transaction) {
            $transaction->commitAll();
        }
        $this->later?->end();
    }

    /** Sends changes that are committed. */
    private function release(Held $held): void
    {
        if ($held->isEmpty()) {
            return;
        }
        $carried = $this->isCarried();
        $isBoth = $carried && $this->chosenWay() === null;
        $later = $carried && !$isBoth && $held->soft->isEmpty() ? null : $this->later();
        if ($carried && ($isBoth || $later === null)) {
            ($this->carry)((clone $held->hard)->add($held->soft));
        }
        if ($later !== null) {
            $this->add($later, $held);
        } elseif (!$carried) {
            Configuration::log()->warn("pagewell: a commit came too late for the response to tell of it, and the control interface is off. Run: {$held->command()}");
        }
    }

    private function add(Later $later, Held $held): void
    {
        $this->registerEnd();
        $isLeft = $this->wire instanceof ResponseWire && $this->wire->isLeft();
        $later->add($held, atOnce: $isLeft || ($this->wire instanceof PhpWire && $this->wire->isUnannounced()));
    }

    private function registerEnd(): void
    {
        if (!$this->endRegistered) {
            $this->endRegistered = true;
            $this->wire->atEnd(function (): void {
                $this->endRegistered = false;
                $this->end();
            });
        }
    }

    /** @return array<string, Transaction> */
    private function open(): array
    {
        return array_filter($this->transactions, static fn (Transaction $transaction): bool => $transaction->isOpen());
    }

    /** Whether the response carries the change. It also does if the control interface is off. */
    private function isCarried(): bool
    {
        $method = $this->wire->method();
        if (!Configuration::isWrite($method) || $this->wire->isSent()) {
            return false;
        }
        if ($this->chosenWay() !== ChangesBy::Control) {
            return true;
        }
        $this->later() ?? $this->warn(Configuration::WITHOUT_CONTROL);
        return $this->later() === null;
    }

    /** Returns the way for changes; null if the environment has a wrong value. */
    private function chosenWay(): ?ChangesBy
    {
        try {
            return Configuration::way();
        } catch (InvalidControl $fault) {
            $this->warn("{$fault->getMessage()} Until then changes are sent on the response and to the control interface.");
            return null;
        }
    }

    /** Logs a warning once per request. */
    private function warn(string $text): void
    {
        if (!$this->hasWarned) {
            $this->hasWarned = true;
            Configuration::log()->warn("pagewell: $text");
        }
    }

    private function later(): ?Later
    {
        if ($this->later === null) {
            $control = Configuration::control($this->control);
            $this->later = $control === null ? null : new Later($control, Configuration::log());
        }
        return $this->later;
    }

    private function refused(string $call, Held $held): PagewellException
    {
        $method = $this->wire->method();
        return match (true) {
            $method === null => new ChangeOutsideRequest("$call outside a web request, and the control interface is switched off. Run: {$held->command()}"),
            $this->wire->isSent() => new ChangeAfterHeaders("$call came after the header section was sent, and the control interface is switched off. Write first, answer afterwards."),
            default => new ChangeOnSafeMethod("$call in answer to a $method, and the control interface is switched off: caches ignore it there. Write in answer to a POST."),
        };
    }
}
