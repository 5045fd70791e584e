<?php

/**
 * What a write to a category, a tag or another term changes for visitors.
 *
 * The archive of a term lists what is in the terms below it, so a move changes the archives of
 * all terms above, where it was and where it is: `edit_terms` comes before the write, and
 * `edited_term` after it.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Listens to terms. */
final class TermEvents
{
    public static function created(int $term, int $place, string $taxonomy): void
    {
        if (Tags::isTaxonomy($taxonomy)) {
            Changes::add("terms:$taxonomy", Tags::NOWHERE);
        }
    }

    /** About to be written, or deleted. */
    public static function edited(int $term, string $taxonomy): void
    {
        $found = get_term($term, $taxonomy);
        if (Tags::isTaxonomy($taxonomy) && $found instanceof \WP_Term) {
            Changes::add("term:$term", "terms:$taxonomy", Tags::NOWHERE, ...self::containing([$found->term_taxonomy_id], $taxonomy));
        }
    }

    /** Written. */
    public static function editedTerm(int $term, int $place, string $taxonomy): void
    {
        self::edited($term, $taxonomy);
    }

    /** @param mixed $posts the ids of those that were in it */
    public static function deleted(int $term, int $place, string $taxonomy, mixed $deleted, mixed $posts): void
    {
        if (!Tags::isTaxonomy($taxonomy)) {
            return;
        }
        foreach ((array) $posts as $post) {
            Changes::add('post:' . (int) $post, 'name:' . (int) $post);
        }
        Changes::add('every');
        foreach (get_taxonomy($taxonomy)->object_type ?? [] as $type) {
            Changes::add("every:$type", "names:$type");
        }
    }

    public static function metaWritten(mixed $ids, int $term): void
    {
        $found = get_term($term);
        if ($found instanceof \WP_Term && Tags::isTaxonomy($found->taxonomy)) {
            Changes::add("term:$term", "terms:$found->taxonomy");
        }
    }

    /**
     * The names of the archives that list what is in these terms: their own, and those above.
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
