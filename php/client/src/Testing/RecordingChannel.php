<?php

/**
 * A response that is never sent: for the tests of an application that declares its data.
 *
 *     $channel = RecordingChannel::install(method: 'POST');
 *     $comments->add(4, 'Ada', 'First!');          // calls changed('comments', news: 4)
 *     self::assertSame([...], $channel->lines());
 */

declare(strict_types=1);

namespace Pagewell\Testing;

use Pagewell\CollectedLines;
use Pagewell\Core\Credentials;
use Pagewell\Core\Response;
use Pagewell\Core\ResponseChannel;
use Pagewell\RequestScope;

/** Records the lines for tests. */
final class RecordingChannel implements ResponseChannel
{
    use CollectedLines;

    /** @var (callable(): void)|null */
    private $then = null;

    /** @var list<callable(): void> */
    private array $atEnd = [];

    private bool $sent = false;

    /**
     * @param string|null $method  of the simulated request; null: a command
     * @param int         $status  of its response
     * @param bool        $session whether a session is open
     * @param RecordingClient $client records the calls of the control interface
     * @param string      $capability Surrogate-Capability of the request
     * @param Credentials $credentials cookies and Authorization of the request
     * @param bool        $isFronted whether Pagewell is in front
     */
    public function __construct(
        private readonly ?string $method = 'GET',
        private readonly int $status = 200,
        private readonly bool $session = false,
        public readonly RecordingClient $client = new RecordingClient(),
        private readonly string $capability = '',
        private readonly Credentials $credentials = new Credentials(),
        private readonly bool $isFronted = true,
    ) {
    }

    /** Makes uses(), freshFor() and changed() use a new channel, and returns it. */
    public static function install(?string $method = 'GET', int $status = 200, bool $session = false, string $capability = '', Credentials $credentials = new Credentials()): self
    {
        $channel = new self($method, $status, $session, capability: $capability, credentials: $credentials);
        RequestScope::begin($channel, $channel->client);
        return $channel;
    }

    /** Simulates that the header section is sent. */
    public function send(): void
    {
        if (!$this->sent && $this->then !== null) {
            ($this->then)();
        }
        $this->sent = true;
    }

    /** Simulates the end of the request or command. */
    public function end(): void
    {
        for ($n = 0; $n < count($this->atEnd); $n++) {
            ($this->atEnd[$n])();
        }
        $this->atEnd = [];
    }

    /**
     * @return list<string> the lines set so far; the dependencies of a page are added by send()
     */
    public function lines(): array
    {
        return $this->lines;
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

    public function response(): Response
    {
        return new Response($this->method ?? 'GET', $this->status, $this->lines, $this->session, credentials: $this->credentials, isFronted: $this->isFronted);
    }

    public function beforeSending(callable $then): void
    {
        $this->then = $then;
    }

    public function atEnd(callable $then): void
    {
        $this->atEnd[] = $then;
    }
}
