<?php

/**
 * Which block or widget of a page depends on which data: for `wp pagewell explain --readers`.
 *
 * The page is rendered once more for that, at its URL with a key that only this site can make (salts in
 * wp-config.php) and that is valid for one to two hours. The response has a field X-Pagewell-Readers for
 * each block, and is not cached. The rest of the page counts as `page`.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Records the blocks and widgets for each name of the running request, if they are asked for.
 *
 * @internal
 */
final class Readers
{
    public const PARAMETER = 'pagewell_readers';

    private const PERIOD_SECONDS = 3600;
    private const READERS_MAX = 50;
    private const LINE_BYTES = 2000;

    /** @var array<string, array<string, true>> names by reader */
    private static array $tags = [];

    /** Adds a name that the innermost block or widget reads. */
    public static function add(string $tag): void
    {
        $reader = isset($_GET[self::PARAMETER]) ? Frames::name() : null;
        if ($reader !== null && (isset(self::$tags[$reader]) || count(self::$tags) < self::READERS_MAX)) {
            self::$tags[$reader][$tag] = true;
        }
    }

    /** Returns a key for the next hour. */
    public static function key(): string
    {
        return self::keyOf(intdiv(time(), self::PERIOD_SECONDS));
    }

    /** Whether this request asks for the readers, with a valid key. */
    public static function areAsked(): bool
    {
        $key = $_GET[self::PARAMETER] ?? null;
        $now = intdiv(time(), self::PERIOD_SECONDS);
        return is_string($key) && (hash_equals(self::keyOf($now), $key) || hash_equals(self::keyOf($now - 1), $key));
    }

    /** @return list<string> a line for each reader: its name, and names of data, which may be cut at the end */
    public static function lines(): array
    {
        return array_map(static fn (string $reader, array $tags): string => substr($reader . ' ' . implode(' ', array_keys($tags)), 0, self::LINE_BYTES), array_keys(self::$tags), array_values(self::$tags));
    }

    private static function keyOf(int $period): string
    {
        return substr(wp_hash(self::PARAMETER . "|$period", 'nonce'), 0, 20);
    }
}
