<?php

/**
 * Pagewell's control interface, at the address in wp-config.php, or at its default:
 *
 *     define('PAGEWELL_ADMIN', '127.0.0.1:8081');          or 'unix:/run/pagewell/admin.sock'
 *     define('PAGEWELL_TOKEN_FILE', '/etc/pagewell/token');   or PAGEWELL_TOKEN
 *     define('PAGEWELL_SITE', 'example.org');                 one of several sites; not in a network,
 *                                                             whose blogs may be several of them
 *
 * The calls are made by the plugin's copy of the library's SocketClient (Core). One deadline,
 * CALL_SECONDS, covers connecting, sending and the response. Failures are returned as a sentence,
 * never thrown.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Tell;

use Pagewell\WordPress\Core\Exception\PagewellException;
use Pagewell\WordPress\Core\Explanation;
use Pagewell\WordPress\Core\Invalidation;
use Pagewell\WordPress\Core\SocketClient;

/** Calls the control interface. */
final class Control
{
    /** The deadline of a call. */
    public const CALL_SECONDS = 3.0;

    /** The deadline of a call for which a page of the site waits. */
    public const PAGE_SECONDS = 0.5;

    /**
     * Purges every page with one of these names, and returns after that is done.
     *
     * @param list<string> $tags
     *
     * @return string|null the failure; null if it is done
     */
    public static function invalidate(array $tags): ?string
    {
        $purged = self::purge(new Invalidation($tags));
        return is_string($purged) ? $purged : null;
    }

    /**
     * Purges pages, and returns after that is done.
     *
     * @return int|string how many pages were purged, or the failure
     */
    public static function purge(Invalidation $pages): int|string
    {
        return self::call(self::CALL_SECONDS, static fn (SocketClient $client): int => $client->invalidate($pages)->pages);
    }

    /**
     * Explains how the next request of a visitor to this URL is answered.
     *
     * @return Explanation|string the explanation, or why there is none
     */
    public static function explain(string $url, float $seconds = self::CALL_SECONDS): Explanation|string
    {
        return self::call($seconds, static fn (SocketClient $client): Explanation => $client->explain($url));
    }

    /** @return string|null the reason why it does not answer; null if it does */
    public static function health(): ?string
    {
        return self::call(self::CALL_SECONDS, static function (SocketClient $client): null|string {
            $client->health();
            return null;
        });
    }

    /** Whether the address is configured. */
    public static function isNamed(): bool
    {
        return defined('PAGEWELL_ADMIN');
    }

    /** Returns the configured or default address. */
    public static function address(): string
    {
        return self::isNamed() ? (string) constant('PAGEWELL_ADMIN') : SocketClient::ADDRESS;
    }

    /**
     * @template T
     *
     * @param \Closure(SocketClient): T $call
     *
     * @return T|string the failure
     */
    private static function call(float $seconds, \Closure $call): mixed
    {
        $site = defined('PAGEWELL_SITE') && !is_multisite() ? (string) constant('PAGEWELL_SITE') : null;
        $file = defined('PAGEWELL_TOKEN_FILE') && !defined('PAGEWELL_TOKEN') ? (string) constant('PAGEWELL_TOKEN_FILE') : null;
        $token = defined('PAGEWELL_TOKEN') ? trim((string) constant('PAGEWELL_TOKEN')) : null;
        try {
            return $call(new SocketClient(self::address(), $file, $site, $seconds, $token));
        } catch (PagewellException $failure) {
            return rtrim($failure->getMessage(), '.');
        }
    }
}
