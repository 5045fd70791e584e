<?php

/**
 * The next moment at which the posts of a page look different by themselves: a sale begins or ends, an event is over,
 * a post expires. It is in the meta of the post, and ends the lifetime of the page.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Reads the meta that WordPress has loaded for the page; has no state.
 *
 * @internal
 */
final class Moments
{
    /** Meta of WooCommerce, The Events Calendar, PublishPress Future. A time in seconds, or a date of the site. */
    private const KEYS = ['_sale_price_dates_from', '_sale_price_dates_to', '_EventStartDate', '_EventEndDate', '_expiration-date'];

    private function __construct()
    {
    }

    /**
     * Limits the TTL of the page.
     *
     * @param list<int> $posts that it shows
     */
    public static function limit(array $posts): void
    {
        $keys = (array) apply_filters('pagewell_moments', self::KEYS);
        foreach ($posts as $post) {
            // As loaded: a further read would be a dependency of its own.
            $meta = wp_cache_get($post, 'post_meta');
            foreach (is_array($meta) ? array_intersect_key($meta, array_flip($keys)) : [] as $values) {
                foreach ((array) $values as $value) {
                    $seconds = self::time($value) - time();
                    $seconds > 0 && Page::freshFor($seconds);
                }
            }
        }
    }

    private static function time(mixed $value): int
    {
        if (is_numeric($value)) {
            return (int) $value;
        }
        $date = is_string($value) && $value !== '' ? date_create_immutable($value, wp_timezone()) : false;
        return $date === false ? 0 : $date->getTimestamp();
    }
}
