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

    /** Tables without a name, by the words in theirs: nothing else shows what the table of a plugin is for. */
    private const NAMELESS = '/(^|_)(sessions?|logs?|carts?|stat(istic)?s?|visits?|visitors?|hits?|views?|queues?|locks?|caches?|wc_\w+_lookup|reserved_stock|webhooks?|actionscheduler|actions|claims|search|index(able|ables)?|wf\w*|rate_limits?)(_|$)/i';

    /** A text in a statement, which may look like the name of a table. */
    private const TEXT = '/\'(?:[^\'\\\\]++|\\\\.|\'\')*+\'|"(?:[^"\\\\]++|\\\\.|"")*+"/s';

    /** Maximum length of a statement that is looked at, in bytes. */
    private const BYTES_MAX = 20_000;

    /** Tables with copies of posts. */
    private const COPIES = '/^wc_(product_meta|product_attributes|category)_lookup$/';

    /** WordPress's own tables, of whose rows hooks tell. Plugins add theirs to the list that $wpdb has. */
    private const TOLD = ['posts', 'comments', 'links', 'postmeta', 'terms', 'term_taxonomy', 'term_relationships', 'termmeta', 'commentmeta', 'users', 'usermeta'];

    /** WordPress's own tables: none of them has a name. */
    private const OWN = [...self::TOLD, 'options', 'site', 'sitemeta', 'blogs', 'blogmeta', 'signups', 'registration_log'];

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
     * The tables whose statements do not count beside the tags: none, unless the filter says that nothing writes them
     * past WordPress's functions. `true` stands for WordPress's own, of whose rows the tags tell, and for copies of them.
     *
     * @return list<string> with the prefix
     */
    public static function tagged(): array
    {
        $wpdb = $GLOBALS['wpdb'];
        $tables = apply_filters('pagewell_tagged_tables', false);
        if ($tables === true) {
            $own = array_intersect_key($wpdb->tables('blog') + $wpdb->tables('global'), array_flip(self::TOLD));
            $tables = [...array_values($own), ...array_map(static fn (string $table): string => $wpdb->prefix . $table, array_keys(self::$copies))];
        }
        return is_array($tables) ? array_values(array_filter($tables, is_string(...))) : [];
    }

    /** @return list<string> */
    private static function names(string $query): array
    {
        $named = array_filter(self::others($query), static fn (string $table): bool => preg_match(self::NAMELESS, $table) !== 1);
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
        $others = array_values(array_diff(array_unique($found[1]), self::OWN));
        self::$copies += array_fill_keys((array) preg_grep(self::COPIES, $others), true);
        return $others;
    }
}
