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
    private const PLAIN_ORDERS = ['', 'none', 'id', 'date', 'post_date', 'type', 'post_type', 'parent', 'post_parent', 'menu_order'];

    /** Conditions on a post's text, and on other columns of it. */
    private const OF_TEXTS = ['s', 'title', 'exact', 'post_mime_type', 'ping_status', 'comment_status'];

    /** Orders that depend on these, too. */
    private const TEXT_ORDERS = ['title', 'post_title', 'name', 'post_name', 'relevance', 'comment_count'];

    /** Of these, the orders that titles and URLs suffice for. */
    private const TITLE_ORDERS = ['title', 'post_title', 'name', 'post_name'];

    /** Conditions on custom fields. */
    private const OF_META = ['meta_key', 'meta_value', 'meta_value_num', 'meta_query'];

    /** Maximum number of authors that are named individually. */
    private const AUTHORS_MAX = 50;

    /** Conditions on terms. */
    private const TERMS = [
        'cat', 'category_name', 'category__in', 'category__not_in', 'category__and',
        'tag', 'tag_id', 'tag__in', 'tag__not_in', 'tag__and', 'tag_slug__in', 'tag_slug__and', 'tax_query',
    ];

    /** From this version on, a sitemap has the times of modification. */
    private const SITEMAPS_WITH_TIMES = '6.5';

    /** @var list<array{\WP_Query, bool, list<string>}> each with whether its posts are shown by title and URL only, and what it misses if there are none */
    private static array $remembered = [];

    /** @var list<\WP_Query> queries whose results are not shown, or named elsewhere */
    private static array $silent = [];

    /** The arguments of the query of get_pages() that follows; null: there is none. */
    private static mixed $pagesFollow = null;

    /** WordPress 6.3 and newer query for get_pages() in this way; BlockSources::pages() names the result. */
    public static function pagesFollow(mixed $asked): mixed
    {
        self::$pagesFollow = $asked;
        return $asked;
    }

    /**
     * A query is about to run: filter `posts_pre_query`.
     *
     * @param mixed $posts what another plugin answers in its place, or null
     */
    public static function remember(mixed $posts, \WP_Query $query): mixed
    {
        // Another plugin may query before get_pages() does.
        $isOfPages = is_array(self::$pagesFollow) && $query->query === self::$pagesFollow;
        self::$pagesFollow = $isOfPages ? null : self::$pagesFollow;
        if (($isOfPages && $posts === null && !self::asksForMeta($query)) || self::isUnused($query)) {
            self::$silent[] = $query;
            return $posts;
        }
        foreach (self::couldFind($query, $posts !== null) as $tag) {
            Page::uses($tag);
        }
        // A query that becomes a 404 forgets what it was for.
        self::$remembered[] = [$query, Frames::isOfTitles(), self::missing($query)];
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
            self::harvest(is_array($posts) ? $posts : [], Frames::isOfTitles());
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
        foreach (self::$remembered as [$query, $isOfTitles, $missing]) {
            $posts = $query->posts ?? [];
            self::harvest($posts, $isOfTitles);
            if ($query->is_singular() || $query->is_404()) {
                // Another post of the same name may precede this one.
                Page::uses(...($posts === [] || $query->is_404() ? $missing : ['called:' . ($posts[0]->post_name ?? '')]));
            }
            if ($query->is_comment_feed()) {
                $post = $query->is_singular() ? (int) ($posts[0]->ID ?? 0) : 0;
                Page::uses($post > 0 ? "comments:$post" : 'comments');
            }
        }
        self::$remembered = self::$silent = [];
    }

    /**
     * The names for the posts whose appearance would give a page to a query that found nothing.
     *
     * @return list<string>
     */
    private static function missing(\WP_Query $query): array
    {
        $vars = $query->query_vars;
        // As asked: WordPress reduces the path of a page to its last name.
        $asked = [$query->query['pagename'] ?? '', $vars['name'] ?? '', $vars['attachment'] ?? ''];
        $path = array_values(array_filter($asked, static fn (mixed $part): bool => is_string($part) && $part !== ''))[0] ?? '';
        return match (true) {
            $query->is_singular() && $path !== '' => Tags::missing($path),
            // The terms, the author or the date of an archive are named as for other archives.
            $query->is_category() || $query->is_tag() || $query->is_tax() || $query->is_author() || $query->is_date() => [],
            default => [Tags::NOWHERE],
        };
    }

    /** The posts on top of the front page are read: filter `pre_option_sticky_posts`. */
    public static function stickies(mixed $value): mixed
    {
        $callers = Frames::callers();
        $reader = $callers[(int) array_search('get_option', $callers, true) + 1] ?? '';
        // A query for posts is looked at when it begins; whether one post is on top belongs to the post.
        if (!in_array($reader, ['WP_Query::get_posts', 'is_sticky'], true)) {
            Page::uses(Tags::STICKY);
        }
        return $value;
    }

    /** Whether a post is on top: filter `is_sticky`. The classes of a post say so on the front page only. */
    public static function isSticky(mixed $isSticky, mixed $post): mixed
    {
        $isFront = is_home() && !is_paged();
        if ($isFront || !in_array('get_post_class', Frames::callers(), true)) {
            Page::uses('stuck:' . (int) $post);
        }
        return $isSticky;
    }

    /** @param array<mixed> $posts posts, parts of posts, or ids */
    private static function harvest(array $posts, bool $isOfTitles): void
    {
        $isOfUrls = $isOfTitles || self::isSitemap($GLOBALS['wp_query'] ?? null) && version_compare((string) $GLOBALS['wp_version'], self::SITEMAPS_WITH_TIMES, '<');
        foreach ($posts as $post) {
            $id = (int) (is_object($post) ? $post->ID ?? 0 : $post);
            $isOfUrls ? Page::usesName($id) : Page::usesText($id);
            if (is_object($post) && ($post->post_type ?? '') === 'attachment') {
                // It is visible as its parent is.
                Page::usesName((int) ($post->post_parent ?? 0));
            }
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
        Page::uses(...self::authors($vars));
        if ($query->is_home() && empty($vars['ignore_sticky_posts'])) {
            Page::uses(Tags::STICKY);
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
        $isOfText = array_filter(array_intersect_key($vars, array_flip(self::OF_TEXTS))) !== [] || self::asksForMeta($query);
        if (!$isOfText && array_diff(self::orders($vars), self::PLAIN_ORDERS) === []) {
            return self::archive($query) ?? [...self::each('list', $types), ...QueryTerms::conditions($query)];
        }
        if (!$isOfText && array_diff(self::orders($vars), self::PLAIN_ORDERS, self::TITLE_ORDERS) === []) {
            return [...self::each('names', $types), ...QueryTerms::conditions($query)];
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
        if ($query->is_category() || $query->is_tag() || $query->is_tax() || array_filter(array_intersect_key($vars, array_flip(self::TERMS)))) {
            if (!QueryTerms::isNarrow($query)) {
                return null;
            }
            $tags = QueryTerms::conditions($query);
        }
        if ($query->is_author()) {
            // WordPress shows the posts without an author for an unknown name.
            $tags[] = 'by:' . (int) ($vars['author'] ?? 0);
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
        return [...self::each($isOfTexts ? 'texts' : 'every', self::types($query)), ...QueryTerms::conditions($query)];
    }

    /**
     * Whether a query depends on custom fields, on modification times or on terms that it does not name: by
     * its arguments, and by its SQL, which plugins may change.
     */
    private static function asksForMeta(\WP_Query $query): bool
    {
        global $wpdb;
        $sql = (string) ($query->request ?? '');
        $asksForTerms = array_filter(array_intersect_key($query->query_vars, array_flip(self::TERMS))) !== [] || ($query->tax_query->queries ?? []) !== [];
        return array_filter(array_intersect_key($query->query_vars, array_flip(self::OF_META))) !== [] || str_contains($sql, $wpdb->postmeta) || str_contains($sql, 'post_modified')
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
