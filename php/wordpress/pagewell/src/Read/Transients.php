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
 * WooCommerce keeps the products that a query found until a counter moves, which says nothing of the query. So in a
 * page that Pagewell may store the query runs, and is looked at like any other.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Names transients.
 *
 * @internal
 */
final class Transients
{
    private const OPTION = '_transient_';

    /** Times, versions, numbers of terms, bookkeeping, and those of WordPress. */
    private const SILENT = '/^(timeout_|is_multi_author$|doing_cron$|global_styles|wp_|oembed_|dash_|update_|feed_|rss_|settings_errors|health-check|pagewell_|theme_roots$|plugin_slugs$|dirsize_cache$|random_seed$)|-transient-version$|(^|_)term_counts$/';

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
            $name === null || Page::uses($name);
        }
        return $value;
    }

    /** Returns the name for a transient; null if it has none. */
    public static function name(string $transient): ?string
    {
        return preg_match(self::SILENT, $transient) === 1 ? null : "transient:$transient";
    }
}
