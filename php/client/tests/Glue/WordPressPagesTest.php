<?php

/**
 * Every page of a blog, after each thing that happens to it, is as WordPress makes it at that moment.
 *
 * The pages in memory are compared with the same pages made anew. Which of them a change concerns is
 * not said here: a page that is as old as it was, and should not be, is found by itself, whatever it
 * shows. So is a change of which the plugin hears nothing, because WordPress has no word for it.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Glue;

use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressPagesTest extends TestCase
{
    private const PAGES = [
        '/', '/feed/', '/comments/feed/', '/ferry/', '/gull/', '/tern/', '/about/', '/about/team/', '/lamp/', '/new/',
        '/category/ships/', '/category/birds/', '/category/fish/', '/category/fish/feed/', '/tag/quay/', '/?category_name=ships,birds', '/?s=ferry&cat=-1',
        '/author/ada/', '/author/ada/feed/', '/2026/03/03/', '/?orderby=title', '/wp-sitemap-taxonomies-category-1.xml', '/wp-sitemap-users-1.xml',
    ];

    /** What happens, and how: as a command of wp-cli or a job would do it. */
    private const CHANGES = [
        'an item of the menu is new' => 'wp_update_nav_menu_item($main, 0, ["menu-item-title" => "Weather", "menu-item-url" => "http://weather.test/", "menu-item-status" => "publish"]);',
        'an item of the menu goes' => 'wp_delete_post(wp_get_nav_menu_items($main)[0]->ID, true);',
        'a post is published' => 'wp_insert_post(["post_title" => "Lamp", "post_name" => "lamp", "post_status" => "publish", "post_category" => [$ships], "tags_input" => "quay"]);',
        'a post is written where feeds have no entries' => 'wp_update_post(["ID" => $find("ferry"), "post_modified" => "2036-01-01 00:00:00", "post_content" => "Soon."]);',
        'an address comes to be' => 'wp_update_post(["ID" => $find("lamp"), "post_name" => "new"]);',
        'somebody comes to write' => 'wp_insert_user(["user_login" => "eve", "user_pass" => "secret-of-eve", "user_email" => "eve@blog.test", "role" => "author"]);',
        'and writes' => 'wp_insert_post(["post_title" => "Of Eve", "post_status" => "publish", "post_author" => get_user_by("login", "eve")->ID]);',
        'a category moves below another' => 'wp_update_term(wp_insert_term("Cod", "category")["term_id"], "category", ["parent" => $ships]);',
        'a post goes to it' => 'wp_set_post_categories($find("gull"), [get_term_by("slug", "cod", "category")->term_id]);',
        'and it moves on' => 'wp_update_term(get_term_by("slug", "cod", "category")->term_id, "category", ["parent" => 0]);',
        'a category has another name and address' => 'wp_update_term($ships, "category", ["name" => "Vessels", "slug" => "fish"]);',
        'a post is on top' => 'stick_post($find("tug"));',
        'a comment moves to another post' => 'wp_update_comment(["comment_ID" => $first, "comment_post_ID" => $find("tern")]);',
        'a comment goes' => 'wp_spam_comment($first);',
        'an author has another name and address' => 'wp_update_user(["ID" => $ada, "display_name" => "Ada K.", "user_nicename" => "ada-k"]);',
        'a post is thrown away' => 'wp_trash_post($find("buoy"));',
        'and brought back' => 'wp_untrash_post($GLOBALS["wpdb"]->get_var("SELECT ID FROM wp_posts WHERE post_status = \'trash\'")); wp_publish_post($GLOBALS["wpdb"]->get_var("SELECT ID FROM wp_posts WHERE post_title = \'A new buoy\' AND post_type = \'post\'"));',
        'many are imported' => 'wp_defer_term_counting(true); wp_suspend_cache_invalidation(true); for ($n = 1; $n < 4; $n++) { wp_set_post_categories(wp_insert_post(["post_title" => "Old $n", "post_status" => "publish", "post_date" => "2025-01-0$n 08:00:00"]), [$ships]); } wp_suspend_cache_invalidation(false); wp_defer_term_counting(false);',
        'an author leaves, his posts stay' => 'wp_delete_user($ada, 1);',
        'a category goes' => 'wp_delete_term($ships, "category");',
    ];

    /** What the changes above speak of. */
    private const NAMES = 'require_once ABSPATH . "wp-admin/includes/admin.php"; $find = fn ($path, $type = "post") => get_page_by_path($path, OBJECT, $type)->ID; $main = get_term_by("slug", "main", "nav_menu")->term_id;'
        . ' $ships = (get_term_by("slug", "ships", "category") ?: get_term_by("slug", "fish", "category"))->term_id; $ada = get_user_by("login", "ada")->ID ?? 0; $first = $wpdb->get_var("SELECT MIN(comment_ID) FROM wp_comments");';

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$pagewell = self::$blog->behind();
        $blocks = ['latest-posts {"postsToShow":3}', 'latest-comments', 'categories {"showPostCounts":true}', 'archives {"showPostCounts":true}', 'tag-cloud', 'page-list'];
        $footer = implode('', array_map(static fn (string $block): string => "<!-- wp:$block /-->", $blocks));
        self::$blog->command('foreach (["about", "gull"] as $name) { $shown = get_page_by_path($name, OBJECT, ["post", "page"]); wp_update_post(["ID" => $shown->ID, "post_content" => ' . var_export($footer, true) . ']); }'
            . ' wp_insert_post(["post_title" => "Team", "post_name" => "team", "post_content" => "[authors]", "post_type" => "page", "post_status" => "publish", "post_parent" => get_page_by_path("about")->ID]);'
            . ' wp_insert_comment(["comment_post_ID" => get_page_by_path("ferry", OBJECT, "post")->ID, "comment_author" => "Joe", "comment_author_email" => "joe@blog.test", "comment_content" => "First", "comment_approved" => 1]);'
            . ' update_option("posts_per_page", 4);');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$blog = null;
    }

    public function testAfterEachChangeAllPagesAreAsWordPressMakesThem(): void
    {
        array_map($this->ask(...), self::PAGES);
        foreach (self::CHANGES as $happens => $script) {
            self::$blog->command(self::NAMES . $script);
            foreach (self::PAGES as $path) {
                [$shown, $made] = $this->ask($path);
                // What is made now is as new as can be.
                if (!str_contains($made, 'stored')) {
                    $this->ask($path, 'PURGE');
                    [$anew, $made] = $this->ask($path);
                    self::assertSame($anew, $shown, "$path is old after: $happens");
                }
                // The way from an old address is not kept.
                self::assertMatchesRegularExpression("/; stored|fwd-status=301/", $made, "$path after: $happens");
            }
        }
    }

    public function testTheEditorForFilesChangesEverythingIfOneMayUseIt(): void
    {
        $edits = "\$_REQUEST['action'] = 'edit-theme-plugin-file'; do_action('admin_init');";
        self::assertSame('"site"', self::$blog->post("wp_set_current_user(1); $edits")[1]);
        self::assertSame('', self::$blog->post($edits)[1]);
    }

    /** @return array{string, string} status and content; what Pagewell did */
    private function ask(string $path, string $method = 'GET'): array
    {
        $options = ['method' => $method, 'header' => 'Host: blog.test', 'timeout' => 20, 'ignore_errors' => true, 'follow_location' => 0];
        $content = (string) file_get_contents(self::$pagewell->address() . $path, false, stream_context_create(['http' => $options]));
        // Numbers that WordPress counts blocks with, from the start of each request.
        $content = (string) preg_replace('/((?:wp-block|wp-container|wp-elements|search-form)[a-z_-]*?)-?[0-9]+\b/', '$1', $content);
        return ["$http_response_header[0]\n$content", implode(preg_grep('/^cache-status:/i', $http_response_header))];
    }
}
