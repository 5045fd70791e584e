<?php

/**
 * Tables that are not WordPress's own: no hook tells of their rows, but each statement passes the filter `query`.
 *
 *     a page that reads wp_woocommerce_tax_rates   table:woocommerce_tax_rates
 *     a write to it, in a request that may write   the same name has changed
 *
 * A page view that writes such a table changes nothing: it counts, or fills a cache. Tables of visits, sessions, logs
 * and queues have no names, nor have copies of posts (lookup): their rows are written all the time, and no page that
 * is the same for everybody shows them.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/**
 * Finds the tables of a statement.
 *
 * @internal
 */
final class Tables
{
    private const READS = '/^\s*\(*\s*(SELECT|SHOW|DESC|DESCRIBE|EXPLAIN|SET|START|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|USE|WITH)\b/i';

    private const SILENT = '/(^|_)(sessions?|logs?|carts?|stat(istic)?s?|visits?|visitors?|hits?|views?|queues?|locks?|caches?|lookup|reserved_stock|webhooks?|actionscheduler|actions|claims|search|index(able|ables)?|wf\w*|rate_limits?)(_|$)/i';

    /** A text in a statement, which may look like the name of a table. */
    private const TEXT = '/\'(?:[^\'\\\\]++|\\\\.|\'\')*+\'|"(?:[^"\\\\]++|\\\\.|"")*+"/s';

    /** Maximum length of a statement that is looked at, in bytes. */
    private const BYTES_MAX = 20_000;

    /** Tables with copies of posts. */
    private const COPIES = '/(^|_)lookup(_|$)/';

    /** @var array<string, true> those that this request has named */
    private static array $copies = [];

    private function __construct()
    {
    }

    /** @return list<string> names for the tables of a statement that only reads */
    public static function read(string $query): array
    {
        return preg_match(self::READS, $query) === 1 ? self::names($query) : [];
    }

    /** @return list<string> names for the tables of any other statement */
    public static function written(string $query): array
    {
        return preg_match(self::READS, $query) === 1 ? [] : self::names($query);
    }

    /** Whether a statement has a table that is not WordPress's own, copies of its data included. */
    public static function hasOthers(string $query): bool
    {
        return self::others($query) !== [];
    }

    /**
     * WordPress's own tables, whose changes the tags of a page tell, and copies of them. Options are not among them: the
     * tags tell only of settings.
     *
     * @return list<string> with the prefix
     */
    public static function tagged(): array
    {
        $wpdb = $GLOBALS['wpdb'];
        $own = array_diff_key($wpdb->tables('blog') + $wpdb->tables('global'), ['options' => true, 'sitemeta' => true]);
        $copies = array_map(static fn (string $table): string => $wpdb->prefix . $table, array_keys(self::$copies));
        return array_values(array_filter((array) apply_filters('pagewell_tagged_tables', [...array_values($own), ...$copies]), is_string(...)));
    }

    /** @return list<string> */
    private static function names(string $query): array
    {
        $named = array_filter(self::others($query), static fn (string $table): bool => preg_match(self::SILENT, $table) !== 1);
        return array_values(array_map(static fn (string $table): string => "table:$table", $named));
    }

    /** @return list<string> tables, without the prefix */
    private static function others(string $query): array
    {
        $wpdb = $GLOBALS['wpdb'];
        $code = (string) preg_replace(self::TEXT, '?', substr($query, 0, self::BYTES_MAX));
        if (preg_match_all('/(?<![\w$])' . preg_quote((string) $wpdb->prefix, '/') . '(\w+)/', $code, $found) < 1) {
            return [];
        }
        $others = array_values(array_diff(array_unique($found[1]), $wpdb->tables('all', false)));
        self::$copies += array_fill_keys((array) preg_grep(self::COPIES, $others), true);
        return $others;
    }
}
