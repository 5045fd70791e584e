<?php

/**
 * Which way a change takes: onto the response, to the control interface, or into waiting.
 *
 *     a transaction is open             waits for its commit; forgotten when it is rolled back
 *     an unsafe method, headers unsent  onto the response, unless ChangesBy::Control
 *     otherwise                         to the control interface (Later): before the header section, or at the end
 *     soft                              always to the control interface: a response has no word for it
 *     the control interface is off      onto the response, or refused where there is none to carry it
 *
 * A change belongs to each transaction that is open: it is told at whichever commit comes first,
 * and again at the next, for nobody knows on which connection the write was.
 */

declare(strict_types=1);

namespace Pagewell;

/** Sends changes on their way. */
final class Teller
{
    /** Safe methods, RFC 9110 section 9.2.1. */
    private const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

    private static Control|false|null $configured = null;

    private static ?Log $log = null;

    private static ?ChangesBy $way = null;

    private ?Later $later = null;

    /** @var array<string, Transaction> by connection */
    private array $transactions = [];

    private bool $endRegistered = false;

    /**
     * @param Control|false|null      $control false: off; null: as configured, or as the environment says
     * @param \Closure(Changes): void $carry   puts changes onto the response
     */
    public function __construct(
        private readonly Wire $wire,
        private readonly Control|false|null $control,
        private readonly \Closure $carry,
    ) {
    }

    /** For the whole process. */
    public static function configure(Control|false|null $control, Log $log, ?ChangesBy $way = null): void
    {
        self::$configured = $control;
        self::$log = $log;
        self::$way = $way;
    }

    /**
     * Which way changes take that a response could carry.
     *
     * @throws InvalidControl the environment says neither
     */
    public static function way(): ChangesBy
    {
        return self::$way ?? ChangesBy::fromEnvironment();
    }

    /** Where it is said what went wrong. */
    public static function log(): Log
    {
        return self::$log ?? new Log();
    }

    /**
     * Takes a change up.
     *
     * @param string $call as the program wrote it, for the exception
     *
     * @throws ChangeOnSafeMethod|ChangeAfterHeaders|ChangeOutsideRequest no response can carry it, and the control interface is off
     * @throws InvalidControl                                            no response is to carry it, and the control interface is off
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
        $control = $this->control();
        if ($control === null) {
            throw new InvalidControl('The control interface is switched off (PAGEWELL_ADMIN=off).');
        }
        return $invalidation->isEmpty() ? new Dropped() : $control->invalidate($invalidation);
    }

    /** Whether a change would wait. */
    public function isInTransaction(): bool
    {
        return $this->open() !== [];
    }

    /** The transaction of a connection. */
    public function transaction(string $connection): Transaction
    {
        if (!isset($this->transactions[$connection])) {
            $this->transactions = $this->open();
            $this->transactions[$connection] = new Transaction($this->release(...));
        }
        return $this->transactions[$connection];
    }

    /**
     * Tells at once what waits for the end.
     *
     * @return int how many pages were dropped
     *
     * @throws PagewellException see Control::invalidate()
     */
    public function tell(): int
    {
        return $this->later()?->now()->pages ?? 0;
    }

    /** As tell(); what goes wrong is logged. */
    public function flush(): void
    {
        $this->later?->end();
    }

    /** What can no longer be carried by the response it was put on. */
    public function late(Held $held): void
    {
        $later = $held->isEmpty() ? null : $this->later();
        if ($later !== null) {
            $this->add($later, $held);
        } elseif (!$held->isEmpty()) {
            self::log()->warn("pagewell: the response that told of a change was lost, and the control interface is off. Run: {$held->command()}");
        }
    }

    /** Everything is told. A transaction that is still open is taken as committed: perhaps it is, unseen. */
    public function end(): void
    {
        foreach ($this->open() as $transaction) {
            $transaction->commitAll();
        }
        $this->later?->end();
    }

    /** What is known to be written. */
    private function release(Held $held): void
    {
        $carried = $this->isCarried();
        $later = $carried && $held->soft->isEmpty() ? null : $this->later();
        match (true) {
            $held->isEmpty() => null,
            $later !== null => $this->add($later, $held),
            $carried => ($this->carry)((clone $held->hard)->add($held->soft)),
            default => self::log()->warn("pagewell: a commit came too late for the response to tell of it, and the control interface is off. Run: {$held->command()}"),
        };
    }

    private function add(Later $later, Held $held): void
    {
        $this->registerEnd();
        $later->add($held, atOnce: $this->wire instanceof ResponseWire && $this->wire->isLeft());
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

    private function isCarried(): bool
    {
        $method = $this->wire->method();
        return $method !== null && !in_array($method, self::SAFE, true) && self::way() === ChangesBy::Response && !$this->wire->isSent();
    }

    private function control(): ?Control
    {
        $control = $this->control ?? self::$configured ?? SocketControl::fromEnvironment();
        return $control === false ? null : $control;
    }

    private function later(): ?Later
    {
        if ($this->later === null) {
            $control = $this->control();
            $this->later = $control === null ? null : new Later($control, self::log());
        }
        return $this->later;
    }

    private function refused(string $call, Held $held): PagewellException
    {
        $method = $this->wire->method();
        return match (true) {
            $method !== null && self::way() === ChangesBy::Control => new InvalidControl("$call is to be told by the control interface (PAGEWELL_CHANGES=control), which is switched off (PAGEWELL_ADMIN=off)."),
            $method === null => new ChangeOutsideRequest("$call outside a web request, and the control interface is switched off. Run: {$held->command()}"),
            $this->wire->isSent() => new ChangeAfterHeaders("$call came after the header section was sent, and the control interface is switched off. Write first, answer afterwards."),
            default => new ChangeOnSafeMethod("$call in answer to a $method, and the control interface is switched off: caches ignore it there. Write in answer to a POST."),
        };
    }
}
