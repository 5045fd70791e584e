<?php

declare(strict_types=1);

/**
 * Posts that were written directly in the database, as by set_post_type() and plugins with their
 * own SQL. No hook reports the change, but the post is removed from the caches
 * (clean_post_cache), as before each of WordPress's own changes.
 *
 * If no other hook has reported a change of the post by the end of the request, it counts as
 * changed in every way. Both states count: the cached one, if there was one, and the current one. If
 * no statement has written the row of the post, or it is known as it was before (WrittenPosts), the
 * difference counts, and the meta; if the statements show that of a product only the stock, the sales and the time
 * of modification were written, these. A long-running process reports it while it runs.
 */

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\ProductStock;
use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Purge\Queue;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;

/**
 * Records these posts for the running request.
 *
 * @internal
 */
final class DirectPostWrites
{
    /** @var array<string, \WP_Post> by blog and id, as cached before */
    private static array $posts = [];

    /** @var array<string, true> those of $posts that existed at the last turn */
    private static array $old = [];

    /** @var array<string, true> deleted posts, whose changes are complete */
    private static array $gone = [];

    /** A post was removed from the caches. */
    public static function cleaned(int $id, mixed $post): void
    {
        Queue::poll();
        $isGone = isset(self::$gone[get_current_blog_id() . "/$id"]);
        if (!$isGone && $post instanceof \WP_Post && Tags::isData($post->post_type) && is_post_type_viewable($post->post_type)) {
            self::$posts[get_current_blog_id() . "/$id"] ??= clone $post;
            Changes::comes();
        }
    }

    /** A hook reports the changes of this post. */
    public static function explained(int $id): void
    {
        unset(self::$posts[get_current_blog_id() . "/$id"]);
    }

    public static function deleted(int $id, mixed $post = null): void
    {
        self::$gone[get_current_blog_id() . "/$id"] = true;
        $post instanceof \WP_Post && SitemapPages::turned("post/$post->post_type");
    }

    /** A user was deleted; SiteEvents has reported the new author of the posts. */
    public static function inherited(int $user, mixed $heir): void
    {
        self::$posts = array_filter(self::$posts, static fn (\WP_Post $post): bool => !in_array((int) $post->post_author, [$user, (int) $heir], true));
    }

    /** In a long-running process: reports the posts without a report since the last turn. */
    public static function turn(): void
    {
        [$left, self::$posts] = [array_diff_key(self::$posts, self::$old), array_intersect_key(self::$posts, self::$old)];
        self::end();
        [self::$posts, self::$old] = [$left + self::$posts, array_fill_keys(array_keys($left), true)];
    }

    /** Handles the end of the request. */
    public static function end(): void
    {
        [$posts, self::$posts] = [self::$posts, []];
        foreach ($posts as $place => $before) {
            [$blog, $id] = explode('/', (string) $place);
            $elsewhere = is_multisite() && (int) $blog !== get_current_blog_id();
            $elsewhere && switch_to_blog((int) $blog);
            $now = get_post((int) $id);
            $written = WrittenPosts::before((int) $id);
            if ($now === null || $written === false || ($written === null && get_object_vars($now) != get_object_vars($before))) {
                PostEvents::appeared((int) $id);
                PostEvents::deleted((int) $id, $before);
            } elseif (ProductStock::has($now->post_type) && PostEvents::isOnlyTouched($now, $written ?? $before) && WrittenPosts::hasNoMetaBut((int) $id, ProductStock::isMeta(...))) {
                PostEvents::restocked($now, true);
            } else {
                PostEvents::updated((int) $id, $now, $written ?? $before);
            }
            $elsewhere && restore_current_blog();
        }
    }
}
