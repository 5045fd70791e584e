<?php

/**
 * The dependencies of a query for posts on its conditions on terms.
 *
 *     a term that exists          in:7, whatever enters or leaves it, and its own name and place
 *     one that does not exist     slug:TAXONOMY/NAME, because it may come; terms:TAXONOMY if it is no plain slug
 *     any other condition         terms:TAXONOMY, too, and any data of posts (Queries)
 *
 * If every result is in one of the named terms, nothing else can enter the list (isNarrow).
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Tags;

/**
 * Reads the conditions of a query; has no state.
 *
 * @internal
 */
final class QueryTerms
{
    /** Maximum number of terms that are named individually. */
    private const TERMS_MAX = 50;

    /** Columns by which a condition names terms. */
    private const FIELDS = ['term_id', 'slug', 'name', 'term_taxonomy_id'];

    private function __construct()
    {
    }

    /** Whether every result is in a term of `conditions`. */
    public static function isNarrow(\WP_Query $query): bool
    {
        $clauses = self::clauses($query);
        $isOr = strtoupper((string) ($query->tax_query->relation ?? 'AND')) === 'OR';
        $positive = array_filter($clauses ?? [], self::isPositive(...));
        return $clauses !== null && $positive !== [] && (!$isOr || count($positive) === count($clauses));
    }

    /** Whether `conditions` names each term, so that a post can come or go only with one of them. */
    public static function isKnown(\WP_Query $query): bool
    {
        return self::clauses($query) !== null;
    }

    /** @return list<string> */
    public static function conditions(\WP_Query $query): array
    {
        $clauses = self::clauses($query);
        if ($clauses === null) {
            return self::taxonomies($query);
        }
        $tags = [];
        foreach ($clauses as ['taxonomy' => $taxonomy, 'terms' => $terms, 'field' => $field]) {
            foreach ((array) $terms as $value) {
                $term = get_term_by($field, $value, $taxonomy);
                $slug = $field === 'slug' && is_string($value) ? Tags::slug($taxonomy, sanitize_title_for_query($value)) : null;
                array_push($tags, ...match (true) {
                    $term instanceof \WP_Term => ["in:$term->term_taxonomy_id"],
                    $slug !== null => [$slug, 'slug:*', 'terms:*', 'in:*'],
                    default => ["terms:$taxonomy"],
                });
            }
        }
        return array_values(array_unique($tags));
    }

    /** @param array<string, mixed> $clause */
    private static function isPositive(array $clause): bool
    {
        return in_array(strtoupper((string) ($clause['operator'] ?? 'IN')), ['IN', 'AND'], true);
    }

    /**
     * The conditions as a flat list; null if they are of another kind.
     *
     * @return list<array<string, mixed>>|null
     */
    private static function clauses(\WP_Query $query): ?array
    {
        $clauses = [];
        $number = 0;
        foreach ($query->tax_query->queries ?? [] as $key => $clause) {
            if ($key === 'relation') {
                continue;
            }
            $operator = strtoupper((string) ($clause['operator'] ?? 'IN'));
            $isSimple = is_array($clause) && is_string($clause['taxonomy'] ?? null) && Tags::isTaxonomy($clause['taxonomy']) && isset($clause['terms'])
                && in_array($clause['field'] ?? '', self::FIELDS, true) && in_array($operator, ['IN', 'AND', 'NOT IN'], true);
            $number += $isSimple ? count((array) $clause['terms']) : 0;
            if (!$isSimple || $number > self::TERMS_MAX) {
                return null;
            }
            $clauses[] = $clause;
        }
        return $clauses;
    }

    /** @return list<string> the names for all terms of the taxonomies in the conditions */
    private static function taxonomies(\WP_Query $query): array
    {
        $conditions = $query->tax_query->queries ?? [];
        $taxonomies = [];
        array_walk_recursive($conditions, static function (mixed $value, int|string $key) use (&$taxonomies): void {
            if ($key === 'taxonomy' && is_string($value) && Tags::isTaxonomy($value)) {
                $taxonomies[$value] = "terms:$value";
            }
        });
        return array_values($taxonomies);
    }
}
