<?php

/**
 * Counters of views in post meta, which plugins and themes raise by one while they render a page: those of a render
 * that no visitor sees (Pagewell-Reference) are not counted. All other meta is written.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Decides whether a write of post meta is a count; has no state.
 *
 * @internal
 */
final class ViewCounters
{
    private function __construct()
    {
    }

    /** Leaves counts of this request out. */
    public static function pause(): void
    {
        add_filter('update_post_metadata', self::written(...), PHP_INT_MAX, 4);
        add_filter('add_post_metadata', self::written(...), PHP_INT_MAX, 4);
    }

    /** Filters `update_post_metadata` and `add_post_metadata`: another value than null ends the write. */
    private static function written(mixed $done, mixed $post = 0, mixed $key = '', mixed $value = null): mixed
    {
        if ($done !== null || !is_numeric($value) || !is_string($key)) {
            return $done;
        }
        $before = get_metadata_raw('post', (int) $post, $key, true) ?: 0;
        return is_numeric($before) && (float) $value === (float) $before + 1.0 ? true : null;
    }
}
