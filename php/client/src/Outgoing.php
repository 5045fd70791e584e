<?php

/**
 * The running request's declaration and changes, and when they go out.
 *
 *     state    uses(), freshFor()               changed()
 *     open     collected; set when sending      set at once, and again when sending
 *     sent     UseAfterHeaders                  ChangeAfterHeaders
 *
 * What a page uses is set at the last moment, because only then it is known whether the
 * page may be stored at all. What has changed is set at once: if anything goes wrong after
 * the write, the response to it still says so. Sending ends the state, so that in a PHP that
 * serves several requests in one process each begins with nothing.
 */

declare(strict_types=1);

namespace Pagewell;

/** Collects for the running request. */
final class Outgoing
{
    /** Safe methods, RFC 9110 section 9.2.1. */
    private const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

    private static ?self $current = null;

    private Declaration $declaration;

    private Changes $changes;

    private bool $registered = false;

    /** @param Wire $wire where the lines go */
    public function __construct(private readonly Wire $wire)
    {
        $this->reset();
    }

    /** That of the running request. */
    public static function current(): self
    {
        return self::$current ??= new self(new PhpWire());
    }

    /** Begins anew: for a server that runs many requests in one process, and for tests. */
    public static function begin(?Wire $wire = null): self
    {
        return self::$current = new self($wire ?? new PhpWire());
    }

    /** @throws InvalidTag|UseAfterHeaders see Pagewell\uses() */
    public function uses(string $kind, int|string ...$ids): void
    {
        $this->mustNotBeSent("uses('$kind')");
        $this->declaration->uses($kind, ...$ids);
        $this->register();
    }

    /** @throws InvalidLifetime|UseAfterHeaders see Pagewell\freshFor() */
    public function freshFor(int $seconds): void
    {
        $this->mustNotBeSent("freshFor($seconds)");
        $this->declaration->freshFor($seconds);
        $this->register();
    }

    /** @throws PagewellException see Pagewell\changed() */
    public function changed(string $kind, int|string|null $id = null, int|string ...$of): void
    {
        $changes = (clone $this->changes)->changed($kind, $id, ...$of);
        $method = $this->wire->method();
        if ($method === null) {
            throw new ChangeOutsideRequest("changed('$kind') outside a web request has no response to travel on. Run: pagewell invalidate --tag "
                . implode(' --tag ', array_map('escapeshellarg', $changes->tags())));
        }
        if (in_array($method, self::SAFE, true)) {
            throw new ChangeOnSafeMethod("changed('$kind') in answer to a $method: caches ignore it there. Write in answer to a POST.");
        }
        if ($this->wire->isSent()) {
            throw new ChangeAfterHeaders("changed('$kind') came after the header section was sent. Write first, answer afterwards.");
        }
        $this->changes = $changes;
        $this->setChanges();
        $this->register();
    }

    /** Why the page as it stands would not be offered for storing; null when it would be. */
    public function refusal(): ?NotDeclared
    {
        return $this->declaration->refusal($this->wire->response());
    }

    /**
     * @return list<string> the tags that the page has declared so far: for a footer or a debug bar
     */
    public function tags(): array
    {
        return $this->declaration->tags();
    }

    private function reset(): void
    {
        $this->declaration = new Declaration();
        $this->changes = new Changes();
        $this->registered = false;
    }

    private function register(): void
    {
        if (!$this->registered) {
            $this->registered = true;
            $this->wire->beforeSending(function (): void {
                $this->wire->set($this->declaration->lines($this->wire->response()));
                $this->setChanges();
                $this->reset();
            });
        }
    }

    private function setChanges(): void
    {
        $lines = $this->changes->lines();
        if ($lines !== []) {
            $this->wire->set($lines, replace: 'Cache-Group-Invalidation');
        }
    }

    private function mustNotBeSent(string $call): void
    {
        if ($this->wire->isSent()) {
            throw new UseAfterHeaders("$call came after the header section was sent. Declare first, write afterwards.");
        }
    }
}
