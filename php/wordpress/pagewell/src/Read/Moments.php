<?php

/**
 * The next moment at which the posts of a page look different by themselves: a sale begins or ends, an event is over,
 * a post expires. It is in the meta of the post, and ends the lifetime of the page. The same for a text such as "3 hours
 * ago": the page may be older by a tenth of that, and by an hour at most. The tag `ages` says
 * so: a trial does not judge ages on such a page (crates/server/audit/src/comparison.rs).
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Reads the meta that WordPress has loaded for the page, and the ages that it shows.
 *
 * @internal
 */
final class Moments
{
    /** Meta of WooCommerce, The Events Calendar, PublishPress Future. A time in seconds, or a date of the site. */
    private const KEYS = ['_sale_price_dates_from', '_sale_price_dates_to', '_EventStartDate', '_EventEndDate', '_expiration-date'];

    /** Minimum and maximum TTL of a page because of an age that it shows, in seconds. */
    private const AGE_SECONDS_MIN = 60;
    private const AGE_SECONDS_MAX = 3_600;

    /** The tag of a page that shows an age. Nothing purges it. */
    private const AGES = 'ages';

    /** BuddyPress writes the activity of a member once in so many seconds, also when the member only looks at a page. */
    private const ACTIVITY_SECONDS = 300;

    /** Whether the text of a later moment is being made. */
    private static bool $isLater = false;

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

    /** Limits the TTL until the next scheduled post: WordPress publishes it when PHP runs next. */
    public static function ofSchedule(): void
    {
        foreach ((array) _get_cron_array() as $time => $hooks) {
            if (isset($hooks['publish_future_post'])) {
                Page::freshFor(max(1, (int) $time - time()));
                return;
            }
        }
    }

    /** A difference of two times is shown: filter `human_time_diff`. */
    public static function difference(mixed $shown, mixed $difference, mixed $from = 0, mixed $to = 0): mixed
    {
        return self::age($shown, $from, $to);
    }

    /** The same of bbPress and BuddyPress. Only an age, which ends now, gets older; plugins count it in the time of the site, too. */
    public static function age(mixed $shown, mixed $from = 0, mixed $to = 0): mixed
    {
        if (self::$isLater) {
            return $shown;
        }
        $to = self::time($to) ?: time();
        if (min(abs($to - time()), abs($to - time() - (int) ((float) get_option('gmt_offset') * HOUR_IN_SECONDS))) < MINUTE_IN_SECONDS) {
            $seconds = intdiv(abs($to - self::time($from)), 10);
            if ($seconds <= self::AGE_SECONDS_MAX || !self::isSameLater($shown, $from, $to)) {
                Page::uses(self::AGES);
                Page::freshFor(max(self::AGE_SECONDS_MIN, min($seconds, self::AGE_SECONDS_MAX)));
            }
        }
        return $shown;
    }

    /** The last activity of a member is shown: filter `bp_core_get_last_activity`. Views change nothing that has a tag. */
    public static function activity(mixed $shown): mixed
    {
        Page::uses(self::AGES);
        Page::freshFor(self::ACTIVITY_SECONDS);
        return $shown;
    }

    /** Whether the text is the same for as long as a page lives at most: "9 months ago". */
    private static function isSameLater(mixed $shown, mixed $from, int $to): bool
    {
        // Each of the filters has the name of the function that applies it.
        $function = current_filter();
        if (!in_array($function, ['human_time_diff', 'bbp_get_time_since', 'bp_core_time_since'], true) || !function_exists($function)) {
            return false;
        }
        self::$isLater = true;
        try {
            return $function($from, $to + Page::LIFETIME_SECONDS_MAX) === $shown;
        } finally {
            self::$isLater = false;
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
