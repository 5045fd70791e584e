<?php

/**
 * From the comments that WordPress reads while it renders to what the page is made from.
 *
 * Most lists across posts show the latest few: what happens to an older comment leaves these as they are.
 * Each function returns its first argument: their hooks (Sources) are filters.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** What comments a page shows. */
final class CommentSources
{
    /** How the latest are asked for; another value, or anything else that is asked for, may be something else. */
    private const LATEST = ['status' => ['approve'], 'post_status' => ['publish'], 'order' => ['DESC', 'desc', ''], 'orderby' => ['', 'comment_date_gmt'], 'offset' => ['', '0'], 'paged' => ['', '1']];

    /** What changes nothing of which comments are found. */
    private const HOW = ['number', 'fields', 'count', 'hierarchical', 'no_found_rows', 'cache_domain', 'update_comment_meta_cache', 'update_comment_post_cache'];

    public static function comments(mixed $query): mixed
    {
        $asked = (array) ($query->query_vars ?? []);
        $post = (int) ($asked['post_id'] ?? 0);
        Page::uses($post > 0 ? "comments:$post" : (self::latest($asked, (array) ($query->query_var_defaults ?? [])) ?? 'comments'));
        return $query;
    }

    public static function commentsSecond(mixed $count, mixed $post): mixed
    {
        Page::uses('comments:' . (int) $post);
        return $count;
    }

    /**
     * @param array<string, mixed> $asked
     * @param array<string, mixed> $usual what is asked for unless somebody says something else
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
