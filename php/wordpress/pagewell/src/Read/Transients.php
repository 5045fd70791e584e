<?php

/**
 * Results that plugins keep in the database for a time (transients), such as the list of products on sale: what
 * was read for them is not read again. A plugin that deletes one says that its data have changed.
 *
 *     get_transient('on_sale')       transient:on_sale
 *     delete_transient('on_sale')    the same name has changed
 *
 * A transient that is only written is no change: a page view writes what it has just computed. Counters of versions,
 * and the transients of WordPress itself, are not named: their data pass other hooks.
 *
 * One that shows something and expires ends the lifetime of the page: markup of a theme, a list of posts. It was perhaps
 * made with another page, whose dependencies are not known here.
 *
 * WooCommerce keeps the products that a query found until a counter moves, which says nothing of the query. So in a
 * page that Pagewell may store the query runs, and is looked at like any other.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Observer;

/**
 * Names transients.
 *
 * @internal
 */
final class Transients
{
    private const OPTION = '_transient_';

    /** Transients without a name: times, versions, numbers of terms, bookkeeping, and those of WordPress. */
    private const NAMELESS = '/^(timeout_|is_multi_author$|doing_cron$|global_styles|wp_|oembed_|dash_|update_|feed_|rss_|settings_errors|health-check|pagewell_|theme_roots$|plugin_slugs$|dirsize_cache$|random_seed$)|-transient-version$|(^|_)term_counts$/';

    /** The results of queries for products. */
    private const QUERIES = 'wc_product_loop_';

    private function __construct()
    {
    }

    /** Filter `pre_option`. */
    public static function read(mixed $value, mixed $option): mixed
    {
        if (is_string($option) && str_starts_with($option, self::OPTION)) {
            $transient = substr($option, strlen(self::OPTION));
            if (str_starts_with($transient, self::QUERIES)) {
                return null;
            }
            $name = self::name($transient);
            if ($name !== null && !Page::has($name)) {
                Page::uses($name);
                add_filter("option_$option", Observer::of("option_$option", static fn (mixed $kept): mixed => self::found($kept, $transient)), PHP_INT_MAX);
            }
        }
        return $value;
    }

    /** In a persistent object cache they are no options: all that were asked for, by the filters that WordPress has run. */
    public static function finish(): void
    {
        foreach (wp_using_ext_object_cache() ? array_keys((array) ($GLOBALS['wp_filters'] ?? [])) : [] as $hook) {
            $name = str_starts_with((string) $hook, 'pre_transient_') ? self::name(substr((string) $hook, strlen('pre_transient_'))) : null;
            $name === null || Page::uses($name);
        }
    }

    private static function found(mixed $kept, string $transient): mixed
    {
        $ends = self::isShown($kept) ? (int) get_option(self::OPTION . "timeout_$transient", 0) : 0;
        $ends > time() && Page::freshFor($ends - time());
        return $kept;
    }

    /** Whether a value is markup, or names posts. */
    private static function isShown(mixed $value): bool
    {
        $first = is_array($value) ? reset($value) : $value;
        return is_string($value) ? str_contains($value, '<') : $first instanceof \WP_Post || $first instanceof \WP_Query || (is_array($value) && is_int($first));
    }

    /** Returns the name for a transient; null if it has none. */
    public static function name(string $transient): ?string
    {
        return preg_match(self::NAMELESS, $transient) === 1 ? null : "transient:$transient";
    }
}
