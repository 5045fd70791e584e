<?php

/**
 * Pagewell's control interface, as far as the plugin needs it: `POST /v1/invalidate` and
 * `GET /v1/health`, over a Unix socket or TCP.
 *
 * Where it is, wp-config.php says; without a word it is where Pagewell listens by itself:
 *
 *     define('PAGEWELL_CONTROL', '127.0.0.1:8081');          or 'unix:/run/pagewell/admin.sock'
 *     define('PAGEWELL_TOKEN_FILE', '/etc/pagewell/token');   or PAGEWELL_TOKEN
 *     define('PAGEWELL_SITE', 'example.org');                 one of several sites; not in a network,
 *                                                             whose blogs may be several of them
 *
 * A call takes a few seconds at most; a fault is a sentence, never an exception.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Calls Pagewell. */
final class Control
{
    private const CONNECT_SECONDS = 1.0;
    private const ANSWER_SECONDS = 3;
    private const ANSWER_BYTES_MAX = 65_536;

    /**
     * Drops every page that has one of these names; returns when it is done.
     *
     * @param list<string> $tags
     *
     * @return string|null what went wrong; null when it is done
     */
    public static function invalidate(array $tags): ?string
    {
        $call = ['tags' => $tags];
        if (defined('PAGEWELL_SITE') && !is_multisite()) {
            $call['site'] = (string) constant('PAGEWELL_SITE');
        }
        return self::call('POST', '/v1/invalidate', (string) json_encode($call, JSON_INVALID_UTF8_SUBSTITUTE));
    }

    /** @return string|null why it does not answer; null when it does */
    public static function health(): ?string
    {
        return self::call('GET', '/v1/health', '');
    }

    /** Whether somebody has said where it is. */
    public static function isNamed(): bool
    {
        return defined('PAGEWELL_CONTROL');
    }

    /** Where it is looked for. */
    public static function address(): string
    {
        return self::isNamed() ? (string) constant('PAGEWELL_CONTROL') : '127.0.0.1:8081';
    }

    /** A plugin may have made exceptions of all warnings, of silenced ones as well. */
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
        $address = self::address();
        $remote = str_starts_with($address, 'unix:') ? 'unix://' . substr($address, 5) : "tcp://$address";
        $stream = @stream_socket_client($remote, $number, $why, self::CONNECT_SECONDS);
        if ($stream === false) {
            return "no connection to $address: $why";
        }
        stream_set_timeout($stream, self::ANSWER_SECONDS);
        $token = self::token();
        $head = "$method $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
            . ($token === '' ? '' : "Authorization: Bearer $token\r\n")
            . 'Content-Length: ' . strlen($content) . "\r\n\r\n";
        $written = @fwrite($stream, $head . $content);
        $answer = $written === strlen($head . $content) ? (string) @stream_get_contents($stream, self::ANSWER_BYTES_MAX) : '';
        fclose($stream);
        if (preg_match('~^HTTP/1\.[01] 200 ~', $answer)) {
            return null;
        }
        return "$address answered: " . ($answer === '' ? 'nothing' : trim(substr($answer, 0, 400)));
    }

    private static function token(): string
    {
        if (defined('PAGEWELL_TOKEN')) {
            return trim((string) constant('PAGEWELL_TOKEN'));
        }
        return defined('PAGEWELL_TOKEN_FILE') ? trim((string) @file_get_contents((string) constant('PAGEWELL_TOKEN_FILE'))) : '';
    }
}
