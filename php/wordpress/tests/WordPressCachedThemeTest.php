<?php

/**
 * A theme that keeps menus, lists and parts of pages (php/wordpress/tests/cached-theme): after each change every page is
 * as WordPress makes it at that moment, and few pages are purged that did not change.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\PageComparison;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressCachedThemeTest extends TestCase
{
    private const PAGES = ['/', '/ferry/', '/tug/', '/gull/', '/about/', '/category/ships/', '/category/birds/', '/author/ada/', '/?s=tern'];

    private const CHANGES = [
        'a text' => 'wp_update_post(["ID" => $id("tug"), "post_content" => "A strong tug."]);',
        'a title' => 'wp_update_post(["ID" => $id("buoy"), "post_title" => "An old buoy"]);',
        'a post' => 'wp_insert_post(["post_title" => "Fog", "post_name" => "fog", "post_status" => "publish", "post_date" => "2026-03-09 12:00:00"]);',
        'a post goes' => 'wp_trash_post($id("fog"));',
        'an entry of the menu' => '$m = get_nav_menu_locations()["footer"]; wp_update_nav_menu_item($m, 0, ["menu-item-title" => "Ferry", "menu-item-object" => "post", "menu-item-object-id" => $id("ferry"), "menu-item-type" => "post_type", "menu-item-status" => "publish"]); wp_update_nav_menu_object($m, ["menu-name" => "Main"]);',
        'a title in the menu, which is kept' => 'wp_update_post(["ID" => get_page_by_path("about")->ID, "post_title" => "Of the port"]);',
        'a name' => 'wp_update_user(["ID" => get_user_by("login", "ada")->ID, "display_name" => "Countess Ada"]);',
        'a category, which is kept' => 'wp_update_term(get_term_by("slug", "ships", "category")->term_id, "category", ["name" => "Boats"]);',
        'the category is not kept any more' => 'delete_transient("cached_sidebar");',
    ];

    public function testAfterEachChangeAllPagesAreAsTheThemeMakesThem(): void
    {
        $blog = RealWordPress::settled();
        $themes = (string) realpath(__DIR__);
        $blog->plugin("register_theme_directory('$themes');");
        $blog->command('$locations = get_nav_menu_locations(); search_theme_directories(true); switch_theme("cached-theme"); set_theme_mod("nav_menu_locations", $locations);');
        $pagewell = $blog->behind();
        try {
            $pages = new BlogPages($pagewell);
            array_map($pages->ask(...), self::PAGES);
            self::assertStringContainsString('<ul><li>Birds: 2</li>', $pages->ask('/')[0]);
            $all = new PageComparison($pages, self::PAGES);
            $names = '$id = fn ($slug) => get_page_by_path($slug, OBJECT, "post")->ID; ';
            foreach (self::CHANGES as $name => $script) {
                $blog->command($names . $script);
                $all->after($name);
            }
            self::assertSame([[], []], [$all->old, $all->unstored], 'no page is old, and all are stored');
            self::assertLessThan(1.5, $all->ratio(), $all->report() . implode("\n", $all->purged));
            self::assertGreaterThan(20, count($all->changed), $all->report());
            // A part that is never deleted ends the lifetime of the pages that show it.
            [$lists, $posts] = array_map(static fn (string $path): int => self::lifetime($pages, $path), ['/category/birds/', '/gull/']);
            self::assertTrue($lists > 0 && $lists <= 300 && $posts > 300, "$lists $posts");
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }

    private static function lifetime(BlogPages $pages, string $path): int
    {
        return preg_match('/ttl=(\d+)/', $pages->ask($path)[1], $found) === 1 ? (int) $found[1] : 0;
    }
}
