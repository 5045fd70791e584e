<?php

/**
 * The declaration and the changes of the running request, and when they are sent.
 *
 *     state                         uses(), freshFor()           changed()
 *     open, an unsafe method        collected; set when sending  set at once, and again when sending
 *     the same, ChangeDelivery::Control  the same                     by the control interface, when sending
 *     open, GET or HEAD             the same                     by the control interface, when sending
 *     sent, or a command            UseAfterHeaders              by the control interface, at the end
 *     a transaction is open         the same                     held until its commit, then as above
 *
 * The page's dependencies are sent at the last moment, because only then is it known whether the page may
 * be stored. Changes are set at once: if anything fails after the write, its response still reports them.
 * The response to a safe method cannot (RFC 9875 section 3). Sending ends the state.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\{ChangeArguments, Changes, Declaration, Invalidation, InvalidationClient, InvalidationHeader, InvalidationResult, PendingChanges, Refusal, Response, ResponseChannel, Tag, Template, Transaction};
use Pagewell\Core\Exception\{ChangeBeforeCommit, InvalidFragment, InvalidLifetime, InvalidTag, PagewellException, UseAfterHeaders};

/** Collects for the running request. */
final class RequestScope
{
    private static ?self $current = null;

    private Declaration $declaration;
    private Template $template;
    private readonly InvalidationHeader $header;

    /** The changes on the response that was finished last. */
    private Changes $gone;

    private readonly ChangeDispatcher $dispatcher;

    private bool $registered = false;

    /** @param InvalidationClient|false|null $client as Configuration::set() takes it */
    public function __construct(private readonly ResponseChannel $channel, InvalidationClient|false|null $client = null)
    {
        $this->header = new InvalidationHeader($channel);
        $this->dispatcher = new ChangeDispatcher($channel, $client, function (Changes $changes): void {
            $this->header->add($changes);
            $this->register();
        });
        $this->reset();
        // A framework's page also says that it declares nothing.
        $channel instanceof CollectingChannel && $this->register();
    }

    /** Returns the object of the running request. */
    public static function current(): self
    {
        return self::$current ??= new self(new PhpChannel());
    }

    /** Begins a request, after sending the changes of the previous one. Throws like Configuration::check() if $isChecked. */
    public static function begin(?ResponseChannel $channel = null, InvalidationClient|false|null $client = null, bool $isChecked = true): self
    {
        self::$current?->end();
        RequestEnd::next();
        $channel ??= PhpChannel::begin();
        $isChecked && Configuration::check($channel->method(), $client);
        return self::$current = new self($channel, $client);
    }

    /** @throws InvalidTag|UseAfterHeaders see Pagewell\uses() */
    public function uses(string $kind, int|string|object ...$ids): void
    {
        $this->declare("uses('$kind')")->uses(Tag::kind('uses', $kind), ...RowKey::ids($kind, $ids));
    }

    /** @param list<int|string|object> $ids see Pagewell\usesList() */
    public function usesList(string $kind, array $ids, int $seconds): void
    {
        $this->declare("usesList('$kind')")->usesList(Tag::kind('usesList', $kind), RowKey::ids($kind, $ids), $seconds);
    }

    /** @throws InvalidTag|UseAfterHeaders see Pagewell\usesTags() */
    public function usesTags(string ...$tags): void
    {
        $this->declare('usesTags()')->usesTags(...$tags);
    }

    /** @throws InvalidLifetime|UseAfterHeaders see Pagewell\freshFor() */
    public function freshFor(int $seconds): void
    {
        $this->declare("freshFor($seconds)")->freshFor($seconds);
    }

    /** @throws UseAfterHeaders see Pagewell\notCached() */
    public function notCached(): void
    {
        $this->declare('notCached()')->notCached();
    }

    /** Reports that the visitor is signed in, as a framework or the application knows: the page is not cached. */
    public function signedIn(): void
    {
        Capture\StatementCapture::running()?->giveUp('the visitor is signed in');
        $this->channel->isSent() || $this->declare('signedIn()')->signedIn();
    }

    /** @throws InvalidFragment|UseAfterHeaders see Pagewell\fragment() */
    public function fragment(string $src, callable $render, ?string $alt = null, bool $continue = false): string
    {
        $this->declare('fragment()');
        return $this->template->fragment($src, $render, $alt, $continue);
    }

    /** @throws PagewellException see Pagewell\changed() */
    public function changed(int|string|object|null ...$said): void
    {
        $this->accept(ChangeArguments::call('changed', $said = RowKey::arguments($said)), PendingChanges::one(Changes::byControl()->changed(...$said)));
    }

    /** @throws PagewellException see Pagewell\changedTags() */
    public function changedTags(string ...$tags): void
    {
        $this->accept('changedTags()', PendingChanges::one(Changes::byControl()->changedTags(...$tags)));
    }

    /** @throws PagewellException see Pagewell\changedSoftly() */
    public function changedSoftly(int|string|object|null ...$said): void
    {
        $this->accept(ChangeArguments::call('changedSoftly', $said = RowKey::arguments($said)), PendingChanges::one(Changes::byControl()->changed(...$said), soft: true));
    }

    /** @throws PagewellException see Pagewell\changedNow() */
    public function changedNow(int|string|object|null ...$said): int
    {
        $changes = Changes::byControl()->changed(...($said = RowKey::arguments($said)));
        if ($this->dispatcher->isInTransaction()) {
            throw new ChangeBeforeCommit(ChangeArguments::call('changedNow', $said) . ' while a transaction is open. Call it after the commit, or call changed(), which waits for it.');
        }
        return $this->invalidate($changes->invalidation())->pages;
    }

    /** @throws PagewellException see Pagewell\invalidate() */
    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        return $this->dispatcher->invalidate($invalidation);
    }

    /** Returns the transaction of a connection; without a name, of the only one. */
    public function transaction(string $connection = ''): Transaction
    {
        return $this->dispatcher->transaction($connection);
    }

    /** @throws PagewellException see Pagewell\flush() */
    public function flush(): int
    {
        return $this->dispatcher->flush();
    }

    /** Like flush(), but failures are logged. */
    public function flushOrLog(): void
    {
        $this->dispatcher->flushOrLog();
    }

    /** Reports that the response with the changes is never sent; they are sent over the control interface. */
    public function responseLost(): void
    {
        $changes = $this->header->take()->add($this->gone);
        $this->reset();
        $this->dispatcher->late(PendingChanges::one($changes));
    }

    /** Ends the request or command: everything is sent. A transaction that is still open counts as committed. */
    public function end(): void
    {
        $this->dispatcher->end();
    }

    /** Returns the reason why the page would not be offered for caching now; null if it would be. */
    public function refusal(): ?Refusal
    {
        return $this->declaration->refusal($response = $this->channel->response()) ?? $this->declaration->refusalOfTags($response);
    }

    /** @return list<string> the tags that the page has declared so far: for a footer or a debug bar */
    public function tags(): array
    {
        return $this->declaration->tags();
    }

    /** @return array{Declaration, Response, bool}|null the page, its response, and whether it has fragments; null after the header section was sent */
    public function standing(): ?array
    {
        return $this->channel->isSent() ? null : [clone $this->declaration, $this->channel->response(), $this->template->isOne()];
    }

    private function accept(string $call, PendingChanges $pending): void
    {
        $this->dispatcher->accept($call, $pending); // Before the response is sent; for a command no client waits.
        if ($this->channel->method() !== null && !$this->channel->isSent()) {
            $this->register();
        }
    }

    private function reset(): void
    {
        $this->declaration = new Declaration(Configuration::lifetimeSeconds(), Configuration::sharedCookies());
        $this->template = new Template($this->channel);
        $this->gone = $this->header->take();
        $this->registered = false;
    }

    private function register(): void
    {
        if (!$this->registered) {
            $this->registered = true;
            $this->channel->beforeSending($this->sending(...));
            $this->dispatcher->watchOutbox();
        }
    }

    private function sending(): void
    {
        // No callback ran before sending: the page is not declared, but earlier changes have been sent.
        if (!$this->channel->isSent()) {
            $this->channel->set($this->declaration->explainedLines($this->channel->response(), ...($this->channel instanceof CollectingChannel ? [] : [Refusal::Nothing])));
            $this->header->write();
            $this->template->write();
        } elseif ($this->header->isMissed()) {
            $this->responseLost();
        }
        $this->reset();
        $this->dispatcher->flushOrLog();
    }

    /** @throws UseAfterHeaders the header section was sent */
    private function declare(string $call): Declaration
    {
        if ($this->channel->isSent()) {
            throw new UseAfterHeaders("$call came after the header section was sent. Declare first, write afterwards.");
        }
        $this->register();
        return $this->declaration;
    }
}
