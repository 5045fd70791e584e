<?php

/**
 * Pagewell's control interface, as far as the plugin needs it: `POST /v1/invalidate`,
 * `POST /v1/explain` and `GET /v1/health`, over a Unix socket or TCP.
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

    /** The deadline of a call for which a page of the administration waits. */
    public const PAGE_SECONDS = 0.5;

    private const CONNECT_SECONDS = 1.0;

    /** An explanation may have all tags of a page. */
    private const ANSWER_BYTES_MAX = 1024 * 1024;

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
        $purged = self::purge(['tags' => $tags]);
        return is_string($purged) ? $purged : null;
    }

    /**
     * Purges pages, and returns after that is done.
     *
     * @param array{tags?: list<string>, urls?: list<string>} $call
     *
     * @return int|string how many pages were purged, or the failure
     */
    public static function purge(array $call): int|string
    {
        $said = self::call('POST', '/v1/invalidate', $call + self::site());
        return is_string($said) ? $said : (int) ($said['dropped'] ?? 0);
    }

    /**
     * Explains how the next request of a visitor to this URL is answered.
     *
     * @return Explanation|string the explanation, or why there is none
     */
    public static function explain(string $url, float $seconds = self::CALL_SECONDS): Explanation|string
    {
        $said = self::call('POST', '/v1/explain', ['url' => $url] + self::site(), $seconds);
        return is_string($said) ? $said : Explanation::of($said) ?? self::address() . ' answered, but is not Pagewell';
    }

    /** @return string|null the reason why it does not answer; null if it does */
    public static function health(): ?string
    {
        $said = self::call('GET', '/v1/health', []);
        return is_string($said) ? $said : null;
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

    /** @return array{site?: string} the site that calls are for */
    private static function site(): array
    {
        return defined('PAGEWELL_SITE') && !is_multisite() ? ['site' => (string) constant('PAGEWELL_SITE')] : [];
    }

    /**
     * An error handler of a plugin may turn all warnings into exceptions, even silenced ones.
     *
     * @param array<string, mixed> $content
     *
     * @return array<mixed>|string the response, or the failure
     */
    private static function call(string $method, string $path, array $content, float $seconds = self::CALL_SECONDS): array|string
    {
        set_error_handler(static fn (): bool => true);
        try {
            return self::asked($method, $path, $content === [] ? '' : (string) json_encode($content, JSON_INVALID_UTF8_SUBSTITUTE), $seconds);
        } finally {
            restore_error_handler();
        }
    }

    /** @return array<mixed>|string */
    private static function asked(string $method, string $path, string $content, float $seconds): array|string
    {
        $deadline = hrtime(true) + (int) ($seconds * 1e9);
        $address = self::address();
        $remote = str_starts_with($address, 'unix:') ? 'unix://' . substr($address, 5) : "tcp://$address";
        $token = self::token();
        $stream = @stream_socket_client($remote, $number, $why, min($seconds, self::CONNECT_SECONDS));
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
            return sprintf('%s did not answer within %s seconds', $address, $seconds);
        }
        if (preg_match('~^HTTP/1\.[01] 200 ~', $answer) === 1) {
            $said = json_decode(explode("\r\n\r\n", $answer, 2)[1] ?? '', true, 16);
            return is_array($said) ? $said : [];
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
