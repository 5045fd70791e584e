<?php

/**
 * Posts that were written past WordPress's functions, as set_post_type() does and plugins with SQL of
 * their own: nothing says what has changed, but whoever does so has the post forgotten by the caches
 * (clean_post_cache), as WordPress does each time before it says more.
 *
 * What nothing more was said of when the request ends has changed in every way, as what it was in the
 * cache, if it was there, and as what it is. A process that runs for long says so while it runs.
 */

namespace Pagewell\WordPress;

/** Remembers them for the running request. */
final class Strays
{
    /** @var array<string, \WP_Post> by blog and id, as the cache had it */
    private static array $posts = [];

    /** @var array<string, true> those of $posts that were there at the last turn */
    private static array $old = [];

    /** @var array<string, true> those that were deleted, of which all is said */
    private static array $gone = [];

    /** Its copies in the caches were deleted. */
    public static function cleaned(int $id, mixed $post): void
    {
        Queue::poll();
        $isGone = isset(self::$gone[get_current_blog_id() . "/$id"]);
        if (!$isGone && $post instanceof \WP_Post && Tags::isData($post->post_type) && is_post_type_viewable($post->post_type)) {
            self::$posts[get_current_blog_id() . "/$id"] ??= clone $post;
            Changes::comes();
        }
    }

    /** Something says what of this post has changed. */
    public static function explained(int $id): void
    {
        unset(self::$posts[get_current_blog_id() . "/$id"]);
    }

    public static function deleted(int $id): void
    {
        self::$gone[get_current_blog_id() . "/$id"] = true;
    }

    /** A user was deleted: that his posts are somebody else's, SiteEvents has said. */
    public static function inherited(int $user, mixed $heir): void
    {
        self::$posts = array_filter(self::$posts, static fn (\WP_Post $post): bool => !in_array((int) $post->post_author, [$user, (int) $heir], true));
    }

    /** A process that runs for long: what nothing was said of since the last turn. */
    public static function turn(): void
    {
        [$left, self::$posts] = [array_diff_key(self::$posts, self::$old), array_intersect_key(self::$posts, self::$old)];
        self::end();
        [self::$posts, self::$old] = [$left + self::$posts, array_fill_keys(array_keys($left), true)];
    }

    /** The request ends. */
    public static function end(): void
    {
        [$posts, self::$posts] = [self::$posts, []];
        foreach ($posts as $place => $before) {
            [$blog, $id] = explode('/', (string) $place);
            $elsewhere = is_multisite() && (int) $blog !== get_current_blog_id();
            $elsewhere && switch_to_blog((int) $blog);
            PostEvents::appeared((int) $id);
            PostEvents::deleted((int) $id, $before);
            $elsewhere && restore_current_blog();
        }
    }
}
