<?php

/**
 * Dependencies on the terms that WordPress reads while it renders: single terms, and lists of a
 * taxonomy.
 *
 * Each function returns its first argument, because its hook (Sources) is a filter.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Records the terms that a page shows. */
final class TermSources
{
    public static function term(mixed $term): mixed
    {
        if ($term instanceof \WP_Term && Tags::isTaxonomy($term->taxonomy)) {
            Page::uses("term:$term->term_id");
        }
        return $term;
    }

    /** The terms of a post belong to the post; the terms of a taxonomy are a list of their own. */
    public static function terms(mixed $terms, mixed $taxonomies, mixed $asked): mixed
    {
        foreach ((array) $terms as $term) {
            self::term($term);
        }
        if (!is_array($asked) || empty($asked['object_ids'])) {
            self::listOf((array) $taxonomies, is_array($asked) && !empty($asked['hide_empty']));
        }
        return $terms;
    }

    /** A list without get_terms(), as in a sitemap. Terms by name belong to a condition on posts (Queries). */
    public static function termsAsked(mixed $query): mixed
    {
        $asked = (array) ($query->query_vars ?? []);
        if (empty($asked['object_ids']) && empty($asked['include']) && empty($asked['slug']) && empty($asked['name']) && empty($asked['term_taxonomy_id'])) {
            self::listOf((array) ($asked['taxonomy'] ?? []), !empty($asked['hide_empty']));
        }
        return $query;
    }

    /** @param array<mixed> $taxonomies */
    private static function listOf(array $taxonomies, bool $isOfFilled): void
    {
        foreach (array_filter(array_filter($taxonomies, is_string(...)), Tags::isTaxonomy(...)) as $taxonomy) {
            Page::uses($isOfFilled ? "filled:$taxonomy" : "terms:$taxonomy", ...(Frames::hasNumbers() ? ["counts:$taxonomy"] : []));
        }
    }
}
