<?php

/**
 * The dependencies of a page with a query for posts (WP_Query): the posts it found, and the posts
 * that it could have found.
 *
 * The second part is as narrow as is certain. An archive depends on its term, author or date. A
 * query ordered by date depends on the list of its types. A search, an order by title or a
 * condition on several terms depends on the texts of these types. Any other query (an order by meta
 * or by modification time, a plugin's own SQL) depends on any data of these types.
 *
 * Queries are recorded when they begin and read when the page is complete. Most of them (get_posts)
 * run without WordPress's filters for results.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Records the queries of the running request. */
final class Queries
{
    /** Orders that depend only on data whose changes count as changes of the list. */
    private const PLAIN_ORDERS = ['', 'none', 'id', 'date', 'post_date', 'author', 'post_author', 'type', 'post_type', 'parent', 'post_parent', 'menu_order'];

    /** Conditions on a post's text, and on other columns of it. */
    private const OF_TEXTS = ['s', 'title', 'exact', 'post_mime_type', 'ping_status', 'comment_status'];

    /** Orders that depend on these, too. */
    private const TEXT_ORDERS = ['title', 'post_title', 'name', 'post_name', 'relevance', 'comment_count'];

    /** Conditions on custom fields. */
    private const OF_META = ['meta_key', 'meta_value', 'meta_value_num', 'meta_query'];

    /** Conditions on terms. */
    private const TERMS = [
        'cat', 'category_name', 'category__in', 'category__not_in', 'category__and',
        'tag', 'tag_id', 'tag__in', 'tag__not_in', 'tag__and', 'tag_slug__in', 'tag_slug__and', 'tax_query',
    ];

    /** From this version on, a sitemap has the times of modification. */
    private const SITEMAPS_WITH_TIMES = '6.5';

    /** @var list<\WP_Query> */
    private static array $remembered = [];

    /** @var list<\WP_Query> queries whose results are not shown, or named elsewhere */
    private static array $silent = [];

    /** Whether get_pages() queries next. */
    private static bool $pagesFollow = false;

    /** WordPress 6.3 and newer query for get_pages() in this way; BlockSources::pages() names the result. */
    public static function pagesFollow(mixed $asked): mixed
    {
        self::$pagesFollow = true;
        return $asked;
    }

    /**
     * A query is about to run: filter `posts_pre_query`.
     *
     * @param mixed $posts what another plugin answers in its place, or null
     */
    public static function remember(mixed $posts, \WP_Query $query): mixed
    {
        [$isOfPages, self::$pagesFollow] = [self::$pagesFollow, false];
        if (($isOfPages && $posts === null && !self::asksForMeta($query)) || self::isUnused($query)) {
            self::$silent[] = $query;
            return $posts;
        }
        foreach (self::couldFind($query, $posts !== null) as $tag) {
            Page::uses($tag);
        }
        self::$remembered[] = $query;
        return $posts;
    }

    /**
     * A query has run, with filters: filter `the_posts`.
     *
     * @param mixed $posts
     */
    public static function found(mixed $posts, mixed $query = null): mixed
    {
        if (!in_array($query, self::$silent, true)) {
            self::harvest(is_array($posts) ? $posts : []);
        }
        return $posts;
    }

    /** Whether the query is for the posts of the front page, in a request that shows none: robots.txt, the icon, sitemaps. */
    private static function isUnused(\WP_Query $query): bool
    {
        $isUnused = $query->is_main_query() && ($query->is_robots() || $query->is_favicon() || self::isSitemap($query));
        if ($isUnused && (int) ($query->query_vars['paged'] ?? 0) > 1) {
            // Its status may be 404 if the front page has no such page.
            Page::uses('list:post');
        }
        return $isUnused;
    }

    private static function isSitemap(?\WP_Query $query): bool
    {
        $vars = $query->query_vars ?? [];
        return !empty($vars['sitemap']) || !empty($vars['sitemap-stylesheet']);
    }

    /** Reads the results of all queries when the page is complete. */
    public static function finish(): void
    {
        foreach (self::$remembered as $query) {
            $posts = $query->posts ?? [];
            self::harvest($posts);
            if ($query->is_singular()) {
                // Another post of the same name may precede this one.
                Page::uses($posts === [] ? Tags::NOWHERE : 'called:' . ($posts[0]->post_name ?? ''));
            }
            if ($query->is_comment_feed()) {
                $post = $query->is_singular() ? (int) ($posts[0]->ID ?? 0) : 0;
                Page::uses($post > 0 ? "comments:$post" : 'comments');
            }
        }
        self::$remembered = self::$silent = [];
    }

    /** @param array<mixed> $posts posts, parts of posts, or ids */
    private static function harvest(array $posts): void
    {
        $isOfUrls = self::isSitemap($GLOBALS['wp_query'] ?? null) && version_compare((string) $GLOBALS['wp_version'], self::SITEMAPS_WITH_TIMES, '<');
        foreach ($posts as $post) {
            $id = (int) (is_object($post) ? $post->ID ?? 0 : $post);
            $isOfUrls ? Page::usesName($id) : Page::usesText($id);
        }
    }

    /** @return list<string> */
    private static function couldFind(\WP_Query $query, bool $isAnswered): array
    {
        $vars = $query->query_vars;
        if ($query->is_singular() || $query->is_comment_feed()) {
            // Its results, or the lack of them, are named at the end.
            return [];
        }
        $types = self::types($query);
        if ($isAnswered) {
            // Another plugin has found them, by criteria of its own.
            return self::each('every', $types);
        }
        if (!empty($vars['post__in'])) {
            $what = self::asksForMeta($query) ? 'post:' : 'text:';
            return array_map(static fn ($id): string => $what . (int) $id, array_slice((array) $vars['post__in'], 0, Page::TAGS_MAX));
        }
        if ($types === []) {
            return [];
        }
        if (!self::asksForMeta($query) && self::isPlain($vars)) {
            return self::archive($query) ?? self::each('list', $types);
        }
        $tags = self::byTerms($query);
        return in_array('comment_count', self::orders($vars), true) ? [...$tags, 'comments'] : $tags;
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
        if ($query->is_category() || $query->is_tag() || $query->is_tax()) {
            $term = $query->get_queried_object();
            $asked = $query->tax_query->queried_terms ?? [];
            $single = count($asked) === 1 && count((array) (reset($asked)['terms'] ?? [])) === 1;
            if (!$single || !$term instanceof \WP_Term) {
                return self::byTerms($query);
            }
            $tags[] = "in:$term->term_taxonomy_id";
        } elseif (array_filter(array_intersect_key($vars, array_flip(self::TERMS)))) {
            return self::byTerms($query);
        }
        if ($query->is_author() && (int) ($vars['author'] ?? 0) > 0) {
            $tags[] = 'by:' . (int) $vars['author'];
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
        $conditions = $query->tax_query->queries ?? [];
        $taxonomies = [];
        array_walk_recursive($conditions, static function (mixed $value, int|string $key) use (&$taxonomies): void {
            if ($key === 'taxonomy' && is_string($value) && Tags::isTaxonomy($value)) {
                $taxonomies[$value] = "terms:$value";
            }
        });
        $isOfTexts = !self::asksForMeta($query) && array_diff(self::orders($query->query_vars), self::PLAIN_ORDERS, self::TEXT_ORDERS) === [];
        return [...self::each($isOfTexts ? 'texts' : 'every', self::types($query)), ...array_values($taxonomies)];
    }

    /**
     * Whether a query depends on custom fields or on modification times: by its arguments, and by
     * its SQL, which plugins may change.
     */
    private static function asksForMeta(\WP_Query $query): bool
    {
        global $wpdb;
        $sql = (string) ($query->request ?? '');
        return array_filter(array_intersect_key($query->query_vars, array_flip(self::OF_META))) !== [] || str_contains($sql, $wpdb->postmeta) || str_contains($sql, 'post_modified');
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

    /** @param array<string, mixed> $vars */
    private static function isPlain(array $vars): bool
    {
        return !array_filter(array_intersect_key($vars, array_flip(self::OF_TEXTS))) && array_diff(self::orders($vars), self::PLAIN_ORDERS) === [];
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

    /** @return list<string> types of posts; for any, those that WordPress searches */
    private static function types(\WP_Query $query): array
    {
        $type = $query->query_vars['post_type'] ?? '';
        if ($type === '' || $type === []) {
            $any = $query->is_search() || $query->is_tax() || !empty($query->query_vars['tax_query']);
            $type = $any ? 'any' : ($query->is_attachment() ? 'attachment' : 'post');
        }
        $types = array_map('strval', array_values((array) $type));
        $types = in_array('any', $types, true) ? array_values(get_post_types(['exclude_from_search' => false])) : $types;
        return array_values(array_filter($types, Tags::isData(...)));
    }

    /**
     * @param list<string> $types
     *
     * @return list<string>
     */
    private static function each(string $what, array $types): array
    {
        return array_map(static fn (string $type): string => "$what:$type", $types);
    }
}
