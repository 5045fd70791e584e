<?php

/**
 * The response of a framework that represents it as a value: lines are collected until it exists.
 *
 *     $channel = CollectingChannel::begin($request->getMethod(), credentials: Credentials::of($cookieField));
 *     …the application makes its response…
 *     foreach ($channel->finish($status, $lines, $session) as $line) { … add it … }
 *
 * Begins the request's state, so it works in processes that answer many requests. Changes after
 * finish() are sent over the control interface. They are sent at once, because such a process may
 * wait long for its next request, or together, if the framework reports the end of the request. If
 * there is no response, call lose(), or withdraw() after finish(); then the changes are sent
 * anyway.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Credentials;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationHeader;
use Pagewell\Core\Response;
use Pagewell\Core\ResponseChannel;

/** Collects the lines of a later response. */
final class CollectingChannel implements ResponseChannel
{
    use CollectedLines;

    private Response $response;

    /** @var (callable(): void)|null */
    private $then = null;

    private bool $sent = false;

    private function __construct(
        private readonly string $method,
        private readonly bool $isEnded,
        private readonly string $capability,
        private readonly Credentials $credentials,
    ) {
        $this->response = new Response($method, credentials: $credentials, isFronted: PhpChannel::isFronted());
    }

    /**
     * Begins a request of this method.
     *
     * @param InvalidationClient|false|null $client as RequestScope::begin() takes it
     * @param bool               $isEnded whether RequestScope's end() or flush() is called when the request ends
     * @param string             $capability Surrogate-Capability of the request, for fragment()
     * @param Credentials|null   $credentials cookies and Authorization of the request; null: read from PHP. Without them no page of a worker is offered
     * @param bool               $isChecked whether a wrong value of the environment is refused here; false: changed() logs it
     *
     * @throws InvalidConfiguration as Configuration::check()
     */
    public static function begin(
        string $method,
        InvalidationClient|false|null $client = null,
        bool $isEnded = false,
        string $capability = '',
        ?Credentials $credentials = null,
        bool $isChecked = true,
    ): self {
        $channel = new self(strtoupper($method), $isEnded, $capability, $credentials ?? PhpChannel::credentials());
        RequestScope::begin($channel, $client, $isChecked);
        return $channel;
    }

    /**
     * Adds to the finished response. Changes for the control interface are sent now, before the
     * response is. If an error response replaces this one later, it reports only the changes.
     *
     * @param list<string> $lines   its fields, `Name: value`
     * @param bool         $session whether it was rendered in a session
     *
     * @return list<string> the lines to add; Surrogate-Control replaces an existing one
     */
    public function finish(int $status, array $lines, bool $session = false): array
    {
        if ($this->sent) {
            RequestScope::current()->flushOrLog();
            return InvalidationHeader::isSaid($this->changes(), new Response(lines: $lines)) ? [] : $this->changes();
        }
        $this->response = new Response($this->method, $status, $lines, $session, credentials: $this->credentials, isFronted: PhpChannel::isFronted());
        if ($this->then !== null) {
            ($this->then)();
        }
        $this->sent = true;
        RequestScope::current()->flushOrLog();
        $this->watch();
        return $this->lines;
    }

    /** Reports that this request has no response that could carry changes. */
    public function lose(): void
    {
        if (!$this->sent) {
            $this->withdraw();
        }
    }

    /** Like lose(), also after finish(): outer middleware has failed, and the response is not sent. */
    public function withdraw(): void
    {
        $this->sent = true;
        RequestScope::current()->responseLost();
    }

    /**
     * If PHP itself sends the response, it is checked at the end: outer middleware may have failed,
     * or replaced it. Workers send their responses in other ways.
     */
    private function watch(): void
    {
        [$php, $changes] = [new PhpChannel(), $this->changes()];
        if ($changes !== [] && $php->method() !== null) {
            RequestEnd::call(function () use ($php, $changes): void {
                if (!InvalidationHeader::isSaid($changes, $php->response())) {
                    $php->isSent() ? $this->withdraw() : $php->set($changes);
                }
            }, toResponse: true);
        }
    }

    /** @return list<string> the lines that report changes */
    private function changes(): array
    {
        return array_values(preg_grep('/^Cache-Group-Invalidation:/i', $this->lines));
    }

    public function method(): ?string
    {
        return $this->method;
    }

    public function capability(): string
    {
        return $this->capability;
    }

    public function isSent(): bool
    {
        return $this->sent;
    }

    /** Whether later changes have to be sent at once: the response was sent, and the request's end is not reported. */
    public function isLeft(): bool
    {
        return $this->sent && !$this->isEnded;
    }

    public function response(): Response
    {
        return $this->response;
    }

    public function beforeSending(callable $then): void
    {
        $this->then = $then;
    }

    public function atEnd(callable $then): void
    {
        RequestEnd::call($then);
    }
}
