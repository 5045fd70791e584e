<?php

/**
 * What a comment changes for visitors: only those that are approved, or were, are seen.
 *
 * So what waits for moderation, or is spam from the start, leaves every page in memory.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Listens to comments. */
final class CommentEvents
{
    public static function written(int $id, \WP_Comment $comment): void
    {
        self::ifSeen($comment);
    }

    /** Approved, held, thrown away, brought back, marked as spam, deleted. */
    public static function turned(string $new, string $old, \WP_Comment $comment): void
    {
        if ($new !== $old && ($new === 'approved' || $old === 'approved')) {
            self::changed((int) $comment->comment_post_ID);
        }
    }

    /** About to be written, maybe to another post; of that one `edited` speaks. */
    public static function moved(mixed $after, mixed $before): void
    {
        $post = (int) ($before['comment_post_ID'] ?? 0);
        if (is_array($after) && $post !== (int) ($after['comment_post_ID'] ?? $post) && ($before['comment_approved'] ?? '') === '1') {
            self::changed($post);
        }
    }

    public static function edited(int $id): void
    {
        self::ifSeen(get_comment($id));
    }

    public static function counted(int $post, mixed $new, mixed $old): void
    {
        if ((int) $new !== (int) $old) {
            self::changed($post);
        }
    }

    public static function metaWritten(mixed $ids, int $id, string $key): void
    {
        if (!str_starts_with($key, '_wp_trash_')) {
            self::ifSeen(get_comment($id));
        }
    }

    private static function ifSeen(mixed $comment): void
    {
        if ($comment instanceof \WP_Comment && $comment->comment_approved === '1') {
            self::changed((int) $comment->comment_post_ID);
        }
    }

    private static function changed(int $post): void
    {
        Changes::add("comments:$post", 'comments');
    }
}
