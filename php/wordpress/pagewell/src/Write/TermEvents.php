<?php

/**
 * The effects of a write to a category, a tag or another term on pages.
 *
 * The archive of a term also lists the posts of its child terms. So a move changes the archives of
 * all old and new parents: `edit_terms` is called before the write, and `edited_term` after it.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;

/**
 * Handles the hooks for terms.
 *
 * @internal
 */
final class TermEvents
{
    /** WordPress's own functions that count. */
    private const COUNTERS = ['', '_update_post_term_count', '_update_generic_term_count'];

    /** @var array<int, int> by term_taxonomy_id */
    private static array $counts = [];

    /** A new term is empty, so it appears only in lists with empty terms. */
    public static function created(int $term, int $place, string $taxonomy): void
    {
        if (Tags::isTaxonomy($taxonomy)) {
            $new = get_term($term, $taxonomy);
            $isOnTop = $new instanceof \WP_Term && (int) $new->parent === 0;
            Changes::add("terms:$taxonomy", ($new instanceof \WP_Term ? Tags::slug($taxonomy, $new->slug) : null) ?? 'slug:*', ...($isOnTop ? [] : ["tree:$taxonomy"]));
        }
    }

    /** Before a term is written or deleted. */
    public static function edited(int $term, string $taxonomy): void
    {
        $found = get_term($term, $taxonomy);
        if (Tags::isTaxonomy($taxonomy) && $found instanceof \WP_Term) {
            // As it is now, and as it was: another request may have written in between.
            Changes::add("term:$term", "tree:$taxonomy", Tags::slug($taxonomy, $found->slug) ?? 'slug:*', ...self::listsWith($found), ...self::containing([$found->term_taxonomy_id], $taxonomy));
        }
    }

    /** After a term was written. */
    public static function editedTerm(int $term, int $place, string $taxonomy): void
    {
        self::edited($term, $taxonomy);
    }

    /** @param mixed $posts the ids of its former posts */
    public static function deleted(int $term, int $place, string $taxonomy, mixed $deleted, mixed $posts): void
    {
        if (!Tags::isTaxonomy($taxonomy)) {
            return;
        }
        SitemapPages::turned("term/$taxonomy");
        foreach ((array) $posts as $post) {
            Changes::add('post:' . (int) $post, 'text:' . (int) $post, ...(PostLinks::hasTermsInUrl((string) get_post_type((int) $post)) ? ['name:' . (int) $post] : []));
        }
        Changes::add('every');
        foreach (get_taxonomy($taxonomy)->object_type ?? [] as $type) {
            Changes::add("every:$type", 'below:*', ...(PostLinks::hasTermsInUrl($type) ? ["names:$type"] : []));
        }
    }

    /** Before the number of posts in a term is written. */
    public static function beforeCount(int $place, string $taxonomy): void
    {
        self::$counts[$place] = self::count($place);
    }

    /** After it was written: pages that show the number, or hide empty terms, change. */
    public static function counted(int $place, string $taxonomy): void
    {
        [$before, $after] = [self::$counts[$place] ?? null, self::count($place)];
        if (Tags::isTaxonomy($taxonomy) && $before !== $after) {
            $turns = $before === null || ($before === 0) !== ($after === 0);
            Changes::add("counts:$taxonomy", ...($turns ? ["filled:$taxonomy"] : []));
            $turns && SitemapPages::turned("term/$taxonomy");
        }
    }

    /**
     * Returns the names for the numbers of posts in the terms of a taxonomy. Which terms have posts is found
     * where WordPress writes the numbers (counted); a plugin may write them in its own way.
     *
     * @param bool $comes whether a post comes or goes, so that WordPress counts another number
     *
     * @return list<string>
     */
    public static function numbers(string $taxonomy, bool $comes = true): array
    {
        $isKnown = in_array(get_taxonomy($taxonomy)->update_count_callback ?? '', self::COUNTERS, true);
        $isKnown || SitemapPages::turned("term/$taxonomy");
        return $isKnown ? ($comes ? ["counts:$taxonomy"] : []) : ["counts:$taxonomy", "filled:$taxonomy"];
    }

    private static function count(int $place): int
    {
        global $wpdb;
        return (int) $wpdb->get_var($wpdb->prepare("SELECT count FROM $wpdb->term_taxonomy WHERE term_taxonomy_id = %d", $place));
    }

    public static function metaWritten(mixed $ids, int $term): void
    {
        $found = get_term($term);
        if ($found instanceof \WP_Term && Tags::isTaxonomy($found->taxonomy)) {
            Changes::add("term:$term", ...self::listsWith($found));
        }
    }

    /**
     * The lists that show a term: an empty one is only in lists with empty terms.
     *
     * @return list<string>
     */
    private static function listsWith(\WP_Term $term): array
    {
        $isEmpty = self::count($term->term_taxonomy_id) === 0 && get_term_children($term->term_id, $term->taxonomy) === [];
        return $isEmpty ? ["terms:$term->taxonomy"] : Tags::termsOf($term->taxonomy);
    }

    /**
     * Returns the names of the archives that list the posts of these terms: their own, and those of
     * their parents.
     *
     * @param list<int> $places ids as of term_taxonomy
     *
     * @return list<string>
     */
    public static function containing(array $places, string $taxonomy): array
    {
        $tags = [];
        foreach ($places as $place) {
            $tags[] = "in:$place";
            $term = get_term_by('term_taxonomy_id', $place, $taxonomy);
            foreach ($term instanceof \WP_Term ? get_ancestors($term->term_id, $taxonomy, 'taxonomy') : [] as $above) {
                $above = get_term($above, $taxonomy);
                if ($above instanceof \WP_Term) {
                    $tags[] = "in:$above->term_taxonomy_id";
                }
            }
        }
        return array_values(array_unique($tags));
    }
}
