<?php

/**
 * What a write to a post changes for visitors.
 *
 *     the post itself (text, meta, terms …)        post:ID, every:TYPE
 *     its title                                    besides name:ID, names:TYPE
 *     which posts there are, their order, terms    besides both, and list:TYPE, by:AUTHOR, date:…, in:TERM and
 *                                                  those above it, beside:NEIGHBOUR, nowhere
 *
 * As visitors saw it before and see it after: a draft that stays one changes nothing.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Listens to posts. */
final class PostEvents
{
    /** Columns on which lists depend: who is in them, and in which order. */
    private const OF_LISTS = ['post_status', 'post_date', 'post_author', 'post_parent', 'menu_order', 'post_type', 'post_password', 'post_name'];

    /** Meta that no page shows: bookkeeping of the editor, of the trash, and of known counters of views. */
    private const SILENT_META = '/^(_edit_|_encloseme|_pingme|_oembed_|_wp_old_|_wp_trash_|_wp_desired_|_menu_item_|_customize_|_?views$|_?post_views_count$|wpb_post_views_count$|pvc_views$)/';

    /** The most neighbours of one date that are named one by one. */
    private const NEIGHBOURS_MAX = 50;

    /** Its status has turned; a new post comes from `new`. */
    public static function turned(string $new, string $old, \WP_Post $post): void
    {
        if ($new !== $old) {
            $before = clone $post;
            $before->post_status = $old;
            self::changed($post, $before);
            if ($new === 'future') {
                // Lists must be made anew in time: see Offer::endBeforeSchedule().
                Changes::add("list:$post->post_type", 'list');
            }
        }
    }

    public static function updated(int $id, \WP_Post $after, \WP_Post $before): void
    {
        self::changed($after, $before);
        if ($after->post_status === 'future' && $before->post_status === 'future') {
            Changes::add("list:$after->post_type", 'list');
        }
    }

    public static function appeared(int $id): void
    {
        self::changed(get_post($id), null);
    }

    /** About to be deleted: its terms are still there. */
    public static function deleted(int $id, ?\WP_Post $post = null): void
    {
        self::changed(null, $post ?? get_post($id));
    }

    /**
     * @param array<mixed>       $terms
     * @param array<int|string>  $after  ids as of term_taxonomy
     * @param array<int|string>  $before likewise
     */
    public static function termsSet(int $id, mixed $terms, array $after, string $taxonomy, bool $append, array $before): void
    {
        $post = get_post($id);
        $after = array_map('intval', $append ? [...$before, ...$after] : $after);
        $before = array_map('intval', $before);
        $changed = [...array_diff($after, $before), ...array_diff($before, $after)];
        if ($changed === [] || !self::isSeen($post) || !Tags::isTaxonomy($taxonomy)) {
            return;
        }
        Changes::add("post:$id", "every:$post->post_type", 'every', "terms:$taxonomy", ...TermEvents::containing($changed, $taxonomy));
        if ($post->post_type !== 'post' || str_contains((string) get_option('permalink_structure'), '%category%')) {
            // A post's address may be made of its terms.
            Changes::add("name:$id", "names:$post->post_type");
        }
    }

    public static function metaWritten(mixed $ids, int $post, string $key): void
    {
        $silent = preg_match(self::SILENT_META, $key) || in_array($key, (array) apply_filters('pagewell_ignored_meta', []), true);
        $post = $silent ? null : get_post($post);
        if (self::isSeen($post)) {
            Changes::add("post:$post->ID", "every:$post->post_type", 'every');
        }
    }

    public static function stuck(int $id): void
    {
        Changes::add("post:$id", 'list:post', 'list', 'every:post', 'every');
    }

    /** A post as it was, and as it is; null where it is not. */
    private static function changed(?\WP_Post $after, ?\WP_Post $before): void
    {
        $type = ($after ?? $before)->post_type ?? '';
        if (!self::isSeen($after) && !self::isSeen($before)) {
            return;
        }
        if (Tags::isTheme($type)) {
            Changes::add(Tags::SITE);
        } elseif ($type === 'nav_menu_item') {
            SiteEvents::menuItemTurned(($after ?? $before)->ID);
        } elseif (Tags::isData($type)) {
            $id = ($after ?? $before)->ID;
            Changes::add("post:$id", "every:$type", 'every');
            $lists = self::listsChange($after, $before);
            if ($lists || $after?->post_title !== $before?->post_title) {
                Changes::add("name:$id", "names:$type");
            }
            if ($lists) {
                Changes::add("list:$type", 'list', Tags::NOWHERE);
                self::place($after);
                self::place($before);
            }
        }
    }

    private static function listsChange(?\WP_Post $after, ?\WP_Post $before): bool
    {
        if (!self::isSeen($after) || !self::isSeen($before)) {
            return true;
        }
        foreach (self::OF_LISTS as $column) {
            if ($after->$column !== $before->$column) {
                return true;
            }
        }
        return false;
    }

    /** Everywhere a post is (or was) listed. */
    private static function place(?\WP_Post $post): void
    {
        if (!self::isSeen($post)) {
            return;
        }
        Changes::add("by:$post->post_author", ...Tags::dates($post->post_date));
        foreach (get_object_taxonomies($post->post_type) as $taxonomy) {
            $terms = Tags::isTaxonomy($taxonomy) ? wp_get_object_terms($post->ID, $taxonomy, ['fields' => 'tt_ids']) : [];
            if (is_array($terms) && $terms !== []) {
                Changes::add("terms:$taxonomy", ...TermEvents::containing(array_map('intval', $terms), $taxonomy));
            }
        }
        foreach (self::neighbours($post) as $neighbour) {
            Changes::add("beside:$neighbour");
        }
    }

    /**
     * The posts of the dates right before and after, whose pages may link to this one.
     *
     * @return list<int>
     */
    private static function neighbours(\WP_Post $post): array
    {
        global $wpdb;
        $ids = [];
        foreach (['<' => 'MAX', '>' => 'MIN'] as $side => $nearest) {
            $found = $wpdb->get_col($wpdb->prepare(
                "SELECT ID FROM $wpdb->posts WHERE post_type = %s AND post_status = 'publish' AND post_date = ("
                . "SELECT $nearest(post_date) FROM $wpdb->posts WHERE post_type = %s AND post_status = 'publish' AND post_date $side %s) LIMIT %d",
                $post->post_type,
                $post->post_type,
                $post->post_date,
                self::NEIGHBOURS_MAX + 1
            ));
            if (count($found) > self::NEIGHBOURS_MAX) {
                Changes::add(Tags::SITE);
            }
            array_push($ids, ...array_map('intval', $found));
        }
        return $ids;
    }

    /** Whether visitors who are not signed in can see it. An attachment has its parent's status. */
    private static function isSeen(?\WP_Post $post): bool
    {
        if ($post === null) {
            return false;
        }
        if ($post->post_status === 'inherit') {
            return $post->post_type === 'attachment';
        }
        return (bool) (get_post_status_object($post->post_status)->public ?? false);
    }
}
