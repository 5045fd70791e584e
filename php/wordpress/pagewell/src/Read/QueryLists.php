<?php

/**
 * The posts that a query could have found: the part of a page's dependencies that its results do not show.
 *
 * As narrow as is certain. An archive depends on its term, author or date. A query ordered by date
 * depends on the list of its types, one by title on the names. A search depends on the texts of these
 * types. Any other query (an order by meta or by modification time, a plugin's own SQL) depends on any
 * data of these types.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\ProductStock;
use Pagewell\WordPress\Tables;
use Pagewell\WordPress\Tags;

/**
 * Reads the arguments and the SQL of a query; has no state.
 *
 * @internal
 */
final class QueryLists
{
    /** Orders that depend only on data whose changes count as changes of the list. */
    private const PLAIN_ORDERS = ['', 'none', 'id', 'date', 'post_date', 'type', 'post_type', 'parent', 'post_parent', 'menu_order'];

    /** Conditions on a post's text, and on other columns of it. */
    private const OF_TEXTS = ['s', 'title', 'exact', 'post_mime_type', 'ping_status', 'comment_status'];

    /** Orders that titles and URLs suffice for. */
    private const TITLE_ORDERS = ['title', 'post_title', 'name', 'post_name'];

    /** Orders that depend on texts, too. */
    private const TEXT_ORDERS = [...self::TITLE_ORDERS, 'relevance', 'comment_count'];

    /** Conditions on custom fields. */
    private const OF_META = ['meta_key', 'meta_value', 'meta_value_num', 'meta_query'];

    /** Maximum number of authors that are named individually. */
    private const AUTHORS_MAX = 50;

    /** Filters by which a plugin may change the conditions of a query, or its joins. */
    private const FILTERS = [
        'posts_search', 'posts_where', 'posts_where_paged', 'posts_where_request', 'posts_join', 'posts_join_paged', 'posts_join_request',
        'posts_clauses', 'posts_clauses_request', 'posts_request', 'posts_request_ids', 'posts_groupby', 'posts_groupby_request',
    ];

    /** Conditions on terms. */
    private const TERMS = [
        'cat', 'category_name', 'category__in', 'category__not_in', 'category__and',
        'tag', 'tag_id', 'tag__in', 'tag__not_in', 'tag__and', 'tag_slug__in', 'tag_slug__and', 'tax_query',
    ];

    private function __construct()
    {
    }

    /** @return list<string> */
    public static function couldFind(\WP_Query $query, bool $isAnswered): array
    {
        $vars = $query->query_vars;
        if ($query->is_singular() || $query->is_comment_feed()) {
            // Its results, or the lack of them, are named at the end.
            return [];
        }
        Page::uses(...self::authors($vars));
        if ($query->is_home() && empty($vars['ignore_sticky_posts'])) {
            Page::uses(Tags::STICKY);
        }
        $types = QueryTypes::of($query);
        if ($isAnswered) {
            // Another plugin has found them, by criteria of its own.
            return [...self::each('every', $types), ...ProductSources::ofQuery(null, $types)];
        }
        if (!empty($vars['post__in'])) {
            $what = self::asksForMeta($query) ? ['post:', 'stock:'] : ['text:'];
            $ids = array_slice((array) $vars['post__in'], 0, Page::TAGS_MAX);
            return array_merge(...array_map(static fn (string $of): array => array_map(static fn ($id): string => $of . (int) $id, $ids), $what));
        }
        if ($types === []) {
            return [];
        }
        $isOfText = self::has($vars, self::OF_TEXTS) || self::asksForMeta($query);
        if (!$isOfText && array_diff(self::orders($vars), self::PLAIN_ORDERS) === []) {
            return self::archive($query) ?? [...self::each('list', $types), ...QueryTerms::conditions($query)];
        }
        if (!$isOfText && array_diff(self::orders($vars), self::PLAIN_ORDERS, self::TITLE_ORDERS) === []) {
            // The titles of the results suffice if there are no others (Queries::finish).
            $narrow = self::archive($query);
            return $narrow ?? [...self::each('names', $types), ...QueryTerms::conditions($query)];
        }
        $tags = self::byTerms($query);
        return in_array('comment_count', self::orders($vars), true) ? [...$tags, 'comments'] : $tags;
    }

    /** @return list<string> the names of an archive in the order of titles, if it has more pages than this one */
    public static function ofOtherPages(\WP_Query $query): array
    {
        $isOrdered = array_intersect(self::orders($query->query_vars), self::TITLE_ORDERS) !== [];
        $isWhole = is_array($query->posts) && count($query->posts) === (int) $query->found_posts && empty($query->query_vars['no_found_rows']) && (int) ($query->query_vars['paged'] ?? 0) < 2;
        return $isOrdered && !$isWhole && !$query->is_singular() ? self::each('names', QueryTypes::of($query)) : [];
    }

    /**
     * The narrow names of an archive; null for other queries.
     *
     * @return list<string>|null
     */
    private static function archive(\WP_Query $query): ?array
    {
        $vars = $query->query_vars;
        $tags = [];
        if ($query->is_category() || $query->is_tag() || $query->is_tax() || self::has($vars, self::TERMS)) {
            if (!QueryTerms::isNarrow($query)) {
                return null;
            }
            $tags = QueryTerms::conditions($query);
        }
        if ($query->is_author()) {
            // WordPress shows the posts without an author for an unknown name.
            $author = (int) ($vars['author'] ?? 0);
            array_push($tags, ...($author === 0 && self::isPlain() ? ['in:*', ...self::each('by:0', QueryTypes::of($query), '/')] : ["by:$author"]));
        }
        if ($query->is_date() && (int) ($vars['year'] ?? 0) > 0) {
            $tags[] = self::date($vars);
        }
        return $tags === [] ? null : $tags;
    }

    /**
     * The texts of posts, or any data about them. For conditions on terms also the terms below, and
     * their names.
     *
     * @return list<string>
     */
    private static function byTerms(\WP_Query $query): array
    {
        $isOfTexts = !self::asksForMeta($query) && QueryTerms::isKnown($query) && array_diff(self::orders($query->query_vars), self::PLAIN_ORDERS, self::TEXT_ORDERS) === [];
        $parent = array_filter(QueryTypes::of($query), ProductStock::has(...)) === [] ? QueryParent::of((string) ($query->request ?? '')) : 0;
        if ($parent > 0) {
            return ["below:$parent", "post:$parent", ...QueryTerms::conditions($query)];
        }
        return [...self::each($isOfTexts ? 'texts' : 'every', QueryTypes::of($query)), ...ProductSources::ofQuery($query->request ?? null, QueryTypes::of($query)), ...QueryTerms::conditions($query)];
    }

    /**
     * Whether a query depends on custom fields, on modification times, on tables of a plugin or on terms that it does
     * not name: by its arguments, and by its SQL, which plugins may change.
     */
    public static function asksForMeta(\WP_Query $query): bool
    {
        global $wpdb;
        $sql = (string) ($query->request ?? '');
        $asksForTerms = self::has($query->query_vars, self::TERMS) || ($query->tax_query->queries ?? []) !== [];
        return self::has($query->query_vars, self::OF_META) || str_contains($sql, $wpdb->postmeta) || str_contains($sql, 'post_modified') || Tables::hasOthers($sql)
            || (!$asksForTerms && str_contains($sql, $wpdb->term_relationships));
    }

    /**
     * The names for the authors in the conditions of a query.
     *
     * @param array<string, mixed> $vars
     *
     * @return list<string>
     */
    private static function authors(array $vars): array
    {
        $authors = [...(array) ($vars['author__in'] ?? []), ...(array) ($vars['author__not_in'] ?? []), ...explode(',', is_scalar($vars['author'] ?? '') ? (string) ($vars['author'] ?? '') : '')];
        $authors = array_unique(array_filter(array_map(static fn (mixed $author): int => is_scalar($author) ? abs((int) $author) : 0, $authors)));
        return count($authors) > self::AUTHORS_MAX ? ['authors', 'users', 'list'] : array_map(static fn (int $author): string => "by:$author", array_values($authors));
    }

    /** @param array<string, mixed> $vars */
    private static function date(array $vars): string
    {
        $date = sprintf('date:%04d', $vars['year']);
        foreach (['monthnum', 'day'] as $part) {
            if ((int) ($vars[$part] ?? 0) === 0) {
                break;
            }
            $date .= sprintf('-%02d', $vars[$part]);
        }
        return $date;
    }

    /**
     * @param array<string, mixed> $vars
     *
     * @return list<string>
     */
    private static function orders(array $vars): array
    {
        $order = $vars['orderby'] ?? '';
        return preg_split('/[\s,]+/', strtolower(is_array($order) ? implode(' ', array_keys($order)) : (string) $order)) ?: [];
    }

    /**
     * Whether a query has one of these arguments.
     *
     * @param array<string, mixed> $vars
     * @param list<string> $names
     */
    private static function has(array $vars, array $names): bool
    {
        return array_filter(array_intersect_key($vars, array_flip($names))) !== [];
    }

    /** Whether no plugin can change the SQL of a query, so that its arguments say what it finds. */
    private static function isPlain(): bool
    {
        return !Frames::isFiltered(...self::FILTERS);
    }

    /**
     * @param list<string> $types
     *
     * @return list<string>
     */
    private static function each(string $what, array $types, string $between = ':'): array
    {
        return array_map(static fn (string $type): string => "$what$between$type", $types);
    }
}
