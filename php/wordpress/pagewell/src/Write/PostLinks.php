<?php

declare(strict_types=1);

/**
 * The links between posts: by their terms in a URL, and to the next and the previous one.
 */

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Tags;

/**
 * Reads the rules for URLs and the dates of posts; has no state.
 *
 * @internal
 */
final class PostLinks
{
    /** Parts of a URL that are no terms. */
    private const PLAIN_PARTS = ['year', 'monthnum', 'day', 'hour', 'minute', 'second', 'post_id', 'postname', 'author'];

    /** Maximum number of neighbours of one date that are named individually. */
    private const NEIGHBOURS_MAX = 50;

    private function __construct()
    {
    }

    /** Whether the URLs of posts of this type may contain their terms. Pages have none there. */
    public static function hasTermsInUrl(string $type): bool
    {
        $isOfPosts = $type !== 'page' && self::hasTerms((string) get_option('permalink_structure'));
        return $isOfPosts || (!in_array($type, ['post', 'page', 'attachment'], true) && self::isLinkedByTerms($type));
    }

    /** Whether a form of URLs has other parts than the plain ones and the name of the type. */
    private static function hasTerms(string $form, string $type = ''): bool
    {
        preg_match_all('~%([^%/]+)%~', $form, $parts);
        return array_diff($parts[1], [$type, ...self::PLAIN_PARTS]) !== [];
    }

    /** The same for types of plugins: by the form of their URLs, or by a filter that may add anything. */
    private static function isLinkedByTerms(string $type): bool
    {
        if (self::hasTerms((string) ($GLOBALS['wp_rewrite']->extra_permastructs[$type]['struct'] ?? ''), $type)) {
            return true;
        }
        $filters = array_merge(...array_values(($GLOBALS['wp_filter']['post_type_link'] ?? null)?->callbacks ?? []));
        return array_filter($filters, static fn (array $filter): bool => !self::isPlainFilter($filter['function'])) !== [];
    }

    /** Whether a filter for URLs adds no terms where the form of the URL has none: the plugin's own, and WooCommerce's. */
    private static function isPlainFilter(mixed $filter): bool
    {
        return $filter === 'wc_product_post_type_link' || ($filter instanceof \Closure && str_starts_with((string) (new \ReflectionFunction($filter))->getNamespaceName(), 'Pagewell\\'));
    }

    /**
     * The posts of the dates right before and after, whose pages may link to this one.
     *
     * @return list<int>
     */
    public static function neighbours(\WP_Post $post): array
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
}
