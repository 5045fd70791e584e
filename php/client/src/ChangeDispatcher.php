<?php

/**
 * Selects the way of a change: the response, the control interface, or waiting.
 *
 *     a transaction is open             waits for its commit; discarded if it is rolled back
 *     an unsafe method, headers unsent  onto the response, unless ChangeDelivery::Control
 *     otherwise                         to the control interface (InvalidationQueue): before the header section, or at the end
 *     soft                              always to the control interface, because no field exists for it
 *     the control interface is off      onto the response, or refused if none can carry it
 *     PAGEWELL_CHANGES is mistyped      both ways, and a line in the log, because the write is done
 *
 * A change belongs to every open transaction. It is sent at the first commit and again at the next,
 * because it is unknown which connection made the write.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Changes;
use Pagewell\Core\Exception\ChangeAfterHeaders;
use Pagewell\Core\Exception\ChangeOnSafeMethod;
use Pagewell\Core\Exception\ChangeOutsideRequest;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;
use Pagewell\Core\PendingChanges;
use Pagewell\Core\ResponseChannel;
use Pagewell\Core\Transaction;

/**
 * Sends changes by the right way.
 *
 * @internal
 */
final class ChangeDispatcher
{
    private ?InvalidationQueue $queue = null;

    /** @var array<string, Transaction> by connection */
    private array $transactions = [];

    private bool $endRegistered = false;

    private bool $hasWarned = false;

    /**
     * @param InvalidationClient|false|null      $client false: off; null: as configured, or from the environment
     * @param \Closure(Changes): void $carry   puts changes onto the response
     */
    public function __construct(
        private readonly ResponseChannel $channel,
        private readonly InvalidationClient|false|null $client,
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
    public function accept(string $call, PendingChanges $pending): void
    {
        if (!$this->isCarried() && $this->queue() === null) {
            throw $this->refused($call, $pending);
        }
        $open = $this->open();
        foreach ($open as $transaction) {
            $transaction->hold($pending);
        }
        $open === [] ? $this->release($pending) : $this->registerEnd();
    }

    /** @throws PagewellException see InvalidationClient::invalidate() */
    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        $client = Configuration::client($this->client);
        if ($client === null) {
            throw new InvalidConfiguration('The control interface is switched off (PAGEWELL_ADMIN=off).');
        }
        return $invalidation->isEmpty() ? new InvalidationResult() : $client->invalidate($invalidation);
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
     * Sends waiting changes at once, and those in the outbox.
     *
     * @return int how many pages were purged
     *
     * @throws PagewellException see InvalidationClient::invalidate()
     */
    public function flush(): int
    {
        return ($this->queue()?->now()->pages ?? 0) + OutboxDelivery::flush(Configuration::client($this->client));
    }

    /** Like flush(), but failures are logged. */
    public function flushOrLog(): void
    {
        $this->queue?->end();
    }

    /** Sends changes that their response can no longer carry. */
    public function late(PendingChanges $pending): void
    {
        $queue = $pending->isEmpty() ? null : $this->queue();
        if ($queue !== null) {
            $this->add($queue, $pending);
        } elseif (!$pending->isEmpty()) {
            Configuration::log()->warn("pagewell: the response that told of a change was lost, and the control interface is off. Run: {$pending->command()}");
        }
    }

    /** Sends everything. A transaction that is still open counts as committed, because it may be, undetected. */
    public function end(): void
    {
        foreach ($this->open() as $transaction) {
            $transaction->commitAll();
        }
        $this->queue?->end();
        OutboxDelivery::attempt(Configuration::client($this->client));
    }

    /** Has the outbox delivered when the request ends. It is not read before, perhaps within a transaction of the application. */
    public function watchOutbox(): void
    {
        Configuration::outbox() === null || $this->registerEnd();
    }

    /** Sends changes that are committed. */
    private function release(PendingChanges $pending): void
    {
        if ($pending->isEmpty()) {
            return;
        }
        if (!$this->isCarried()) {
            $queue = $this->queue();
            $queue === null
                ? Configuration::log()->warn("pagewell: a commit came too late for the response to tell of it, and the control interface is off. Run: {$pending->command()}")
                : $this->add($queue, $pending);
            return;
        }
        $isBoth = $this->chosenWay() === null;
        $called = $isBoth ? $pending : PendingChanges::one($pending->soft, soft: true);
        $queue = $called->isEmpty() ? null : $this->queue();
        ($this->carry)($queue === null || $isBoth ? (clone $pending->hard)->add($pending->soft) : clone $pending->hard);
        $queue === null || $this->add($queue, $called);
    }

    private function add(InvalidationQueue $queue, PendingChanges $pending): void
    {
        $this->registerEnd();
        $isLeft = $this->channel instanceof CollectingChannel && $this->channel->isLeft();
        $queue->add($pending, atOnce: $isLeft || ($this->channel instanceof PhpChannel && $this->channel->isUnannounced()));
    }

    private function registerEnd(): void
    {
        if (!$this->endRegistered) {
            $this->endRegistered = true;
            $this->channel->atEnd(function (): void {
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
        $method = $this->channel->method();
        if (!Configuration::isWrite($method) || $this->channel->isSent()) {
            return false;
        }
        if ($this->chosenWay() !== ChangeDelivery::Control) {
            return true;
        }
        $this->queue() ?? $this->warn(Configuration::WITHOUT_CONTROL);
        return $this->queue() === null;
    }

    /** Returns the way for changes; null if the environment has a wrong value. */
    private function chosenWay(): ?ChangeDelivery
    {
        try {
            return Configuration::way();
        } catch (InvalidConfiguration $fault) {
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

    private function queue(): ?InvalidationQueue
    {
        if ($this->queue === null) {
            $client = Configuration::client($this->client);
            $this->queue = $client === null ? null : new InvalidationQueue($client, Configuration::log());
        }
        return $this->queue;
    }

    private function refused(string $call, PendingChanges $pending): PagewellException
    {
        $method = $this->channel->method();
        return match (true) {
            $method === null => new ChangeOutsideRequest("$call outside a web request, and the control interface is switched off. Run: {$pending->command()}"),
            $this->channel->isSent() => new ChangeAfterHeaders("$call came after the header section was sent, and the control interface is switched off. Write first, answer afterwards."),
            default => new ChangeOnSafeMethod("$call in answer to a $method, and the control interface is switched off: caches ignore it there. Write in answer to a POST."),
        };
    }
}
