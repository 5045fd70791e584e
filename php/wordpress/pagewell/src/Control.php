<?php

/**
 * Pagewell's control interface, as far as the plugin needs it: `POST /v1/invalidate` and
 * `GET /v1/health`, over a Unix socket or TCP.
 *
 * The address is in wp-config.php; without it, the default of Pagewell is used:
 *
 *     define('PAGEWELL_ADMIN', '127.0.0.1:8081');          or 'unix:/run/pagewell/admin.sock'
 *     define('PAGEWELL_TOKEN_FILE', '/etc/pagewell/token');   or PAGEWELL_TOKEN
 *     define('PAGEWELL_SITE', 'example.org');                 one of several sites; not in a network,
 *                                                             whose blogs may be several of them
 *
 * One deadline, CALL_SECONDS, covers connecting, sending and the response. A host name is resolved
 * before, by the system. Failures are returned as a sentence, never thrown.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Calls the control interface. */
final class Control
{
    /** The deadline of a call. */
    public const CALL_SECONDS = 3.0;

    private const CONNECT_SECONDS = 1.0;
    private const ANSWER_BYTES_MAX = 65_536;

    /** Maximum number of bytes sent or read at once. */
    private const PIECE_BYTES = 65_536;

    /**
     * Purges every page with one of these names, and returns after that is done.
     *
     * @param list<string> $tags
     *
     * @return string|null the failure; null if it is done
     */
    public static function invalidate(array $tags): ?string
    {
        $call = ['tags' => $tags];
        if (defined('PAGEWELL_SITE') && !is_multisite()) {
            $call['site'] = (string) constant('PAGEWELL_SITE');
        }
        return self::call('POST', '/v1/invalidate', (string) json_encode($call, JSON_INVALID_UTF8_SUBSTITUTE));
    }

    /** @return string|null the reason why it does not answer; null if it does */
    public static function health(): ?string
    {
        return self::call('GET', '/v1/health', '');
    }

    /** Whether the address is configured. */
    public static function isNamed(): bool
    {
        return defined('PAGEWELL_ADMIN');
    }

    /** Returns the configured or default address. */
    public static function address(): string
    {
        return self::isNamed() ? (string) constant('PAGEWELL_ADMIN') : '127.0.0.1:8081';
    }

    /** An error handler of a plugin may turn all warnings into exceptions, even silenced ones. */
    private static function call(string $method, string $path, string $content): ?string
    {
        set_error_handler(static fn (): bool => true);
        try {
            return self::asked($method, $path, $content);
        } finally {
            restore_error_handler();
        }
    }

    private static function asked(string $method, string $path, string $content): ?string
    {
        $deadline = hrtime(true) + (int) (self::CALL_SECONDS * 1e9);
        $address = self::address();
        $remote = str_starts_with($address, 'unix:') ? 'unix://' . substr($address, 5) : "tcp://$address";
        $token = self::token();
        $stream = @stream_socket_client($remote, $number, $why, self::CONNECT_SECONDS);
        if ($stream === false) {
            return "no connection to $address: $why";
        }
        stream_set_blocking($stream, false);
        $head = "$method $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
            . ($token === '' ? '' : "Authorization: Bearer $token\r\n")
            . 'Content-Length: ' . strlen($content) . "\r\n\r\n";
        $answer = self::send($stream, $head . $content, $deadline) ? self::answer($stream, $deadline) : null;
        fclose($stream);
        if ($answer === null) {
            return sprintf('%s did not answer within %d seconds', $address, self::CALL_SECONDS);
        }
        if (preg_match('~^HTTP/1\.[01] 200 ~', $answer)) {
            return null;
        }
        return "$address answered: " . ($answer === '' ? 'nothing' : trim(substr($answer, 0, 400)));
    }

    /**
     * @param resource $stream
     *
     * @return bool false after the deadline; true also if the other side has closed the connection, because it may have answered
     */
    private static function send($stream, string $bytes, int $deadline): bool
    {
        for ($sent = 0; $sent < strlen($bytes); $sent += $written) {
            if (!self::isReady($stream, true, $deadline)) {
                return false;
            }
            $written = @fwrite($stream, substr($bytes, $sent, self::PIECE_BYTES));
            if ($written === false) {
                return true;
            }
        }
        return true;
    }

    /**
     * @param resource $stream
     *
     * @return string|null null after the deadline
     */
    private static function answer($stream, int $deadline): ?string
    {
        $answer = '';
        while (strlen($answer) < self::ANSWER_BYTES_MAX && !feof($stream)) {
            if (!self::isReady($stream, false, $deadline)) {
                return null;
            }
            $answer .= (string) @fread($stream, self::PIECE_BYTES);
        }
        return $answer;
    }

    /**
     * Waits until bytes can be written or read.
     *
     * @param resource $stream
     *
     * @return bool false when the time is over
     */
    private static function isReady($stream, bool $toWrite, int $deadline): bool
    {
        $left = intdiv($deadline - hrtime(true), 1000);
        [$read, $write, $none] = $toWrite ? [[], [$stream], []] : [[$stream], [], []];
        return $left > 0 && (int) @stream_select($read, $write, $none, intdiv($left, 1_000_000), $left % 1_000_000) > 0;
    }

    private static function token(): string
    {
        if (defined('PAGEWELL_TOKEN')) {
            return trim((string) constant('PAGEWELL_TOKEN'));
        }
        return defined('PAGEWELL_TOKEN_FILE') ? trim((string) @file_get_contents((string) constant('PAGEWELL_TOKEN_FILE'))) : '';
    }
}
