<?php

/**
 * Dependencies on the terms that WordPress reads while it renders: single terms, and lists of a
 * taxonomy.
 *
 * Each function returns its first argument, because its hook (Sources) is a filter.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Observer;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;

/**
 * Records the terms that a page shows.
 *
 * @internal
 */
final class TermSources
{
    /** @var array<string, true> taxonomies whose hierarchy is noticed when it is read */
    private static array $trees = [];

    /** All taxonomies are registered: action `wp_loaded`. WordPress stores the hierarchy of each in an option. */
    public static function listenToTrees(): void
    {
        foreach (array_filter(get_taxonomies(['hierarchical' => true]), Tags::isTaxonomy(...)) as $taxonomy) {
            self::$trees[$taxonomy] = true;
            add_filter("pre_option_{$taxonomy}_children", Observer::of("pre_option_{$taxonomy}_children", static fn (mixed $value): mixed => self::tree($value, $taxonomy)), PHP_INT_MAX);
        }
    }

    /** The terms below others are read. Those in a condition on posts have names of posts (`in:7`), those of a list that of the list. */
    private static function tree(mixed $value, string $taxonomy): mixed
    {
        $readers = array_values(array_diff(Frames::after('get_option', '_get_term_hierarchy'), ['get_term_children', '_get_term_children']));
        match ($readers[0] ?? '') {
            'WP_Tax_Query::clean_query', 'WP_Term_Query::get_terms' => null,
            '_wp_menu_item_classes_by_context' => self::above($taxonomy),
            default => Page::uses("tree:$taxonomy", 'in:*'),
        };
        return $value;
    }

    /** A menu marks the terms above those of the page. A term that moves has its own name. */
    private static function above(string $taxonomy): void
    {
        $shown = ($GLOBALS['wp_query'] ?? null) instanceof \WP_Query ? get_queried_object() : null;
        $terms = match (true) {
            $shown instanceof \WP_Term => [$shown],
            $shown instanceof \WP_Post => get_object_term_cache($shown->ID, $taxonomy) ?: wp_get_object_terms($shown->ID, $taxonomy),
            default => [],
        };
        foreach (is_array($terms) ? $terms : [] as $term) {
            Page::uses(...array_map(static fn (mixed $id): string => 'term:' . (int) $id, [$term->term_id, ...get_ancestors($term->term_id, $taxonomy, 'taxonomy')]));
        }
    }

    public static function term(mixed $term): mixed
    {
        // WordPress loads the terms of all posts of a query in advance. If one is shown, it passes here again.
        if ($term instanceof \WP_Term && Tags::isTaxonomy($term->taxonomy) && (Page::has("term:$term->term_id") || !Frames::isInAdvance())) {
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
        if (SitemapPages::isCountOfTerms($query)) {
            return $query;
        }
        if (empty($asked['object_ids']) && empty($asked['include']) && empty($asked['slug']) && empty($asked['name']) && empty($asked['term_taxonomy_id'])) {
            self::listOf((array) ($asked['taxonomy'] ?? []), !empty($asked['hide_empty']));
        }
        return $query;
    }

    /** A taxonomy that has neither pages nor a screen marks posts, as those that a shop hides: no page shows how many. */
    private static function hasShownNumbers(string $taxonomy): bool
    {
        $found = get_taxonomy($taxonomy);
        return $found === false || $found->public || $found->show_ui || $found->publicly_queryable;
    }

    /** @param array<mixed> $taxonomies */
    private static function listOf(array $taxonomies, bool $isOfFilled): void
    {
        foreach (array_filter(array_filter($taxonomies, is_string(...)), Tags::isTaxonomy(...)) as $taxonomy) {
            if (isset(self::$trees[$taxonomy]) && (Frames::after('WP_Term_Query::get_terms', 'WP_Term_Query::query', 'get_terms', '_get_term_hierarchy') !== [] || Frames::after('get_terms', '_get_term_hierarchy') !== [])) {
                continue;
            }
            Page::uses($isOfFilled ? "filled:$taxonomy" : "terms:$taxonomy", ...(Frames::hasNumbers() && self::hasShownNumbers($taxonomy) ? ["counts:$taxonomy"] : []));
        }
    }
}
