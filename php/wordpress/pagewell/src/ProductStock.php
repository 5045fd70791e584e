<?php

declare(strict_types=1);

/**
 * The stock of a shop's product: its meta that orders change, and its tags (Tags).
 */

namespace Pagewell\WordPress;

/**
 * Has no state.
 *
 * @internal
 */
final class ProductStock
{
    /** Post meta of a product that an order changes. */
    private const STOCK_META = ['_stock', 'total_sales'];

    /** The post types of WooCommerce that have a stock. */
    private const PRODUCTS = ['product', 'product_variation'];

    private function __construct()
    {
    }

    /** Whether this meta of a product has a name of its own. */
    public static function isMeta(string $key): bool
    {
        return in_array($key, self::STOCK_META, true);
    }

    /** @return list<string> the names of the stock of a product; none for other posts */
    public static function tags(int $id, string $type): array
    {
        return self::has($type) ? ["stock:$id", 'stocks'] : [];
    }

    /** Whether posts of this type may have a stock. */
    public static function has(string $type): bool
    {
        return in_array($type, self::PRODUCTS, true);
    }
}
