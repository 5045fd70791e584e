<?php

/**
 * The stock and the sales of a shop's product, which each order changes, and with them the time of modification.
 *
 * WooCommerce reads all meta of a product at once, whatever the page shows of it. So this is no dependency on the
 * stock: the functions that return it pass filters. Meta that other code reads counts as read.
 *
 *     a list with the prices of products    post:4
 *     the same with "7 in stock"            post:4 stock:4
 *
 * Not seen: a theme that takes the stock out of a product without its functions (`get_data()`), or the time of
 * modification out of a post of a list. The page of a product depends on its stock in any case.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\ProductStock;

/**
 * Names what orders change.
 *
 * @internal
 */
final class ProductSources
{
    /** Class of WooCommerce whose descendants read products. */
    private const READER = 'WC_Product_Data_Store_CPT';

    /** Maximum number of calls between WooCommerce's function and the filter for meta. */
    private const FRAMES_MAX = 14;

    /** @var array<int, true> products whose stocks are named */
    private static array $ids = [];

    /** WooCommerce returns the stock, the sales or the time of modification of a product. */
    public static function shown(mixed $value, mixed $product = null): mixed
    {
        if (is_object($product) && method_exists($product, 'get_id')) {
            self::uses((int) $product->get_id());
            // A variation may share the stock of its product.
            method_exists($product, 'get_parent_id') && self::uses((int) $product->get_parent_id());
        }
        return $value;
    }

    /** The time of modification of the current post, or of one that is given, is shown. */
    public static function time(mixed $time, mixed $format = '', mixed $post = null): mixed
    {
        self::uses((int) (get_post($post instanceof \WP_Post ? $post : null)->ID ?? 0));
        return $time;
    }

    /** Meta of a post is read; without a key, all. */
    public static function meta(int $id, string $key): void
    {
        // Other posts pass here as often, and the stack costs more than their type.
        if (($key === '' || ProductStock::isMeta($key)) && self::isProduct($id) && !self::isReader()) {
            self::uses($id);
        }
    }

    /** Adds a dependency on the stock of a post, if it is a product. */
    public static function uses(int $id): void
    {
        if (self::isProduct($id)) {
            self::$ids[$id] = true;
            Page::uses(count(self::$ids) > Page::IDS_MAX ? 'stocks' : "stock:$id");
        }
    }

    /**
     * The names for the stocks on which the results of a query may depend.
     *
     * @param string|null  $sql   its statement; null: unknown
     * @param list<string> $types of posts
     *
     * @return list<string>
     */
    public static function ofQuery(?string $sql, array $types): array
    {
        $isAsked = (string) $sql === '' || preg_match('/stock|sales|meta_value|post_modified/i', $sql) === 1;
        return $isAsked && array_filter($types, ProductStock::has(...)) !== [] ? ['stocks'] : [];
    }

    private static function isProduct(int $id): bool
    {
        return $id > 0 && ProductStock::has((string) get_post_type($id));
    }

    /** Whether WooCommerce reads a product as a whole. */
    private static function isReader(): bool
    {
        foreach (class_exists(self::READER, false) ? debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, self::FRAMES_MAX) : [] as $frame) {
            if (str_starts_with($frame['function'], 'read_') && is_a($frame['class'] ?? '', self::READER, true)) {
                return true;
            }
        }
        return false;
    }
}
