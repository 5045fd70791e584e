<?php

/**
 * Dependencies on the comments that WordPress reads while it renders.
 *
 * Most lists across posts show only the latest comments, so a change of an older comment does not
 * affect them. Each function returns its first argument, because its hook (Sources) is a filter.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Tags;

/**
 * Records the comments that a page shows.
 *
 * @internal
 */
final class CommentSources
{
    /** Arguments of a query for the latest comments; with other values or arguments it may be another list. */
    private const LATEST = ['status' => ['approve'], 'post_status' => ['publish'], 'order' => ['DESC', 'desc', ''], 'orderby' => ['', 'comment_date_gmt'], 'offset' => ['', '0'], 'paged' => ['', '1']];

    /** Arguments that do not affect which comments are found. */
    private const HOW = ['number', 'fields', 'count', 'hierarchical', 'no_found_rows', 'cache_domain', 'update_comment_meta_cache', 'update_comment_post_cache'];

    /** Maximum number of posts of a query that are named individually. */
    private const POSTS_MAX = 20;

    public static function comments(mixed $query): mixed
    {
        $asked = (array) ($query->query_vars ?? []);
        $post = (int) ($asked['post_id'] ?? 0) ?: self::postOfParent($asked['parent'] ?? '');
        $posts = $post > 0 ? [$post] : self::posts($asked);
        if ($posts !== []) {
            Page::uses(...array_map(static fn (int $post): string => "comments:$post", $posts));
            return $query;
        }
        Page::uses(self::latest($asked, (array) ($query->query_var_defaults ?? [])) ?? 'comments');
        return $query;
    }

    /**
     * The posts to which a query is limited, if they are few; none: it may find comments of any post.
     *
     * @param array<string, mixed> $asked
     *
     * @return list<int>
     */
    private static function posts(array $asked): array
    {
        $posts = array_values(array_filter(array_map('intval', array_filter((array) ($asked['post__in'] ?? []), is_scalar(...))), static fn (int $post): bool => $post > 0));
        return count($posts) <= self::POSTS_MAX ? $posts : [];
    }

    /** Replies are comments of the post of their parent; 0: the query is not for replies. */
    private static function postOfParent(mixed $parent): int
    {
        return is_numeric($parent) && (int) $parent > 0 ? (int) (get_comment((int) $parent)->comment_post_ID ?? 0) : 0;
    }

    public static function commentsSecond(mixed $count, mixed $post): mixed
    {
        Page::uses('comments:' . (int) $post);
        return $count;
    }

    /**
     * @param array<string, mixed> $asked
     * @param array<string, mixed> $usual the defaults of the query
     */
    private static function latest(array $asked, array $usual): ?string
    {
        foreach (array_diff_key($asked, array_flip(self::HOW)) as $name => $value) {
            $isLatest = isset(self::LATEST[$name]) ? is_scalar($value) && in_array((string) $value, self::LATEST[$name], true) : $value === ($usual[$name] ?? null) || $value === '';
            if (!$isLatest) {
                return null;
            }
        }
        $isPlain = !empty($asked['number']) && empty($asked['count']) && empty($asked['hierarchical']) && !has_filter('comments_clauses') && !has_filter('comments_pre_query');
        return $isPlain ? Tags::latest((int) $asked['number']) : null;
    }
}
