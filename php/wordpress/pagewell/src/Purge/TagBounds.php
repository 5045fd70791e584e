<?php

/**
 * How many names of changes are sent at once. More are replaced by `site`, which is every page.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Purge;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Tags;

/**
 * Bounds lists of names; has no state.
 *
 * @internal
 */
final class TagBounds
{
    /** Maximum number of names on a response. */
    public const ON_RESPONSE_MAX = 1000;

    /** Maximum number of names that wait for a call, and of one call. */
    public const IN_CALL_MAX = 5000;

    /** Average maximum length of a name, in bytes. */
    private const TAG_BYTES = 65;

    /** Maximum size of a response's names where another web server passes it on, in bytes: nginx accepts 4 KB of header section. */
    private const BYTES_BEHIND_SERVER = 2000;

    private function __construct()
    {
    }

    /**
     * @param array<string, true> $tags
     *
     * @return array<string, true>
     */
    public static function onResponse(array $tags): array
    {
        return self::bounded($tags, self::ON_RESPONSE_MAX, Front::isGivenByIt() ? self::ON_RESPONSE_MAX * self::TAG_BYTES : self::BYTES_BEHIND_SERVER);
    }

    /**
     * @param array<string, true> $tags
     *
     * @return array<string, true>
     */
    public static function inCall(array $tags): array
    {
        return self::bounded($tags, self::IN_CALL_MAX, self::IN_CALL_MAX * self::TAG_BYTES);
    }

    /**
     * Returns the names that replace these, because they are too many.
     *
     * @param array<string, true> $tags
     *
     * @return array<string, true>
     */
    public static function whole(array $tags): array
    {
        return array_fill_keys(Tags::everything(array_map('strval', array_keys($tags))), true);
    }

    /**
     * @param array<string, true> $tags
     *
     * @return array<string, true>
     */
    private static function bounded(array $tags, int $most, int $bytes): array
    {
        $fits = count($tags) <= $most && strlen(implode('', array_keys($tags))) + 4 * count($tags) <= $bytes;
        return $fits ? $tags : self::whole($tags);
    }
}
