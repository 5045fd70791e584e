<?php

/**
 * Calls Pagewell's control interface: over a Unix socket, or TCP with a token.
 *
 *     new SocketClient('unix:/run/pagewell/admin.sock', site: 'example.org')
 *
 * Purges pages (`POST /v1/invalidate`), explains them (`POST /v1/explain`), and asks whether
 * Pagewell answers (`GET /v1/health`). One connection per call, HTTP/1.1 (RFC 9112), without
 * redirects. One deadline covers connecting, sending and the response. It needs no extension and
 * does not support TLS.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Exception\UnreadableResponse;

/** The control interface by socket. */
final class SocketClient implements SiteClient, ExplanationClient
{
    /** The default address of Pagewell's control interface. */
    public const ADDRESS = '127.0.0.1:8081';

    /** Maximum time to connect, so that a machine that is away takes less than the deadline. */
    private const CONNECT_SECONDS = 1.0;

    /** Maximum number of bytes sent or read at once. */
    private const PIECE_BYTES = 65_536;

    /**
     * @param string      $address        `127.0.0.1:8081`, `[::1]:8081`, `unix:/run/pagewell/admin.sock`
     * @param string|null $tokenFile      read at each call, so that a new token needs no restart
     * @param string|null $site           host of the site that calls are for; null means every site
     * @param float       $timeoutSeconds the deadline of a call
     * @param string|null $token          the token itself, in place of a file
     */
    public function __construct(
        private readonly string $address = self::ADDRESS,
        private readonly ?string $tokenFile = null,
        public readonly ?string $site = null,
        private readonly float $timeoutSeconds = 2.0,
        private readonly ?string $token = null,
    ) {
    }

    /** Whether this is a valid address of the control interface: `host:port`, or `unix:` and a path. */
    public static function isAddress(string $address): bool
    {
        return preg_match('~^(?:unix:/.+|(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.\-]+):[0-9]{1,5})$~D', $address) === 1;
    }

    public function site(): ?string
    {
        return $this->site;
    }

    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        return (new ControlCalls($this->call(...), $this->site))->invalidate($invalidation);
    }

    public function explain(string $url, array $fields = []): Explanation
    {
        return (new ControlCalls($this->call(...), $this->site))->explain($url, $fields);
    }

    /**
     * Returns if Pagewell answers.
     *
     * @throws PagewellException see InvalidationClient::invalidate()
     */
    public function health(): void
    {
        (new ControlCalls(fn (string $path, string $body): array => $this->call($path, $body, 'GET'), $this->site))->health();
    }

    /**
     * Returns the cookies that most often prevented that a page was stored or used.
     *
     * @return list<array{name: string, effect: string, url: string}> see ControlCalls::cookies()
     *
     * @throws PagewellException see InvalidationClient::invalidate()
     */
    public function cookies(): array
    {
        return (new ControlCalls(fn (string $path, string $body): array => $this->call($path, $body, 'GET'), $this->site))->cookies();
    }

    /** @return array{int, string} status and content */
    private function call(string $path, string $body, string $method = 'POST'): array
    {
        // An error handler of the application may turn all warnings into exceptions, even silenced ones.
        set_error_handler(static fn (): bool => true);
        try {
            $token = $this->token ?? ControlCalls::token($this->tokenFile);
            $deadline = hrtime(true) + (int) ($this->timeoutSeconds * 1e9);
            $socket = $this->connect();
            $this->send($socket, $this->request($method, $path, $body, $token), $deadline);
            return self::read($this->answer($socket, $deadline));
        } finally {
            restore_error_handler();
            isset($socket) && fclose($socket);
        }
    }

    /**
     * Sends the IP address or `localhost` as Host. Pagewell refuses other names, because any name
     * can point to this machine.
     */
    private function request(string $method, string $path, string $body, ?string $token): string
    {
        return "$method $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
            . ($token === null ? '' : "Authorization: Bearer $token\r\n")
            . 'Content-Length: ' . strlen($body) . "\r\n\r\n$body";
    }

    /** @return resource */
    private function connect()
    {
        $unix = str_starts_with($this->address, 'unix:');
        if (!self::isAddress($this->address)) {
            throw new InvalidConfiguration("'{$this->address}' is not an address: write 127.0.0.1:8081 or unix:/run/pagewell/admin.sock.");
        }
        $remote = $unix ? 'unix://' . substr($this->address, 5) : "tcp://{$this->address}";
        $socket = @stream_socket_client($remote, $code, $text, min($this->timeoutSeconds, self::CONNECT_SECONDS));
        if ($socket === false) {
            throw new PagewellUnreachable("Pagewell is not at {$this->address}: $text. Start it, or set PAGEWELL_ADMIN to its admin address.", $code);
        }
        stream_set_blocking($socket, false);
        return $socket;
    }

    /** @param resource $socket */
    private function send($socket, string $bytes, int $deadline): void
    {
        for ($sent = 0; $sent < strlen($bytes); $sent += $written) {
            $this->wait($socket, true, $deadline);
            // In pieces, so that the rest of a large call is not copied each time.
            $written = @fwrite($socket, substr($bytes, $sent, self::PIECE_BYTES));
            if ($written === false) {
                return; // Perhaps it has answered already: that a call is too long, for instance.
            }
        }
    }

    /** @param resource $socket */
    private function answer($socket, int $deadline): string
    {
        $answer = '';
        while (strlen($answer) < ControlCalls::ANSWER_BYTES_MAX && !feof($socket)) {
            $this->wait($socket, false, $deadline);
            $answer .= (string) @fread($socket, 8192);
        }
        return $answer;
    }

    /** @param resource $socket */
    private function wait($socket, bool $toWrite, int $deadline): void
    {
        $left = intdiv(max(0, $deadline - hrtime(true)), 1000);
        [$read, $write, $none] = $toWrite ? [[], [$socket], []] : [[$socket], [], []];
        if ($left === 0 || @stream_select($read, $write, $none, intdiv($left, 1_000_000), $left % 1_000_000) === 0) {
            throw new PagewellUnreachable("Pagewell at {$this->address} did not answer within {$this->timeoutSeconds} seconds.");
        }
    }

    /** @return array{int, string} status and content */
    private static function read(string $answer): array
    {
        [$head, $content] = explode("\r\n\r\n", $answer, 2) + ['', ''];
        if (preg_match('~^HTTP/1\.[01] ([0-9]{3})[ \r]~', "$head\r", $found) !== 1) {
            throw $answer === '' ? new PagewellUnreachable('Pagewell closed the connection without a response.') : new UnreadableResponse(ControlCalls::OTHER_PROGRAM);
        }
        return [(int) $found[1], $content];
    }
}
