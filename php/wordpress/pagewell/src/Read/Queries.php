<?php

/**
 * The dependencies of a page with a query for posts (WP_Query): the posts it found, and the posts
 * that it could have found.
 *
 * The second part is in QueryLists. Queries are recorded when they begin and read when the page is
 * complete. Most of them (get_posts) run without WordPress's filters for results.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;

/**
 * Records the queries of the running request.
 *
 * @internal
 */
final class Queries
{
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
        $isNamed = $posts === null && (($isOfPages && !QueryLists::asksForMeta($query)) || SitemapPages::isCountOf($query));
        if ($isNamed || self::isUnused($query)) {
            self::$silent[] = $query;
            return $posts;
        }
        foreach (QueryLists::couldFind($query, $posts !== null) as $tag) {
            Page::uses($tag);
        }
        // A query that becomes a 404 forgets what it was for.
        self::$remembered[] = [$query, Frames::isOfTitles(), self::missing($query)];
        return $posts;
    }

    /**
     * A query has run, with filters: filter `the_posts`.
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
        $main = $GLOBALS['wp_the_query'] ?? null;
        // Sticky posts are a query of its own.
        $isUnused = $main instanceof \WP_Query && ($main->is_robots() || $main->is_favicon() || self::isSitemap($main)) && ($query === $main || Frames::isOfSticky());
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
            Page::uses(...QueryLists::ofOtherPages($query));
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
        $main = $GLOBALS['wp_query'] ?? null;
        $isFront = $main instanceof \WP_Query && $main->is_home() && !$main->is_paged();
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
            self::isSitemap($GLOBALS['wp_query'] ?? null) && ProductSources::uses($id);
            if (is_object($post) && ($post->post_type ?? '') === 'attachment') {
                // It is visible as its parent is.
                Page::usesName((int) ($post->post_parent ?? 0));
            }
        }
    }
}
