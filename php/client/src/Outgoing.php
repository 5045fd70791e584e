<?php

/**
 * The declaration and the changes of the running request, and when they are sent.
 *
 *     state                         uses(), freshFor()           changed()
 *     open, an unsafe method        collected; set when sending  set at once, and again when sending
 *     the same, ChangesBy::Control  the same                     by the control interface, when sending
 *     open, GET or HEAD             the same                     by the control interface, when sending
 *     sent, or a command            UseAfterHeaders              by the control interface, at the end
 *     a transaction is open         the same                     held until its commit, then as above
 *
 * The page's dependencies are sent at the last moment, because only then is it known whether the
 * page may be stored. Changes are set at once: if anything fails after the write, its response
 * still reports them. The response to a safe method cannot (RFC 9875 section 3). Sending ends the
 * state, so that each request of a PHP process begins with an empty one.
 */

declare(strict_types=1);

namespace Pagewell;

/** Collects for the running request. */
final class Outgoing
{
    private static ?self $current = null;

    private Declaration $declaration;

    private Template $template;

    private readonly Carried $carried;

    /** The changes on the response that was finished last. */
    private Changes $gone;

    private readonly Teller $teller;

    private bool $registered = false;

    /** @param Control|false|null $control as configure() takes it */
    public function __construct(private readonly Wire $wire, Control|false|null $control = null)
    {
        $this->carried = new Carried($wire);
        $this->teller = new Teller($wire, $control, function (Changes $changes): void {
            $this->carried->add($changes);
            $this->register();
        });
        $this->reset();
    }

    /**
     * Configures the whole process, where the environment and PHP's log do not suffice.
     *
     * @param Control|false|null $control called if no response can carry a change; false: such a change is refused
     * @param ChangesBy|null     $changes whether responses carry changes; null: read from the environment
     * @param list<string>|null  $sharedCookies names of cookies that make no page personal; null: read from the environment
     */
    public static function configure(Control|false|null $control = null, \Psr\Log\LoggerInterface|\Closure|null $log = null, ?ChangesBy $changes = null, ?array $sharedCookies = null): void
    {
        Configuration::set($control, new Log($log), $changes, $sharedCookies);
    }

    /** Returns the object of the running request. */
    public static function current(): self
    {
        return self::$current ??= new self(new PhpWire());
    }

    /** Begins a request, after sending the changes of the previous one. Throws like Configuration::check() if $isChecked. */
    public static function begin(?Wire $wire = null, Control|false|null $control = null, bool $isChecked = true): self
    {
        self::$current?->end();
        AtEnd::next();
        $wire ??= PhpWire::begin();
        $isChecked && Configuration::check($wire->method(), $control);
        return self::$current = new self($wire, $control);
    }

    /** @throws InvalidTag|UseAfterHeaders see Pagewell\uses() */
    public function uses(string $kind, int|string ...$ids): void
    {
        $this->mustNotBeSent("uses('$kind')");
        $this->declaration->uses($kind, ...$ids);
        $this->register();
    }

    /** @param list<int|string> $ids see Pagewell\usesShown() */
    public function usesShown(string $kind, array $ids, int $seconds): void
    {
        $this->mustNotBeSent("usesShown('$kind')");
        $this->declaration->usesShown($kind, $ids, $seconds);
        $this->register();
    }

    /** Adds tags to the page unchanged, for applications that have tags of their own. Throws like uses(). */
    public function tagged(string ...$tags): void
    {
        $this->mustNotBeSent('tagged()');
        $this->declaration->tagged(...$tags);
        $this->register();
    }

    /** @throws InvalidLifetime|UseAfterHeaders see Pagewell\freshFor() */
    public function freshFor(int $seconds): void
    {
        $this->mustNotBeSent("freshFor($seconds)");
        $this->declaration->freshFor($seconds);
        $this->register();
    }

    /** @throws InvalidFragment|UseAfterHeaders see Pagewell\fragment() */
    public function fragment(string $src, callable $render, ?string $alt = null, bool $continue = false): string
    {
        $this->mustNotBeSent('fragment()');
        $written = $this->template->fragment($src, $render, $alt, $continue);
        $this->template->isOne() && $this->register();
        return $written;
    }

    /** @throws PagewellException see Pagewell\changed() */
    public function changed(int|string|null ...$said): void
    {
        $this->say(ChangeArguments::call('changed', $said), Held::one(Changes::byControl()->changed(...$said)));
    }

    /** Like changed(), for applications that have tags of their own. */
    public function changedTagged(string ...$tags): void
    {
        $this->say('changedTagged()', Held::one(Changes::byControl()->tagged(...$tags)));
    }

    /** @throws PagewellException see Pagewell\changedSoftly() */
    public function changedSoftly(int|string|null ...$said): void
    {
        $this->say(ChangeArguments::call('changedSoftly', $said), Held::one(Changes::byControl()->changed(...$said), soft: true));
    }

    /** @throws PagewellException see Pagewell\changedNow() */
    public function changedNow(int|string|null ...$said): int
    {
        $changes = Changes::byControl()->changed(...$said);
        if ($this->teller->isInTransaction()) {
            throw new ChangeBeforeCommit(ChangeArguments::call('changedNow', $said) . ' while a transaction is open. Call it after the commit, or call changed(), which waits for it.');
        }
        return $this->invalidate($changes->invalidation())->pages;
    }

    /** @throws PagewellException see Pagewell\invalidate() */
    public function invalidate(Invalidation $invalidation): Dropped
    {
        return $this->teller->invalidate($invalidation);
    }

    /** Returns the transaction of a connection; without a name, of the only one. */
    public function transaction(string $connection = ''): Transaction
    {
        return $this->teller->transaction($connection);
    }

    /** @throws PagewellException see Pagewell\tell() */
    public function tell(): int
    {
        return $this->teller->tell();
    }

    /** Like tell(), but failures are logged. */
    public function flush(): void
    {
        $this->teller->flush();
    }

    /** Reports that the response with the changes is never sent; they are sent over the control interface. */
    public function responseLost(): void
    {
        $changes = $this->carried->take()->add($this->gone);
        $this->reset();
        $this->teller->late(Held::one($changes));
    }

    /** Ends the request or command: everything is sent. A transaction that is still open counts as committed. */
    public function end(): void
    {
        $this->teller->end();
    }

    /** Returns the reason why the page would not be offered for caching now; null if it would be. */
    public function refusal(): ?NotDeclared
    {
        return $this->declaration->refusal($this->wire->response());
    }

    /** @return list<string> the tags that the page has declared so far: for a footer or a debug bar */
    public function tags(): array
    {
        return $this->declaration->tags();
    }

    /** @return array{Declaration, Response, bool}|null the page, its response, and whether it has fragments; null after the header section was sent */
    public function standing(): ?array
    {
        return $this->wire->isSent() ? null : [clone $this->declaration, $this->wire->response(), $this->template->isOne()];
    }

    private function say(string $call, Held $held): void
    {
        $this->teller->say($call, $held);
        // Called before the response is sent; for a command no client waits.
        if ($this->wire->method() !== null && !$this->wire->isSent()) {
            $this->register();
        }
    }

    private function reset(): void
    {
        $this->declaration = new Declaration();
        $this->template = new Template($this->wire);
        $this->gone = $this->carried->take();
        $this->registered = false;
    }

    private function register(): void
    {
        if (!$this->registered) {
            $this->registered = true;
            $this->wire->beforeSending($this->sending(...));
        }
    }

    private function sending(): void
    {
        // No callback ran before sending: the page is not declared, but earlier changes have been sent.
        if (!$this->wire->isSent()) {
            $this->wire->set($this->declaration->lines($this->wire->response()));
            $this->carried->write();
            $this->template->write();
        } elseif ($this->carried->isMissed()) {
            $this->responseLost();
        }
        $this->reset();
        $this->teller->flush();
    }

    private function mustNotBeSent(string $call): void
    {
        if ($this->wire->isSent()) {
            throw new UseAfterHeaders("$call came after the header section was sent. Declare first, write afterwards.");
        }
    }
}
