<?php

/**
 * The mechanisms of shops, in a small plugin: a stock that is written by a statement of its own, a list that is kept in
 * a transient, prices that change at a time. `php/wordpress/tests/long/WooCommerceTest.php` tests WooCommerce itself
 * where its directory is given.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressShopTest extends TestCase
{
    private const SHOP = 'add_action("init", function () { register_post_type("ware", ["public" => true, "has_archive" => true, "supports" => ["title", "custom-fields"]]); });'
        . ' add_filter("the_content", fn ($content) => get_post_type() === "ware" ? "Stock: " . get_post_meta(get_the_ID(), "_stock", true) : $content);'
        . ' add_shortcode("sale", function () { global $wpdb; $ids = get_transient("on_sale"); if (!is_array($ids)) { $ids = $wpdb->get_col("SELECT post_id FROM $wpdb->postmeta WHERE meta_key = \'_sale\'"); set_transient("on_sale", $ids, 3600); } return "Sale: " . implode(", ", array_map("get_the_title", $ids)); });'
        . ' add_shortcode("tides", function () { global $wpdb; $wpdb->query("UPDATE wp_tides SET asked = asked + 1"); return "High: " . $wpdb->get_var("SELECT high FROM wp_tides WHERE id = 1"); });'
        . ' function ware($slug) { return get_page_by_path($slug, OBJECT, "ware")->ID; }'
        . ' function write_stock($id, $stock) { global $wpdb; $wpdb->query($wpdb->prepare("UPDATE $wpdb->postmeta SET meta_value = %s WHERE post_id = %d AND meta_key = \'_stock\'", $stock, $id)); wp_cache_delete($id, "post_meta"); clean_post_cache($id); }';

    /** Products as WooCommerce has them: all meta is read at once, and the stock passes a filter. */
    private const PRODUCTS = 'add_action("init", fn () => register_post_type("product", ["public" => true, "has_archive" => true, "supports" => ["title", "custom-fields"]]));'
        . ' class WC_Product_Data_Store_CPT { function read_product_data($id) { return array_map("current", get_post_meta($id)); } }'
        . ' class SmallProduct { private $data; function __construct(private $id) { $this->data = (new WC_Product_Data_Store_CPT)->read_product_data($id); } function get_id() { return $this->id; } function get_price() { return $this->data["_price"]; } function get_stock_quantity() { return apply_filters("woocommerce_product_get_stock_quantity", $this->data["_stock"], $this); } }'
        . ' add_filter("the_content", fn ($content) => get_post_type() === "product" ? "Left: " . (new SmallProduct(get_the_ID()))->get_stock_quantity() : $content);'
        . ' function product($slug) { return get_page_by_path($slug, OBJECT, "product")->ID; }'
        . ' add_shortcode("prices", fn () => implode(", ", array_map(fn ($post) => $post->post_title . ": " . (new SmallProduct($post->ID))->get_price(), get_posts(["post_type" => "product"]))));'
        . ' add_shortcode("left", fn () => "Lanterns: " . get_post_meta(product("lantern"), "_stock", true));'
        . ' add_shortcode("scarce", fn () => implode(", ", array_map(fn ($post) => $post->post_title, get_posts(["post_type" => "product", "orderby" => "meta_value_num", "meta_key" => "_stock", "order" => "ASC"]))));'
        . ' function sell($id, $left) { write_stock($id, $left); get_post($id); $GLOBALS["wpdb"]->update("wp_posts", ["post_modified" => "2026-03-01 00:00:0" . $left, "post_modified_gmt" => "2026-03-01 00:00:0" . $left], ["ID" => $id]); clean_post_cache($id); }';

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    private static ?BlogPages $pages = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$blog->plugin(self::SHOP . self::PRODUCTS);
        self::$blog->command('foreach (["anchor", "buoy", "chain"] as $day => $slug) { $id = wp_insert_post(["post_type" => "ware", "post_title" => ucfirst($slug), "post_name" => $slug, "post_status" => "publish", "post_date" => "2026-02-0" . ($day + 1) . " 10:00:00"]); add_post_meta($id, "_stock", "5"); }'
            . ' foreach (["lantern" => 4, "flag" => 6] as $slug => $stock) { $id = wp_insert_post(["post_type" => "product", "post_title" => ucfirst($slug), "post_name" => $slug, "post_status" => "publish", "post_date" => "2026-02-04 10:00:0$stock"]); add_post_meta($id, "_stock", $stock); add_post_meta($id, "_price", "12"); }'
            . ' foreach (["sale", "tides", "prices", "left", "scarce"] as $name) { wp_insert_post(["post_title" => $name, "post_name" => $name, "post_content" => "[$name]", "post_type" => "page", "post_status" => "publish"]); } $GLOBALS["wpdb"]->query("CREATE TABLE wp_tides (id INT PRIMARY KEY, high VARCHAR(9), asked INT)"); $GLOBALS["wpdb"]->insert("wp_tides", ["id" => 1, "high" => "04:10", "asked" => 0]); flush_rewrite_rules();');
        self::$pagewell = self::$blog->behind();
        self::$pages = new BlogPages(self::$pagewell);
        self::$pages->ask('/ferry/');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$pages = self::$blog = null;
    }

    public function testAStockChangesItsProductOnly(): void
    {
        $others = ['/ware/buoy/', '/ware/anchor/', '/feed/', '/ware/', '/ware/feed/', '/wp-sitemap-posts-ware-1.xml', '/?s=chain'];
        $this->fill('/ware/chain/', ...$others);
        self::$blog->command('write_stock(ware("chain"), 4);');
        self::assertStringContainsString('Stock: 4', self::$pages->ask('/ware/chain/')[0]);
        self::assertSame(['/ware/buoy/', '/ware/anchor/', '/feed/', '/wp-sitemap-posts-ware-1.xml'], array_values(array_filter(['/ware/buoy/', '/ware/anchor/', '/feed/', '/wp-sitemap-posts-ware-1.xml'], self::$pages->isKept(...))));
    }

    public function testAnOrderChangesThePagesThatShowTheStock(): void
    {
        $this->fill('/product/lantern/', '/product/flag/', '/prices/', '/left/', '/scarce/', '/product/feed/');
        self::$blog->command('sell(product("lantern"), 3);');
        self::assertTrue(self::$pages->isKept('/prices/'), 'it shows prices only');
        self::assertTrue(self::$pages->isKept('/product/flag/'), 'another product');
        self::assertStringContainsString('Left: 3', self::$pages->ask('/product/lantern/')[0]);
        self::assertStringContainsString('Lanterns: 3', self::$pages->ask('/left/')[0]);
        self::assertStringNotContainsString('hit', self::$pages->ask('/scarce/')[1], 'an order by stock');
        self::assertStringContainsString('<lastBuildDate>Sun, 01 Mar 2026 00:00:03', self::$pages->ask('/product/feed/')[0]);
        // A price in the same request.
        $this->fill('/prices/');
        self::$blog->command('sell(product("lantern"), 2); update_post_meta(product("lantern"), "_price", "13");');
        self::assertStringContainsString('Lantern: 13', self::$pages->ask('/prices/')[0]);
        $this->fill('/prices/');
        self::$blog->command('global $wpdb; $id = product("lantern"); $wpdb->query("UPDATE $wpdb->postmeta SET meta_value = 14 WHERE post_id = $id AND meta_key = \'_price\'"); wp_cache_delete($id, "post_meta"); sell($id, 1);');
        self::assertStringContainsString('Lantern: 14', self::$pages->ask('/prices/')[0], 'by a statement of its own');
    }

    public function testTheStatementsThatWriteMeta(): void
    {
        $cases = [
            'SELECT * FROM wp_postmeta' => 'none', "UPDATE wp_postmeta SET meta_value = meta_value -1.000000 WHERE post_id = 4 AND meta_key='_stock'" => '4:_stock', "UPDATE `wp_postmeta` SET `meta_value` = 'x' WHERE `post_id` = 4 AND `meta_key` = '_price'" => '4:_price',
            "INSERT INTO `wp_postmeta` (`post_id`, `meta_key`, `meta_value`) VALUES (4, '_stock', 'it\\'s')" => '4:_stock', 'DELETE FROM wp_postmeta WHERE meta_id IN( 7,8 )' => 'none',
            "UPDATE wp_postmeta SET meta_value = 'x' WHERE meta_key = '_stock'" => 'all', "UPDATE wp_postmeta SET meta_value = 'x WHERE post_id = 4 AND meta_key = \\'_stock\\''" => 'all', "UPDATE wp_postmeta SET meta_value = 'x' WHERE post_id = 4 AND meta_key = '_stock' OR 1" => 'all',
            "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (4, '_stock', '1'), (5, '_price', '1')" => 'all', "REPLACE INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (4, '_stock', '1')" => 'all', 'DELETE FROM wp_postmeta WHERE post_id = 4' => 'all', "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) SELECT 4, '_stock', '1'" => 'all',
        ];
        $script = '$class = "Pagewell\WordPress\Write\WrittenPosts"; $meta = new ReflectionProperty($class, "meta"); $meta->setAccessible(true); $deleted = new ReflectionProperty($class, "isMetaDeleted"); $deleted->setAccessible(true);'
            . ' foreach (' . var_export(array_keys($cases), true) . ' as $query) { $meta->setValue(null, []); $deleted->setValue(null, false); $class::see($query); $found = $meta->getValue(); $answers[] = $found === null ? "all" : (implode(" ", array_map(fn ($id, $keys) => "$id:" . implode(",", array_keys($keys)), array_keys($found), $found)) ?: "none"); } echo json_encode($answers);';
        self::assertSame(array_values($cases), json_decode(self::$blog->command($script), true));
    }

    public function testAProductWhoseRowIsWrittenTooChangesInEveryWay(): void
    {
        $this->fill('/ware/anchor/', '/ware/feed/');
        self::$blog->command('$GLOBALS["wpdb"]->update("wp_posts", ["post_title" => "Heavy anchor"], ["post_name" => "anchor"]); write_stock(ware("anchor"), 3);');
        self::assertStringContainsString('Heavy anchor', self::$pages->ask('/ware/feed/')[0]);
        // Past $wpdb as well: the row in the object cache is another one.
        $this->fill('/ware/feed/');
        self::$blog->command('$id = ware("anchor"); mysqli_query($GLOBALS["wpdb"]->dbh, "UPDATE wp_posts SET post_title = \'Light anchor\' WHERE ID = $id"); write_stock($id, 2);');
        self::assertStringContainsString('Light anchor', self::$pages->ask('/ware/feed/')[0]);
        // The row as WordPress has loaded it before: only the difference counts.
        $this->fill('/ware/feed/', '/ware/anchor/', '/ware/buoy/');
        self::$blog->command('$id = ware("anchor"); get_post($id); $GLOBALS["wpdb"]->update("wp_posts", ["post_title" => "Anchor again"], ["ID" => $id]); write_stock($id, 1);');
        self::assertStringContainsString('Anchor again', self::$pages->ask('/ware/feed/')[0]);
        self::assertStringContainsString('Anchor again', self::$pages->ask('/ware/anchor/')[0]);
    }

    public function testAListThatAPluginKeepsChangesWhenThePluginForgetsIt(): void
    {
        $this->fill('/sale/');
        self::$blog->command('add_post_meta(ware("buoy"), "_sale", "1"); delete_transient("on_sale");');
        self::assertStringContainsString('Sale: Buoy', self::$pages->ask('/sale/')[0]);
        self::$pages->ask('/sale/');
        self::assertTrue(self::$pages->isKept('/sale/'), 'the page that fills it is no change');
    }

    public function testATableOfAPlugin(): void
    {
        // A page view that counts is no change.
        $this->fill('/tides/', '/ferry/');
        self::assertStringContainsString('High: 04:10', self::$pages->ask('/tides/')[0]);
        self::$blog->command('$GLOBALS["wpdb"]->update("wp_tides", ["high" => "05:20"], ["id" => 1]);');
        self::assertStringContainsString('High: 05:20', self::$pages->ask('/tides/')[0]);
        self::assertTrue(self::$pages->isKept('/ferry/'));
        self::assertSame('"table:tides"', self::$blog->post('$GLOBALS["wpdb"]->query("DELETE FROM wp_tides WHERE id = 7");')[1]);
        self::assertSame('', self::$blog->post('$GLOBALS["wpdb"]->get_var("SELECT COUNT(*) FROM wp_tides"); $GLOBALS["wpdb"]->suppress_errors(); $GLOBALS["wpdb"]->query("DELETE FROM wp_tide_sessions");')[1]);
    }

    public function testAPriceThatBeginsLaterEndsTheLifetime(): void
    {
        self::$blog->command('update_post_meta(ware("buoy"), "_sale_price_dates_from", time() + 500); update_post_meta(ware("buoy"), "_sale_price_dates_to", time() + 900); update_post_meta(ware("chain"), "_EventStartDate", "2020-01-01 10:00:00");');
        self::assertSame(1, preg_match('/ttl=(\d+)/', self::$pages->ask('/ware/buoy/')[1], $found));
        self::assertLessThanOrEqual(500, (int) $found[1]);
        self::assertGreaterThan(400, (int) $found[1]);
        preg_match('/ttl=(\d+)/', self::$pages->ask('/ware/chain/')[1], $found);
        self::assertGreaterThan(1000, (int) $found[1], 'a moment that is over');
    }

    public function testTheHierarchyOfACategoryIsNoSetting(): void
    {
        $rest = 'wp_set_current_user(1); define("REST_REQUEST", true); $GLOBALS["wp"]->query_vars["rest_route"] = "/shop/v1/categories";';
        self::assertStringNotContainsString('"site"', self::$blog->post("$rest wp_update_term(get_term_by('slug', 'ships', 'category')->term_id, 'category', ['name' => 'Boats']); update_option('category_children', [1 => [2]]);")[1]);
        self::assertStringContainsString('"setting:shop_columns", "settings"', self::$blog->post("$rest update_option('shop_columns', 4);")[1]);
    }

    public function testTheStatementsThatWriteARow(): void
    {
        $cases = [
            'SELECT * FROM wp_posts' => 'none', 'UPDATE wp_postmeta SET meta_value = 3 WHERE post_id = 4' => 'none', "UPDATE wp_options SET option_value = 'UPDATE wp_options'" => 'none',
            "UPDATE `wp_posts` SET `post_title` = 'x' WHERE `ID` = 4" => '4', "UPDATE wp_posts SET post_title = 'x' WHERE ID IN (4, 5)" => '4 5', "DELETE FROM wp_term_relationships WHERE object_id = 4 AND term_taxonomy_id IN ('7')" => '4',
            'INSERT INTO `wp_term_relationships` (`object_id`, `term_taxonomy_id`) VALUES (4, 7)' => '4',
            "UPDATE wp_posts SET post_title = 'x WHERE ID = 4'" => 'all', "UPDATE wp_posts SET post_title = 'x' WHERE ID = 4 OR 1" => 'all', 'UPDATE wp_posts SET menu_order = 1' => 'all', 'REPLACE INTO wp_posts (ID) VALUES (4)' => 'all',
            '/* x */ DELETE FROM wp_posts WHERE ID > 4' => 'all', "UPDATE wp_posts SET menu_order = 1 WHERE post_type = 'a' AND ID = 4" => 'all', 'INSERT INTO wp_term_relationships (object_id, term_taxonomy_id) VALUES (4, 7), (5, 7)' => 'all',
        ];
        $script = '$class = "Pagewell\WordPress\Write\WrittenPosts"; $ids = new ReflectionProperty($class, "ids"); $ids->setAccessible(true);'
            . ' foreach (' . var_export(array_keys($cases), true) . ' as $query) { $ids->setValue(null, []); $class::see($query); $found = $ids->getValue(); $answers[] = $found === null ? "all" : (implode(" ", array_keys($found)) ?: "none"); } echo json_encode($answers);';
        self::assertSame(array_values($cases), json_decode(self::$blog->command($script), true));
    }

    private function fill(string ...$paths): void
    {
        foreach ($paths as $path) {
            self::$pages->ask($path);
            self::assertTrue(self::$pages->isKept($path), $path . ': ' . self::$pages->ask($path)[1]);
        }
    }
}
