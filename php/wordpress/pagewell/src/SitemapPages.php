<?php

/**
 * How many pages the sitemaps of a type of posts, or of a taxonomy, have: all that the index of sitemaps
 * shows of them.
 *
 *     pages:post/page:2      the index has two pages for this type
 *     pages:post/page        the index has any number of them
 *     pages:term/category:1  the same for a taxonomy
 *
 * The index has the number in its name. After the write of one post, the numbers next to the one that is
 * counted then are outdated. So the order in which concurrent requests write and count does not matter, unless
 * thousands do at once: the last one to count finds the last number. A command may write several, up to
 * COUNTS_MAX, because so few change the number of pages by one at most. Any number is outdated after more, and
 * in a transaction, in which a request may not see what others have written.
 *
 * Counted once per command, or per turn of a long one (Queue); in a request whose response reports the
 * change, at once.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Purge\Queue;
use Pagewell\WordPress\Read\Frames;
use Pagewell\WordPress\Read\Page;

/**
 * Names the numbers of sitemaps, while a page is rendered and after a write.
 *
 * @internal
 */
final class SitemapPages
{
    /** URLs of a sitemap by default. With another number (filter wp_sitemaps_max_urls), the names of lists are used. */
    private const URLS = 2000;

    /** Maximum number of counts per type in one request; above it, any number is outdated. */
    private const COUNTS_MAX = 20;

    /** Filters by which a plugin could count in another way. */
    private const FILTERS_OF_POSTS = ['found_posts', 'found_posts_query'];
    private const FILTERS_OF_TERMS = ['terms_clauses', 'terms_pre_query', 'list_terms_exclusions', 'get_terms_fields'];

    /** Arguments that do not affect how many terms are found. */
    private const HOW = ['taxonomy', 'hide_empty', 'fields', 'orderby', 'order', 'number', 'hierarchical', 'update_term_meta_cache', 'cache_domain', 'cache_results', 'count', 'get', 'pad_counts'];

    /** @var array<string, int> types whose pages are counted → the number of pages that the index shows */
    private static array $shown = [];

    /** @var array<string, int> by blog and type: how many have come or gone */
    private static array $turned = [];

    /** @var array<string, int> by blog and type: how many the response has reported */
    private static array $told = [];

    /** Returns which sitemap the request is for; empty: none, or WordPress has not looked at the request yet. */
    public static function name(): string
    {
        return ($GLOBALS['wp_query'] ?? null) instanceof \WP_Query ? (string) get_query_var('sitemap') : '';
    }

    /** Whether this query, which is about to run, counts the pages of one type. */
    public static function isCountOf(\WP_Query $query): bool
    {
        $sql = '~^\s*SELECT\s+SQL_CALC_FOUND_ROWS\s+(\w+)\.ID\s+FROM\s+\1\s+WHERE\s+1=1\s+AND\s+\1\.post_type = \'([^\'\\\\]+)\' AND \(\(\1\.post_status = \'publish\'\)\)\s+ORDER BY\s+\1\.ID ASC\s+LIMIT\s+0,\s*' . self::URLS . '\s*$~';
        return self::isIndex(self::FILTERS_OF_POSTS, 'WP_Query::get_posts', 'WP_Query::query', 'WP_Query::__construct', 'WP_Sitemaps_Posts::get_max_num_pages') && preg_match($sql, (string) ($query->request ?? ''), $found) === 1 && $found[1] === $GLOBALS['wpdb']->posts && self::counts("post/$found[2]");
    }

    /** Whether this query, which is about to run, counts the pages of one taxonomy. */
    public static function isCountOfTerms(mixed $query): bool
    {
        if (!$query instanceof \WP_Term_Query || !self::isIndex(self::FILTERS_OF_TERMS, 'WP_Term_Query::get_terms', 'WP_Term_Query::query', 'get_terms', 'wp_count_terms', 'WP_Sitemaps_Taxonomies::get_max_num_pages')) {
            return false;
        }
        $asked = $query->query_vars;
        $usual = $query->query_var_defaults;
        foreach (array_diff_key($asked, array_flip(self::HOW)) as $name => $value) {
            if (!empty($value) && $value !== ($usual[$name] ?? null)) {
                return false;
            }
        }
        $taxonomies = array_values((array) ($asked['taxonomy'] ?? []));
        $isPlain = $asked['fields'] === 'count' && !empty($asked['hide_empty']) && empty($asked['hierarchical']) && ($asked['get'] ?? '') !== 'all';
        return $isPlain && count($taxonomies) === 1 && is_string($taxonomies[0]) && wp_sitemaps_get_max_urls('term') === self::URLS && self::counts("term/$taxonomies[0]");
    }

    /** A page of a sitemap is listed in the index: filter `wp_sitemaps_index_entry`. */
    public static function entry(mixed $entry, mixed $kind = '', mixed $type = '', mixed $page = 0): mixed
    {
        if (is_string($kind) && is_string($type) && isset(self::$shown["$kind/$type"])) {
            self::$shown["$kind/$type"] = max(self::$shown["$kind/$type"], (int) $page);
        }
        return $entry;
    }

    /** Adds the dependencies when the index is complete. A row of the database does not say the number: `in:*`. */
    public static function finish(): void
    {
        foreach (self::$shown as $type => $pages) {
            Page::uses("pages:$type", "pages:$type:$pages", 'in:*', ...(str_starts_with($type, 'term/') ? ['filled:*'] : []));
        }
        self::$shown = [];
    }

    /** A post (`post/TYPE`) or a term (`term/TAXONOMY`) has come or gone. */
    public static function turned(string $type): void
    {
        $place = get_current_blog_id() . " $type";
        if (Front::canCarry()) {
            // The response must say it before its header section is sent.
            $times = self::$told[$place] = (self::$told[$place] ?? 0) + 1;
            Changes::add(...($times <= self::COUNTS_MAX ? self::outdated($type) : ["pages:$type"]));
            return;
        }
        self::$turned[$place] = (self::$turned[$place] ?? 0) + 1;
        Changes::comes();
    }

    /** Counts, and adds the numbers that are outdated. */
    public static function end(): void
    {
        [$turned, self::$turned] = [self::$turned, []];
        foreach ($turned as $place => $times) {
            [$blog, $type] = explode(' ', $place, 2);
            $elsewhere = is_multisite() && (int) $blog !== get_current_blog_id();
            $elsewhere && switch_to_blog((int) $blog);
            Changes::add(...($times <= self::COUNTS_MAX ? self::outdated($type) : ["pages:$type"]));
            $elsewhere && restore_current_blog();
        }
    }

    /** @return list<string> */
    private static function outdated(string $type): array
    {
        $count = Queue::mayBeInTransaction() ? null : self::count($type);
        if ($count === null) {
            return ["pages:$type"];
        }
        $now = self::pages($count);
        return [...($now > 0 ? ["pages:$type:" . ($now - 1)] : []), "pages:$type:" . ($now + 1)];
    }

    private static function pages(int $count): int
    {
        return (int) ceil(max(0, $count) / self::URLS);
    }

    /** As WordPress counts for the index; null if the database does not say. */
    private static function count(string $type): ?int
    {
        global $wpdb;
        [$kind, $name] = explode('/', $type, 2);
        $found = $wpdb->get_var($wpdb->prepare(
            $kind === 'post'
                ? "SELECT COUNT(*) FROM $wpdb->posts WHERE post_type = %s AND post_status = 'publish'"
                : "SELECT COUNT(*) FROM $wpdb->terms AS t JOIN $wpdb->term_taxonomy AS tt ON t.term_id = tt.term_id WHERE tt.taxonomy = %s AND tt.count > 0",
            $name
        ));
        return is_numeric($found) ? (int) $found : null;
    }

    /** @param list<string> $filters none of them may be in use */
    private static function isIndex(array $filters, string ...$callers): bool
    {
        return self::name() === 'index' && Frames::after(...$callers) !== [] && !Frames::isFiltered(...$filters);
    }

    private static function counts(string $type): bool
    {
        self::$shown[$type] ??= 0;
        return true;
    }
}
