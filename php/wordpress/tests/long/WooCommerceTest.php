<?php

/**
 * A shop: after each change, every page is the same as WooCommerce would render it at that moment, and few pages are
 * purged that did not change.
 *
 * WooCommerce is in no package of Debian. So its directory is given, with that of a WordPress which it runs on:
 *
 *     PAGEWELL_WOOCOMMERCE=/path/to/plugins/woocommerce PAGEWELL_WORDPRESS=/path/to/wordpress \
 *         SHOW=1 phpunit --configuration php/wordpress --filter WooCommerceTest
 *
 * Without it, the test is skipped, and says so. php/wordpress/tests/WordPressShopTest.php has the same mechanisms
 * without WooCommerce.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\PageComparison;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WooCommerceTest extends TestCase
{
    /** Purged pages ÷ changed pages, over all changes; and for the orders alone. The goal is 1.5 for both, and reached by the orders. */
    private const RATIO_MAX = 1.65;
    private const RATIO_OF_ORDERS_MAX = 1.6;

    private const PAGES = [
        '/', '/shop/', '/?orderby=price&post_type=product', '/product/anchor/', '/product/buoy/', '/product/chain/', '/product/oar/', '/product/rope/', '/product/sail/',
        '/product-category/metal/', '/product-category/wood/', '/product-category/cloth/', '/product-tag/new/', '/?s=o&post_type=product', '/best/', '/sale/', '/featured/', '/list/', '/stock/',
        '/product-category/metal/feed/', '/wp-sitemap-posts-product-1.xml', '/ferry/', '/about/', '/author/ada/',
    ];

    private const CHANGES = [
        'a price' => '$of("anchor")->set_regular_price("31"); $p->save();',
        'a sale' => '$of("buoy")->set_sale_price("3"); $p->save();',
        'a sale ends' => '$of("buoy")->set_sale_price(""); $p->save();',
        'a stock' => 'wc_update_product_stock($of("chain"), 7);',
        'an order of one product' => '$order(["chain" => 1]);',
        'an order of two' => '$order(["chain" => 1, "oar" => 2]);',
        'an order is cancelled' => '$last()->update_status("cancelled");',
        'an order is paid' => '$order(["rope" => 1], "pending"); $last()->payment_complete();',
        'an order is completed' => '$last()->update_status("completed");',
        'an order of a product without a stock' => '$order(["sail" => 1]);',
        'the last one is sold' => 'wc_update_product_stock($of("oar"), 1); $order(["oar" => 1]);',
        'it is there again' => 'wc_update_product_stock($of("oar"), 5);',
        'a name' => '$of("rope")->set_name("Long rope"); $p->save();',
        'a text' => '$of("rope")->set_description("A rope of hemp."); $p->save();',
        'a short text' => '$of("rope")->set_short_description("Hemp."); $p->save();',
        'a new product' => '$n = new WC_Product_Simple(); $n->set_name("Net"); $n->set_slug("net"); $n->set_regular_price("5"); $n->set_category_ids([$term("wood")]); $n->save();',
        'a product is thrown away' => 'wp_trash_post($id("net"));',
        'a product is hidden' => '$of("sail")->set_catalog_visibility("hidden"); $p->save();',
        'and shown' => '$of("sail")->set_catalog_visibility("visible"); $p->save();',
        'a product is featured' => '$of("anchor")->set_featured(true); $p->save();',
        'and is not' => '$of("anchor")->set_featured(false); $p->save();',
        'a category has another name' => 'wp_update_term($term("cloth"), "product_cat", ["name" => "Canvas"]);',
        'a category has another text' => 'wp_update_term($term("cloth"), "product_cat", ["description" => "All of canvas."]);',
        'a category has another name, by REST' => 'wp_set_current_user(1); $r = new WP_REST_Request("PUT", "/wc/v3/products/categories/" . $term("wood")); $r->set_body_params(["name" => "Timber"]); rest_do_request($r)->is_error() && exit(1);',
        'a new category' => 'wp_insert_term("Glass", "product_cat");',
        'a product goes to it' => '$of("buoy")->set_category_ids([$term("glass")]); $p->save();',
        'a tag' => '$of("chain")->set_tag_ids([get_term_by("slug", "new", "product_tag")->term_id]); $p->save();',
        'a review' => '$review("anchor", 1);',
        'a review that waits' => '$review("chain", 0);',
        'a review goes' => 'wp_trash_comment(get_comments(["number" => 1, "status" => "approve", "post_type" => "product"])[0]);',
        'a variation has another price' => '$v = wc_get_product($of("sail")->get_children()[0]); $v->set_regular_price("90"); $v->save();',
        'a variation is sold' => '$v = wc_get_product($of("sail")->get_children()[0]); $v->set_manage_stock(true); $v->set_stock_quantity(3); $v->save(); $add($v->get_id());',
        'a stock number of the maker' => '$of("rope")->set_sku("R-1"); $p->save();',
        'an order of products' => '$of("rope")->set_menu_order(3); $p->save();',
        'another product is recommended' => '$of("rope")->set_upsell_ids([$id("anchor")]); $p->save();',
        'the currency' => '$setting("woocommerce_currency", "EUR");',
        'taxes' => '$setting("woocommerce_calc_taxes", "yes"); $setting("woocommerce_tax_display_shop", "incl"); $setting("woocommerce_prices_include_tax", "no");',
        'a rate of a tax' => 'WC_Tax::_insert_tax_rate(["tax_rate_country" => "", "tax_rate" => "10.0000", "tax_rate_name" => "VAT", "tax_rate_priority" => 1, "tax_rate_class" => ""]);',
        'another rate of it' => 'WC_Tax::_update_tax_rate(1, ["tax_rate" => "20.0000"]);',
        'a zone of shipping' => '$z = new WC_Shipping_Zone(); $z->set_zone_name("Here"); $z->save(); $z->add_shipping_method("flat_rate");',
        'a coupon' => '$c = new WC_Coupon(); $c->set_code("ten"); $c->set_amount("10"); $c->save();',
        'a customer' => 'wc_create_new_customer("eve@blog.test", "eve", "secret-of-eve");',
        'an address of a customer' => '$c = new WC_Customer(get_user_by("login", "eve")->ID); $c->set_billing_city("Kiel"); $c->save();',
        'a cart' => '$GLOBALS["wpdb"]->replace("wp_woocommerce_sessions", ["session_key" => "t_1", "session_value" => "a:0:{}", "session_expiry" => time() + 99]);',
        'a post of the blog' => 'wp_insert_post(["post_title" => "News", "post_status" => "publish"]);',
        'numbers of the shop are counted' => 'do_action("woocommerce_cleanup_sessions"); wc_recount_all_terms(); delete_transient("wc_products_onsale"); WC_Cache_Helper::get_transient_version("product", true);',
        'the products are in another order' => '$setting("woocommerce_default_catalog_orderby", "price");',
        'a scheduled sale begins' => '$of("chain")->set_sale_price("2"); $p->set_date_on_sale_from(time() + 3600); $p->save(); update_post_meta($id("chain"), "_sale_price_dates_from", time() - 60); wc_scheduled_sales();',
        'how many pages there are' => '$setting("woocommerce_catalog_columns", 3);',
    ];

    private const NAMES = '$id = fn ($slug) => get_page_by_path($slug, OBJECT, "product")->ID; $of = function ($slug) use (&$p, $id) { return $p = wc_get_product($id($slug)); };'
        . ' $term = fn ($slug) => get_term_by("slug", $slug, "product_cat")->term_id; $last = fn () => wc_get_orders(["limit" => 1, "orderby" => "id", "order" => "DESC"])[0];'
        . ' $order = function ($items, $status = "processing") use ($id) { $o = wc_create_order(); foreach ($items as $slug => $count) { $o->add_product(wc_get_product($id($slug)), $count); } $o->set_billing_email("a@blog.test"); $o->calculate_totals(); $o->save(); $o->update_status($status); };'
        . ' $add = function ($product) { $o = wc_create_order(); $o->add_product(wc_get_product($product), 1); $o->calculate_totals(); $o->save(); $o->update_status("processing"); };'
        . ' $review = function ($slug, $approved) use ($id) { $c = wp_insert_comment(["comment_post_ID" => $id($slug), "comment_author" => "Joe", "comment_author_email" => "joe@blog.test", "comment_content" => "Good.", "comment_type" => "review", "comment_approved" => $approved]); update_comment_meta($c, "rating", 4); WC_Comments::clear_transients($id($slug)); };'
        // As the page of settings saves it: by a user who may.
        . ' $setting = function ($name, $value) { wp_set_current_user(1); $_REQUEST["_wpnonce"] = "x"; $GLOBALS["pagenow"] = "admin.php"; $_REQUEST["page"] = "wc-settings"; set_current_screen("woocommerce_page_wc-settings"); update_option($name, $value); };';

    private const SHOP = 'require_once ABSPATH . "wp-admin/includes/admin.php"; WC_Install::install(); WC_Install::create_pages(); update_option("woocommerce_manage_stock", "yes"); update_option("woocommerce_coming_soon", "no"); update_option("woocommerce_permalinks", ["product_base" => "product"]);'
        . ' $GLOBALS["wp_rewrite"]->init(); foreach (["metal", "wood", "cloth"] as $slug) { $t[$slug] = wp_insert_term(ucfirst($slug), "product_cat", ["slug" => $slug])["term_id"]; } $new = wp_insert_term("New", "product_tag", ["slug" => "new"])["term_id"];'
        . ' foreach (["anchor" => ["metal", 30, 10], "buoy" => ["wood", 9, null], "chain" => ["metal", 4, 50], "oar" => ["wood", 15, 8], "rope" => ["cloth", 7, 20]] as $slug => [$cat, $price, $stock]) { $p = new WC_Product_Simple(); $p->set_name(ucfirst($slug)); $p->set_slug($slug); $p->set_regular_price((string) $price); $p->set_total_sales($price * 10); $p->set_category_ids([$t[$cat]]); $p->set_date_created("2026-02-0" . strlen($slug) . " 10:0" . strlen($cat) . ":00"); if ($stock !== null) { $p->set_manage_stock(true); $p->set_stock_quantity($stock); } if ($slug === "anchor") { $p->set_tag_ids([$new]); } if ($slug === "oar") { $p->set_sale_price("12"); $p->set_featured(true); } $p->save(); }'
        . ' $s = new WC_Product_Variable(); $s->set_name("Sail"); $s->set_slug("sail"); $s->set_category_ids([$t["cloth"]]); $a = new WC_Product_Attribute(); $a->set_name("Size"); $a->set_options(["Small", "Large"]); $a->set_variation(true); $a->set_visible(true); $s->set_attributes([$a]); $s->save(); foreach (["Small" => 60, "Large" => 80] as $size => $price) { $v = new WC_Product_Variation(); $v->set_parent_id($s->get_id()); $v->set_attributes(["size" => $size]); $v->set_regular_price((string) $price); $v->save(); } WC_Product_Variable::sync($s->get_id());'
        . ' foreach (["best" => "[products best_selling=true limit=4]", "sale" => "[sale_products]", "featured" => "[featured_products]", "list" => "<!-- wp:woocommerce/product-categories {\"hasCount\":true} /-->", "stock" => "[stock]"] as $name => $content) { wp_insert_post(["post_title" => $name, "post_name" => $name, "post_content" => $content, "post_type" => "page", "post_status" => "publish"]); }'
        . ' flush_rewrite_rules(); $GLOBALS["wpdb"]->query("UPDATE wp_posts SET post_date = post_date - INTERVAL ID MINUTE, post_date_gmt = post_date_gmt - INTERVAL ID MINUTE WHERE post_type = \'page\'"); wp_cache_flush();';

    public function testAfterEachChangeAllPagesAreAsWooCommerceMakesThem(): void
    {
        $directory = getenv('PAGEWELL_WOOCOMMERCE');
        if (!is_string($directory) || !is_file("$directory/woocommerce.php")) {
            self::markTestSkipped('PAGEWELL_WOOCOMMERCE is no directory with a WooCommerce');
        }
        putenv('WP_DEBUG=0');
        $blog = RealWordPress::settled();
        $blog->add($directory);
        $blog->command('update_option("active_plugins", ["woocommerce/woocommerce.php", "pagewell/pagewell.php"]);');
        $blog->plugin('add_shortcode("stock", fn () => "Chains: " . wc_get_product(get_page_by_path("chain", OBJECT, "product")->ID)->get_stock_quantity());');
        $blog->command(self::SHOP);
        $pagewell = $blog->behind();
        try {
            $pages = new BlogPages($pagewell);
            array_map($pages->ask(...), self::PAGES);
            $blog->command('wc_recount_all_terms();');
            $this->compare($blog, new PageComparison($pages, self::PAGES));
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }

    private function compare(RealWordPress $blog, PageComparison $all): void
    {
        foreach (self::CHANGES as $name => $script) {
            [$purged, $changed, $old, $unstored] = array_map(count(...), [$all->purged, $all->changed, $all->old, $all->unstored]);
            $blog->command('require_once ABSPATH . "wp-admin/includes/admin.php"; ' . self::NAMES . $script);
            $all->after($name);
            getenv('SHOW') && fwrite(STDERR, sprintf("%3d purged %3d changed %3d old  %s\n", count($all->purged) - $purged, count($all->changed) - $changed, count($all->old) - $old, $name) . implode("\n", [...array_slice($all->old, $old), ...array_slice($all->unstored, $unstored), '']));
        }
        getenv('SHOW') && fwrite(STDERR, $all->report() . implode("\n", [...$all->old, ...$all->unstored]) . "\n");
        // A page view computes the rating of a product after a review, and writes it.
        $unstored = preg_grep('/changed-since|in-progress/', $all->unstored, PREG_GREP_INVERT);
        self::assertSame([[], []], [$all->old, $unstored], 'no page is old, and all are stored');
        $orders = static fn (array $pages): int => count(preg_grep('/after: an order (of (one|two|a)|is) /', $pages));
        self::assertLessThanOrEqual(self::RATIO_OF_ORDERS_MAX * $orders($all->changed), $orders($all->purged), $all->report());
        self::assertLessThan(self::RATIO_MAX, $all->ratio(), $all->report());
    }
}
