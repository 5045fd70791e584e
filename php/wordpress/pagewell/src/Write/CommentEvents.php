<?php

/**
 * The effects of a comment on pages: visitors see only comments that are or were approved.
 *
 * So a comment that waits for moderation, or is spam from the start, invalidates no page. A change
 * of an old comment does not invalidate the pages that show the latest ones.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Tags;

/**
 * Handles the hooks for comments.
 *
 * @internal
 */
final class CommentEvents
{
    /** @var array<int, int> by post: recounts of its comments, minus comments that appeared or disappeared */
    private static array $counted = [];

    public static function written(int $id, \WP_Comment $comment): void
    {
        self::ifSeen($comment) && self::pair((int) $comment->comment_post_ID, -1);
    }

    /** A comment is approved, held, trashed, restored, marked as spam, or deleted. */
    public static function turned(string $new, string $old, \WP_Comment $comment): void
    {
        if ($new !== $old && ($new === 'approved' || $old === 'approved')) {
            self::changed((array) $comment);
            self::pair((int) $comment->comment_post_ID, -1);
        }
    }

    /**
     * A comment is about to be written, maybe to another post or with another date. `edited`
     * handles other changes.
     */
    public static function moved(mixed $after, mixed $before): void
    {
        if (is_array($after) && ($before['comment_approved'] ?? '') === '1') {
            self::changed((array) $before);
        }
    }

    public static function edited(int $id): void
    {
        self::ifSeen(get_comment($id));
    }

    /**
     * The number of comments was written. WordPress reports the comment before or after; code past
     * WordPress's functions does not.
     */
    public static function counted(int $post, mixed $new, mixed $old): void
    {
        DirectPostWrites::explained($post);
        if ((int) $new !== (int) $old) {
            Changes::add("comments:$post", 'comments');
            self::pair($post, 1);
            Changes::comes();
        }
    }

    /** Handles the end of the request. */
    public static function end(): void
    {
        if (array_filter(self::$counted, static fn (int $unsaid): bool => $unsaid > 0) !== []) {
            Changes::add(...Tags::latestWith(0));
        }
        self::$counted = [];
    }

    public static function metaWritten(mixed $ids, int $id, string $key): void
    {
        if (!str_starts_with($key, '_wp_trash_')) {
            self::ifSeen(get_comment($id));
        }
    }

    private static function ifSeen(mixed $comment): bool
    {
        $isSeen = $comment instanceof \WP_Comment && $comment->comment_approved === '1';
        if ($isSeen) {
            self::changed((array) $comment);
        }
        return $isSeen;
    }

    private static function pair(int $post, int $step): void
    {
        self::$counted[$post] = (self::$counted[$post] ?? 0) + $step;
    }

    /**
     * Adds the changes for a comment that is or was visible. One that was moved may be a reply to a comment of
     * another post.
     *
     * @param array<mixed> $comment its columns
     */
    private static function changed(array $comment): void
    {
        $post = (int) ($comment['comment_post_ID'] ?? 0);
        $parent = (int) ($comment['comment_parent'] ?? 0);
        $ofParent = $parent > 0 ? (int) (get_comment($parent)->comment_post_ID ?? 0) : 0;
        Changes::add("comments:$post", 'comments', ...($ofParent > 0 && $ofParent !== $post ? ["comments:$ofParent"] : []), ...Tags::latestWith(self::later((string) ($comment['comment_date_gmt'] ?? ''))));
    }

    /** Adds the changes for all comments of a post that is or was published. */
    public static function turnedWith(int $post): void
    {
        global $wpdb;
        if ($wpdb->get_var($wpdb->prepare("SELECT 1 FROM $wpdb->comments WHERE comment_post_ID = %d LIMIT 1", $post)) !== null) {
            Changes::add("comments:$post", 'comments', ...Tags::latestWith(0));
        }
    }

    /** Returns the number of later public comments, up to the limit that matters. */
    private static function later(string $date): int
    {
        global $wpdb;
        $later = $wpdb->prepare(
            "SELECT 1 FROM $wpdb->comments AS c JOIN $wpdb->posts AS p ON p.ID = c.comment_post_ID"
            . " WHERE c.comment_approved = '1' AND p.post_status = 'publish' AND c.comment_date_gmt > %s LIMIT 100",
            $date
        );
        return (int) $wpdb->get_var("SELECT COUNT(*) FROM ($later) AS later");
    }
}
