<?php

/**
 * The effects of a write to a post on pages. Only the states count that visitors saw before and see
 * after the write: a draft that stays a draft changes nothing.
 *
 *     its meta                                     post:ID, every:TYPE; text:ID if WordPress itself shows it
 *     the stock or the sales of a product          stock:ID, stocks
 *     the post itself (text, terms …)              the same, and text:ID, texts:TYPE
 *     its title                                    the same, and name:ID, names:TYPE
 *     which posts there are, their order, terms    the same, and all, list:TYPE, by:AUTHOR, date:…, in:TERM and
 *                                                  those above it, beside:NEIGHBOUR, called:NAME, nowhere;
 *                                                  its comments, if they come or go with it
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\ProductStock;
use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Read\QueryParent;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;

/** @internal Handles the hooks for posts. */
final class PostEvents
{
    /** Columns on which lists depend: their members, and the order. */
    private const OF_LISTS = ['post_status', 'post_date', 'post_author', 'post_parent', 'menu_order', 'post_type', 'post_password', 'post_name'];

    /** Meta that no page shows: bookkeeping of the editor, of editing together and of the trash, and known view counters. */
    private const UNSHOWN_META = '/^(_edit_|wp_sync_|_encloseme|_pingme|_oembed_|_wp_old_|_wp_trash_|_wp_desired_|_menu_item_|_customize_|_?views$|_?post_views_count$|wpb_post_views_count$|pvc_views$)/';

    /** The columns of the modification time, and others that no list uses. */
    private const PASSING = ['post_modified', 'post_modified_gmt', 'to_ping', 'pinged', 'comment_count', 'filter', 'guid'];

    /** Maximum number of old names of a post whose URLs are purged. */
    private const OLD_NAMES_MAX = 20;

    /** Handles a changed status; a new post comes from `new`. */
    public static function turned(string $new, string $old, \WP_Post $post): void
    {
        DirectPostWrites::explained($post->ID);
        if ($new !== $old) {
            $before = clone $post;
            $before->post_status = $old;
            self::changed($post, $before);
            if ($new === 'future') {
                // Lists must be rendered again in time: see Moments::ofSchedule().
                Changes::add("list:$post->post_type", 'list');
            }
        }
    }

    public static function updated(int $id, \WP_Post $after, \WP_Post $before): void
    {
        DirectPostWrites::explained($id);
        self::changed($after, $before);
        if ($after->post_status === 'future' && $before->post_status === 'future') {
            Changes::add("list:$after->post_type", 'list');
        }
    }

    public static function appeared(int $id): void
    {
        DirectPostWrites::explained($id);
        self::changed(get_post($id), null);
    }

    /** Before a deletion: the terms still exist. */
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
        $after = array_map('intval', $append ? [...$before, ...$after] : $after);
        $before = array_map('intval', $before);
        self::termsTaken($id, [...array_diff($after, $before), ...array_diff($before, $after)], $taxonomy);
    }

    /** @param array<int|string> $changed ids as of term_taxonomy; the post is not in them any more, or has come to them */
    public static function termsTaken(int $id, array $changed, string $taxonomy): void
    {
        $post = $changed === [] || !Tags::isTaxonomy($taxonomy) ? null : get_post($id);
        if (!self::isSeen($post)) {
            return;
        }
        Changes::add("post:$id", "text:$id", "every:$post->post_type", 'every', ...QueryParent::below($post), ...TermEvents::numbers($taxonomy), ...TermEvents::containing(array_map('intval', $changed), $taxonomy));
        if (PostLinks::hasTermsInUrl($post->post_type)) {
            Changes::add("name:$id", "names:$post->post_type");
        }
    }

    public static function metaWritten(mixed $ids, int $post, string $key): void
    {
        $isUnshown = preg_match(self::UNSHOWN_META, $key) || in_array($key, (array) apply_filters('pagewell_ignored_meta', []), true);
        $shown = $isUnshown ? null : get_post($post);
        if (self::isSeen($shown) && ProductStock::isMeta($key) && ProductStock::has($shown->post_type)) {
            self::restocked($shown, false);
        } elseif (self::isSeen($shown)) {
            Changes::add("post:$shown->ID", "every:$shown->post_type", 'every', ...QueryParent::below($shown), ...(Tags::isShownMeta($key) ? ["text:$shown->ID"] : []));
        }
        WrittenPosts::explained($post, $key);
    }

    public static function metaDeleted(mixed $ids, int $post, string $key): void
    {
        WrittenPosts::deletionExplained();
        self::metaWritten($ids, $post, $key);
    }

    /**
     * The stock or the sales of a product have changed.
     *
     * @param bool $isTouched whether also its time of modification has
     */
    public static function restocked(\WP_Post $post, bool $isTouched): void
    {
        Changes::add(...ProductStock::tags($post->ID, $post->post_type), ...($isTouched ? ['every', 'modified'] : ['every']));
    }

    /** Whether two states of a post differ at most in the time of modification. */
    public static function isOnlyTouched(\WP_Post $after, \WP_Post $before): bool
    {
        return self::isSeen($after) && !self::textChanges($after, $before);
    }

    public static function stuck(int $id): void
    {
        Changes::add(Tags::STICKY, "stuck:$id");
    }

    /** Compares a post before and after a write; null if it does not exist. */
    private static function changed(?\WP_Post $after, ?\WP_Post $before): void
    {
        $types = array_filter([$after?->post_type, $before?->post_type]);
        if (self::isSeen($after) || self::isSeen($before)) {
            array_map(static fn (string $type) => self::changedAs($type, $after, $before), array_unique($types));
        }
    }

    /** If a post gets another type, both types change. */
    private static function changedAs(string $type, ?\WP_Post $after, ?\WP_Post $before): void
    {
        if (Tags::isTheme($type)) {
            Changes::add(Tags::SITE);
        } elseif ($type === 'nav_menu_item') {
            SiteEvents::menuItemTurned(($after ?? $before)->ID);
        } elseif (Tags::isData($type)) {
            $id = ($after ?? $before)->ID;
            $lists = self::listsChange($after, $before);
            Changes::add('modified', ...QueryParent::below($after), ...QueryParent::below($before));
            Changes::add(...($lists || self::textChanges($after, $before) ? Tags::post($id, $type) : ["post:$id", "text:$id", "every:$type", 'every', ...ProductStock::tags($id, $type)]));
            if ($lists || $after?->post_title !== $before?->post_title) {
                Changes::add("name:$id", "names:$type", ...array_map(static fn (\WP_Post $post): string => "children:$post->post_parent", array_values(array_filter([$after, $before], static fn (?\WP_Post $post): bool => (int) $post?->post_parent > 0))));
            }
            if ($lists) {
                // After a deletion it is counted once more (DirectPostWrites).
                self::isCounted($type, $after) === self::isCounted($type, $before) || SitemapPages::turned("post/$type");
                Changes::add("list:$type", 'list', Tags::NOWHERE);
                $comes = self::isSeen($after) !== self::isSeen($before) || $after?->post_type !== $before?->post_type;
                self::place($after, $comes);
                self::place($before, $comes);
                self::isSameAuthor($after, $before) || SiteEvents::writtenBy($type, self::isSeen($after) ? $after : null, self::isSeen($before) ? $before : null);
            }
            if (self::isSeen($after) !== self::isSeen($before) || $after?->post_password !== $before?->post_password) {
                CommentEvents::turnedWith($id);
            }
        }
    }

    private static function textChanges(?\WP_Post $after, ?\WP_Post $before): bool
    {
        $columns = static fn (?\WP_Post $post): array => array_map(strval(...), array_diff_key(array_filter((array) $post, is_scalar(...)), array_flip(self::PASSING)));
        return $columns($after) !== $columns($before);
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

    /** Adds all lists that contain, or contained, a post. */
    private static function place(?\WP_Post $post, bool $comes): void
    {
        if (!self::isSeen($post)) {
            return;
        }
        // Old URLs of a post lead to it (wp_old_slug_redirect).
        $names = [$post->post_name, ...array_slice((array) get_post_meta($post->ID, '_wp_old_slug'), 0, self::OLD_NAMES_MAX)];
        Changes::add("by:$post->post_author", ...((int) $post->post_author === 0 ? ["by:0/$post->post_type"] : []), ...Tags::called($names), ...Tags::dates($post->post_date));
        foreach (get_object_taxonomies($post->post_type) as $taxonomy) {
            $terms = Tags::isTaxonomy($taxonomy) ? wp_get_object_terms($post->ID, $taxonomy, ['fields' => 'tt_ids']) : [];
            if (is_array($terms) && $terms !== []) {
                Changes::add(...TermEvents::numbers($taxonomy, $comes), ...TermEvents::containing(array_map('intval', $terms), $taxonomy));
            }
        }
        foreach (PostLinks::neighbours($post) as $neighbour) {
            Changes::add("beside:$neighbour");
        }
    }

    private static function isSameAuthor(?\WP_Post $after, ?\WP_Post $before): bool
    {
        return self::isSeen($after) && self::isSeen($before) && $after->post_author === $before->post_author && $after->post_type === $before->post_type;
    }

    /** Whether sitemaps of this type have it. */
    private static function isCounted(string $type, ?\WP_Post $post): bool
    {
        return $post?->post_type === $type && $post->post_status === 'publish';
    }

    /** Whether visitors without a login can see it. An attachment has its parent's status. */
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
