<?php

/**
 * What a query for posts (WP_Query) makes a page depend on: the posts it found, and which posts
 * it could have found.
 *
 * The second is told as narrowly as is certain: an archive by its term, author or date; what is
 * ordered by date by the list of its types; everything else (a search, an order by title, a
 * condition on meta or on several terms) by anything about any post of these types.
 *
 * Queries are remembered when they begin and read when the page is done, because most of them
 * (get_posts) run without WordPress's filters for results.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Remembers the queries of the running request. */
final class Queries
{
    /** Orders that only depend on what counts as a change of the list. */
    private const PLAIN_ORDERS = ['', 'none', 'id', 'date', 'post_date', 'author', 'post_author', 'type', 'post_type', 'parent', 'post_parent', 'menu_order'];

    /** Conditions on anything about a post. */
    private const WIDE = ['s', 'meta_key', 'meta_value', 'meta_query', 'title', 'exact', 'post_mime_type', 'ping_status', 'comment_status'];

    /** Conditions on terms. */
    private const TERMS = [
        'cat', 'category_name', 'category__in', 'category__not_in', 'category__and',
        'tag', 'tag_id', 'tag__in', 'tag__not_in', 'tag__and', 'tag_slug__in', 'tag_slug__and', 'tax_query',
    ];

    /** @var list<\WP_Query> */
    private static array $remembered = [];

    /**
     * A query is about to run: filter `posts_pre_query`.
     *
     * @param mixed $posts what another plugin answers in its place, or null
     */
    public static function remember(mixed $posts, \WP_Query $query): mixed
    {
        foreach (self::couldFind($query) as $tag) {
            Page::uses($tag);
        }
        self::$remembered[] = $query;
        return $posts;
    }

    /**
     * A query has run, with filters: filter `the_posts`.
     *
     * @param mixed $posts
     */
    public static function found(mixed $posts): mixed
    {
        self::harvest(is_array($posts) ? $posts : []);
        return $posts;
    }

    /** The page is done: what have they all found? */
    public static function finish(): void
    {
        foreach (self::$remembered as $query) {
            $posts = $query->posts ?? [];
            self::harvest($posts);
            if ($query->is_singular() && $posts === []) {
                Page::uses(Tags::NOWHERE);
            }
            if ($query->is_comment_feed()) {
                $post = $query->is_singular() ? (int) ($posts[0]->ID ?? 0) : 0;
                Page::uses($post > 0 ? "comments:$post" : 'comments');
            }
        }
        self::$remembered = [];
    }

    /** @param array<mixed> $posts posts, parts of posts, or ids */
    private static function harvest(array $posts): void
    {
        foreach ($posts as $post) {
            Page::usesPost((int) (is_object($post) ? $post->ID ?? 0 : $post));
        }
    }

    /** @return list<string> */
    private static function couldFind(\WP_Query $query): array
    {
        $vars = $query->query_vars;
        if ($query->is_singular() || $query->is_comment_feed()) {
            // What it finds is named in the end, and that it found nothing as well.
            return [];
        }
        if (!empty($vars['post__in'])) {
            return array_map(static fn ($id): string => 'post:' . (int) $id, array_slice((array) $vars['post__in'], 0, Page::TAGS_MAX));
        }
        $types = self::types($query);
        if ($types === []) {
            return [];
        }
        if (self::isPlain($vars)) {
            return self::archive($query) ?? self::each('list', $types);
        }
        $tags = self::byTerms($query);
        return str_contains(self::order($vars), 'comment_count') ? [...$tags, 'comments'] : $tags;
    }

    /**
     * The narrow names of an archive; null for other queries.
     *
     * @return list<string>|null
     */
    private static function archive(\WP_Query $query): ?array
    {
        $vars = $query->query_vars;
        $tags = [];
        if ($query->is_category() || $query->is_tag() || $query->is_tax()) {
            $term = $query->get_queried_object();
            $asked = $query->tax_query->queried_terms ?? [];
            $single = count($asked) === 1 && count((array) (reset($asked)['terms'] ?? [])) === 1;
            if (!$single || !$term instanceof \WP_Term) {
                return self::byTerms($query);
            }
            $tags[] = "in:$term->term_taxonomy_id";
        } elseif (array_filter(array_intersect_key($vars, array_flip(self::TERMS)))) {
            return self::byTerms($query);
        }
        if ($query->is_author() && (int) ($vars['author'] ?? 0) > 0) {
            $tags[] = 'by:' . (int) $vars['author'];
        }
        if ($query->is_date() && (int) ($vars['year'] ?? 0) > 0) {
            $tags[] = self::date($vars);
        }
        return $tags === [] ? null : $tags;
    }

    /**
     * Anything about any post; and where it asks for terms, what is below them, and what they are called.
     *
     * @return list<string>
     */
    private static function byTerms(\WP_Query $query): array
    {
        $conditions = $query->tax_query->queries ?? [];
        $taxonomies = [];
        array_walk_recursive($conditions, static function (mixed $value, int|string $key) use (&$taxonomies): void {
            if ($key === 'taxonomy' && is_string($value) && Tags::isTaxonomy($value)) {
                $taxonomies[$value] = "terms:$value";
            }
        });
        return [...self::each('every', self::types($query)), ...array_values($taxonomies)];
    }

    /** @param array<string, mixed> $vars */
    private static function date(array $vars): string
    {
        $date = sprintf('date:%04d', $vars['year']);
        foreach (['monthnum', 'day'] as $part) {
            if ((int) ($vars[$part] ?? 0) === 0) {
                break;
            }
            $date .= sprintf('-%02d', $vars[$part]);
        }
        return $date;
    }

    /** @param array<string, mixed> $vars */
    private static function isPlain(array $vars): bool
    {
        if (array_filter(array_intersect_key($vars, array_flip(self::WIDE)))) {
            return false;
        }
        $orders = preg_split('/[\s,]+/', self::order($vars)) ?: [];
        return array_diff($orders, self::PLAIN_ORDERS) === [] && !str_contains((string) wp_json_encode($vars['date_query'] ?? ''), 'modified');
    }

    /** @param array<string, mixed> $vars */
    private static function order(array $vars): string
    {
        $order = $vars['orderby'] ?? '';
        return strtolower(is_array($order) ? implode(' ', array_keys($order)) : (string) $order);
    }

    /** @return list<string> types of posts; the one name '*' for any */
    private static function types(\WP_Query $query): array
    {
        $type = $query->query_vars['post_type'] ?? '';
        if ($type === '' || $type === []) {
            $any = $query->is_search() || $query->is_tax() || !empty($query->query_vars['tax_query']);
            $type = $any ? 'any' : ($query->is_attachment() ? 'attachment' : 'post');
        }
        $types = array_map('strval', array_values((array) $type));
        return in_array('any', $types, true) ? ['*'] : array_values(array_filter($types, Tags::isData(...)));
    }

    /**
     * @param list<string> $types
     *
     * @return list<string>
     */
    private static function each(string $what, array $types): array
    {
        return array_map(static fn (string $type): string => $type === '*' ? $what : "$what:$type", $types);
    }
}
