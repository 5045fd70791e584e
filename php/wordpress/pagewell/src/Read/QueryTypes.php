<?php

/**
 * The types of posts that a query may find.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Tags;

/**
 * Reads the arguments of a query; has no state.
 *
 * @internal
 */
final class QueryTypes
{
    private function __construct()
    {
    }

    /** @return list<string> types of posts; for any, those that WordPress searches */
    public static function of(\WP_Query $query): array
    {
        $type = $query->query_vars['post_type'] ?? '';
        if ($type === '' || $type === []) {
            $any = $query->is_search() || $query->is_tax() || !empty($query->query_vars['tax_query']);
            $type = $any ? 'any' : ($query->is_attachment() ? 'attachment' : 'post');
        }
        $types = array_map('strval', array_values((array) $type));
        $types = in_array('any', $types, true) ? array_values(get_post_types(['exclude_from_search' => false])) : $types;
        if (empty($query->query_vars['post_type']) && $query->is_tax()) {
            // As WP_Query::get_posts() does for the archive of a plugin's taxonomy.
            $types = self::typesOf(array_keys($query->tax_query->queried_terms ?? []), $types);
        }
        return array_values(array_filter($types, Tags::isData(...)));
    }

    /**
     * @param list<string> $taxonomies
     * @param list<string> $types
     *
     * @return list<string> those of the types that have one of the taxonomies; all if none has
     */
    private static function typesOf(array $taxonomies, array $types): array
    {
        return array_values(array_filter($types, static fn (string $type): bool => array_intersect($taxonomies, $type === 'attachment' ? get_taxonomies_for_attachments() : get_object_taxonomies($type)) !== [])) ?: $types;
    }
}
