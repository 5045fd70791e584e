<?php

/**
 * Pagewell's control interface, at the address in wp-config.php, or at its default:
 *
 *     define('PAGEWELL_ADMIN', '127.0.0.1:8081');          or 'unix:/run/pagewell/admin.sock', or 'off'
 *     define('PAGEWELL_TOKEN_FILE', '/etc/pagewell/token');   or PAGEWELL_TOKEN
 *     define('PAGEWELL_SITE', 'example.org');                 one of several sites; not in a network,
 *                                                             whose blogs may be several of them
 *
 * The calls are made by the plugin's copy of the library's SocketClient (Core). One deadline,
 * CALL_SECONDS, covers connecting, sending and the response. Failures are returned as a sentence,
 * never thrown, and so are wrong values of these constants.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Purge;

use Pagewell\WordPress\Core\Exception\InvalidConfiguration;
use Pagewell\WordPress\Core\Exception\PagewellException;
use Pagewell\WordPress\Core\Explanation;
use Pagewell\WordPress\Core\Invalidation;
use Pagewell\WordPress\Core\SocketClient;

/**
 * Calls the control interface.
 *
 * @internal
 */
final class ControlClient
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

    /** @return list<array{name: string, effect: string, url: string}>|string cookies that prevent caching, see ControlCalls; or why they are unknown */
    public static function cookies(): array|string
    {
        return self::call(self::CALL_SECONDS, static fn (SocketClient $client): array => $client->cookies());
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

    /** Whether the control interface is switched off: changes are sent on responses only. */
    public static function isOff(): bool
    {
        return self::isNamed() && constant('PAGEWELL_ADMIN') === 'off';
    }

    /**
     * Returns the configured or default address.
     *
     * @throws InvalidConfiguration it is no address
     */
    public static function address(): string
    {
        $address = self::text('PAGEWELL_ADMIN') ?? SocketClient::ADDRESS;
        return SocketClient::isAddress($address) ? $address : throw new InvalidConfiguration("PAGEWELL_ADMIN is '$address': write an address (127.0.0.1:8081), a socket (unix:/run/pagewell/admin.sock) or off.");
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
        if (self::isOff()) {
            return 'The control interface is switched off (PAGEWELL_ADMIN=off)';
        }
        try {
            $site = defined('PAGEWELL_SITE') && !is_multisite() ? self::text('PAGEWELL_SITE') : null;
            $token = self::text('PAGEWELL_TOKEN');
            $file = $token === null ? self::text('PAGEWELL_TOKEN_FILE') : null;
            return $call(new SocketClient(self::address(), $file, $site, $seconds, self::token($token)));
        } catch (PagewellException $failure) {
            return rtrim($failure->getMessage(), '.');
        }
    }

    private static function token(?string $token): ?string
    {
        $token = $token === null ? null : trim($token);
        return $token === null || preg_match('/^[\x21-\x7e]+$/D', $token) === 1 ? $token : throw new InvalidConfiguration('PAGEWELL_TOKEN is no token.');
    }

    /** Returns the value of a constant of wp-config.php; null: it is not there. */
    private static function text(string $name): ?string
    {
        $value = defined($name) ? constant($name) : null;
        return $value === null || is_string($value) ? $value : throw new InvalidConfiguration("$name is no text, but of the type " . get_debug_type($value) . '.');
    }
}
