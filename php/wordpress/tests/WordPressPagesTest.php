<?php

/**
 * After each event in a blog, every page is the same as WordPress would render it at that moment.
 *
 * The cached pages are compared with newly rendered ones (PageComparison). So a change that the plugin
 * does not detect, because WordPress has no hook for it, is found as well.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\PageComparison;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

class WordPressPagesTest extends TestCase
{
    /** How many changes happen before all pages are looked at. */
    protected const TOGETHER = 1;

    /** Purged pages ÷ changed pages. Searches, and pages with the names of authors, are not exact. */
    protected const RATIO_MAX = 1.3;

    private const PAGES = [
        '/', '/feed/', '/comments/feed/', '/ferry/', '/gull/', '/tern/', '/about/', '/about/team/', '/lamp/', '/new/',
        '/category/ships/', '/category/birds/', '/category/fish/', '/category/fish/feed/', '/tag/quay/', '/?category_name=ships,birds', '/?s=ferry&cat=-1',
        '/author/ada/', '/author/ada/feed/', '/2026/03/03/', '/?orderby=title', '/wp-sitemap-taxonomies-category-1.xml', '/wp-sitemap-users-1.xml',
        '/link/', '/latest/', '/editors/', '/trade/', '/picture/', '/gallery/', '/depth/', '/harbour/', '/author/eve/', '/?author=2', '/quay/', '/tag/quay/feed/',
        '/robots.txt', '/wp-sitemap.xml', '/wp-sitemap-posts-post-1.xml', '/wp-sitemap-posts-page-1.xml',
        '/wp-json/', '/wp-json/wp/v2/posts?_embed', '/wp-json/wp/v2/posts?orderby=title', '/wp-json/wp/v2/posts?sticky=true', '/wp-json/wp/v2/posts/4', '/wp-json/wp/v2/pages?slug=about,depth', '/wp-json/wp/v2/categories', '/wp-json/wp/v2/tags?post=4',
        '/wp-json/wp/v2/users', '/wp-json/wp/v2/users/2', '/wp-json/wp/v2/comments', '/wp-json/wp/v2/comments?post=4&_embed', '/wp-json/wp/v2/comments?post=6', '/wp-json/wp/v2/media', '/wp-json/wp/v2/search?search=ferry', '/wp-json/oembed/1.0/embed?url=http://blog.test/ferry/',
    ];

    /** What happens, and how: as a command of wp-cli or a job would do it. */
    private const CHANGES = [
        'an item of the menu is new' => 'wp_update_nav_menu_item($main, 0, ["menu-item-title" => "Weather", "menu-item-url" => "http://weather.test/", "menu-item-status" => "publish"]);',
        'an item of the menu goes' => 'wp_delete_post(wp_get_nav_menu_items($main)[0]->ID, true);',
        'a post is published' => 'wp_insert_post(["post_title" => "Lamp", "post_name" => "lamp", "post_status" => "publish", "post_category" => [$ships], "tags_input" => "quay"]);',
        'a post is written where feeds have no entries' => 'wp_update_post(["ID" => $find("ferry"), "post_modified" => "2036-01-01 00:00:00", "post_content" => "Soon."]);',
        'a post has another text' => 'wp_update_post(["ID" => $find("tern"), "post_content" => "Terns fly."]);',
        'a post has another title' => 'wp_update_post(["ID" => $find("tern"), "post_title" => "Terns"]);',
        'a comment comes' => 'wp_insert_comment(["comment_post_ID" => $find("ferry"), "comment_author" => "Ann", "comment_author_email" => "ann@blog.test", "comment_content" => "Second", "comment_approved" => 1, "comment_date" => "2026-05-01 10:00:00"]);',
        'a reply comes' => 'wp_insert_comment(["comment_post_ID" => $find("ferry"), "comment_parent" => get_comments(["author_email" => "ann@blog.test"])[0]->comment_ID, "comment_author" => "Bea", "comment_author_email" => "bea@blog.test", "comment_content" => "Third", "comment_approved" => 1, "comment_date" => "2026-05-02 10:00:00"]);',
        'an address comes to be' => 'wp_update_post(["ID" => $find("lamp"), "post_name" => "new"]);',
        'somebody comes to write' => 'wp_insert_user(["user_login" => "eve", "user_pass" => "secret-of-eve", "user_email" => "eve@blog.test", "role" => "author"]);',
        'and writes' => 'wp_insert_post(["post_title" => "Of Eve", "post_status" => "publish", "post_author" => get_user_by("login", "eve")->ID]);',
        'a category moves below another' => 'wp_update_term(wp_insert_term("Cod", "category")["term_id"], "category", ["parent" => $ships]);',
        'a post goes to it' => 'wp_set_post_categories($find("gull"), [get_term_by("slug", "cod", "category")->term_id]);',
        'and it moves on' => 'wp_update_term(get_term_by("slug", "cod", "category")->term_id, "category", ["parent" => 0]);',
        'a category has another name and address' => 'wp_update_term($ships, "category", ["name" => "Vessels", "slug" => "fish"]);',
        'a post is on top' => 'stick_post($find("tug"));',
        'a comment moves to another post' => 'wp_update_comment(["comment_ID" => $first, "comment_post_ID" => $find("tern")]);',
        'a reply to it comes where it was' => 'wp_insert_comment(["comment_post_ID" => $find("ferry"), "comment_parent" => $first, "comment_author" => "Cid", "comment_author_email" => "cid@blog.test", "comment_content" => "Fourth", "comment_approved" => 1, "comment_date" => "2026-05-03 10:00:00"]);',
        // A response with the error that its parent cannot be read is not stored.
        'the reply goes' => 'wp_spam_comment(get_comments(["author_email" => "cid@blog.test"])[0]->comment_ID);',
        'a comment goes' => 'wp_spam_comment($first);',
        'an author has another name and address' => 'wp_update_user(["ID" => $ada, "display_name" => "Ada K.", "user_nicename" => "ada-k"]);',
        'a post is thrown away' => 'wp_trash_post($find("buoy"));',
        'and brought back' => 'wp_untrash_post($GLOBALS["wpdb"]->get_var("SELECT ID FROM wp_posts WHERE post_status = \'trash\'")); wp_publish_post($GLOBALS["wpdb"]->get_var("SELECT ID FROM wp_posts WHERE post_title = \'A new buoy\' AND post_type = \'post\'"));',
        'many are imported' => 'wp_defer_term_counting(true); wp_suspend_cache_invalidation(true); for ($n = 1; $n < 4; $n++) { wp_set_post_categories(wp_insert_post(["post_title" => "Old $n", "post_status" => "publish", "post_date" => "2025-01-0$n 08:00:00"]), [$ships]); } wp_suspend_cache_invalidation(false); wp_defer_term_counting(false);',
        'an author leaves, his posts stay' => 'wp_delete_user($ada, 1);',
        'what belongs to a post is written past everything, but for its copies' => '$GLOBALS["wpdb"]->update("wp_posts", ["post_title" => "Tug boats", "post_date" => "2026-03-09 12:00:00"], ["ID" => $find("tug")]); clean_post_cache($find("tug"));',
        'a post becomes a page' => 'set_post_type($find("tern"), "page");',
        'and is one again, with another text' => 'wp_update_post(["ID" => $find("tern", "page"), "post_type" => "post", "post_content" => "Of terns."]);',
        'a second post gets a tag' => 'wp_set_post_tags($find("ferry"), "quay", true);',
        'a post loses a tag' => 'wp_remove_object_terms($find("new"), "quay", "post_tag");',
        'how many posts a tag has is counted anew' => '$GLOBALS["wpdb"]->update("wp_term_taxonomy", ["count" => 9], ["taxonomy" => "post_tag"]); wp_update_term_count_now([get_term_by("slug", "quay", "post_tag")->term_taxonomy_id], "post_tag");',
        'another is on top, by the option' => 'update_option("sticky_posts", [$find("gull")]);',
        'and none' => 'delete_option("sticky_posts");',
        'a page takes the address of a post' => 'wp_insert_post(["post_title" => "The ferry", "post_name" => "ferry", "post_type" => "page", "post_status" => "publish"]);',
        'and gives it back' => 'wp_delete_post($find("ferry", "page"), true);',
        'a page that is linked to is a draft' => 'wp_update_post(["ID" => $find("about/team", "page"), "post_status" => "draft"]);',
        'and is published' => '$id = $GLOBALS["wpdb"]->get_var("SELECT ID FROM wp_posts WHERE post_title = \'Team\' AND post_type = \'page\'"); wp_publish_post($id);',
        'the post of the latest comment goes' => 'wp_insert_comment(["comment_post_ID" => $find("new"), "comment_author" => "Zoe", "comment_content" => "Latest", "comment_approved" => 1]); wp_trash_post($find("new"));',
        'and comes back' => '$id = $GLOBALS["wpdb"]->get_var("SELECT ID FROM wp_posts WHERE post_status = \'trash\'"); wp_untrash_post($id); wp_publish_post($id);',
        'an old comment comes' => 'wp_insert_comment(["comment_post_ID" => $find("new"), "comment_author" => "Old", "comment_content" => "Old", "comment_approved" => 1, "comment_date" => "2020-01-01 10:00:00"]);',
        'and becomes the latest' => 'wp_update_comment(["comment_ID" => $GLOBALS["wpdb"]->get_var("SELECT comment_ID FROM wp_comments WHERE comment_author = \'Old\'"), "comment_date" => "2030-01-01 10:00:00"]);',
        'one is written past everything, and counted' => '$GLOBALS["wpdb"]->insert("wp_comments", ["comment_post_ID" => $find("new"), "comment_author" => "Past", "comment_content" => "Past", "comment_approved" => "1", "comment_date" => "2031-01-01 10:00:00", "comment_date_gmt" => "2031-01-01 10:00:00"]); wp_cache_set_comments_last_changed(); wp_update_comment_count($find("new"));',
        'a user has another role' => '(new WP_User(get_user_by("login", "eve")->ID))->set_role("editor");',
        'a user has another meta' => 'update_user_meta($ada, "trade", "pilot");',
        'a post has another custom field' => 'update_post_meta($find("depth", "page"), "depth", "4 m");',
        'and another, with its text as it was' => 'wp_update_post(["ID" => $find("depth", "page"), "meta_input" => ["depth" => "5 m"]]);',
        'a picture is another one' => '$id = $find("quay", "attachment"); wp_update_attachment_metadata($id, ["width" => 40, "height" => 30, "file" => "quay.png"]); update_post_meta($id, "_wp_attached_file", "quay-2.png");',
        'pictures are elsewhere' => 'update_option("upload_url_path", "http://pictures.test");',
        'addresses are read in another way' => 'update_option("with_harbour", 1); add_rewrite_rule("^harbour/?$", "index.php?pagename=about", "top"); flush_rewrite_rules();',
        'one has to sign in to comment' => 'update_option("comment_registration", 1);',
        'feeds are short' => 'update_option("rss_use_excerpt", 1);',
        'a category is empty' => 'wp_insert_term("Crabs", "category");',
        'many have a name that is called that way' => 'wp_update_user(["ID" => $ada, "user_email" => "ada-k@blog.test"]);',
        'a category goes' => 'wp_delete_term($ships, "category");',
    ];

    /** The names in the changes above. */
    private const NAMES = 'require_once ABSPATH . "wp-admin/includes/admin.php"; $find = fn ($path, $type = "post") => get_page_by_path($path, OBJECT, $type)->ID; $main = get_term_by("slug", "main", "nav_menu")->term_id;'
        . ' $ships = (get_term_by("slug", "ships", "category") ?: get_term_by("slug", "fish", "category"))->term_id; $ada = get_user_by("login", "ada")->ID ?? 0; $first = $wpdb->get_var("SELECT MIN(comment_ID) FROM wp_comments");';

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    private static ?BlogPages $pages = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        static::prepare(self::$blog);
        self::$pagewell = self::$blog->behind();
        $blocks = ['latest-posts {"postsToShow":3}', 'latest-comments', 'categories {"showPostCounts":true}', 'archives {"showPostCounts":true}', 'tag-cloud', 'page-list'];
        $footer = implode('', array_map(static fn (string $block): string => "<!-- wp:$block /-->", $blocks));
        self::$blog->command('foreach (["about", "gull"] as $name) { $shown = get_page_by_path($name, OBJECT, ["post", "page"]); wp_update_post(["ID" => $shown->ID, "post_content" => ' . var_export($footer, true) . ']); }'
            . ' wp_insert_post(["post_title" => "Team", "post_name" => "team", "post_content" => "[authors]", "post_type" => "page", "post_status" => "publish", "post_parent" => get_page_by_path("about")->ID]);'
            . ' wp_insert_comment(["comment_post_ID" => get_page_by_path("ferry", OBJECT, "post")->ID, "comment_author" => "Joe", "comment_author_email" => "joe@blog.test", "comment_content" => "First", "comment_approved" => 1]);'
            . ' foreach (["link" => "<!-- wp:navigation-link {\"label\":\"Team\",\"type\":\"page\",\"kind\":\"post-type\",\"id\":" . get_page_by_path("about/team")->ID . "} /-->", "latest" => "<!-- wp:latest-comments {\"commentsToShow\":2} /--><!-- wp:latest-posts {\"postsToShow\":2,\"displayAuthor\":true} /-->", "editors" => "[editors]", "trade" => "[trade]", "depth" => "[depth]"] as $name => $content) { wp_insert_post(["post_title" => $name, "post_name" => $name, "post_content" => $content, "post_type" => "page", "post_status" => "publish"]); }'
            . ' $picture = wp_insert_attachment(["post_title" => "Quay", "post_name" => "quay", "post_mime_type" => "image/png", "post_status" => "inherit"], "quay.png"); wp_update_attachment_metadata($picture, ["width" => 30, "height" => 20, "file" => "quay.png"]);'
            . ' wp_insert_post(["post_title" => "picture", "post_name" => "picture", "post_content" => wp_get_attachment_image($picture, "full"), "post_type" => "page", "post_status" => "publish"]);'
            . ' wp_insert_post(["post_title" => "gallery", "post_name" => "gallery", "post_content" => "[gallery ids=$picture size=full]", "post_type" => "page", "post_status" => "publish"]);'
            // Databases return rows of the same second in any order.
            . ' $GLOBALS["wpdb"]->query("UPDATE wp_posts SET post_date = post_date - INTERVAL ID MINUTE, post_date_gmt = post_date_gmt - INTERVAL ID MINUTE WHERE post_type = \'page\'");'
            . ' update_option("posts_per_page", 4);');
        self::$pages = new BlogPages(self::$pagewell);
    }

    protected static function prepare(RealWordPress $blog): void
    {
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$pages = self::$blog = null;
    }

    public function testAfterEachChangeAllPagesAreAsWordPressMakesThem(): void
    {
        $comparison = new PageComparison(self::$pages, self::PAGES);
        foreach (array_chunk(self::CHANGES, static::TOGETHER, true) as $scripts) {
            foreach ($scripts as $script) {
                self::$blog->command(self::NAMES . $script);
            }
            $comparison->after(implode(', ', array_keys($scripts)));
        }
        self::assertSame([[], []], [$comparison->old, $comparison->unstored], 'no page is old, and all are stored');
        getenv('SHOW') && fwrite(STDERR, $comparison->report());
        if (static::TOGETHER === 1) {
            self::assertLessThan(static::RATIO_MAX, $comparison->ratio(), $comparison->report());
        }
    }

    public function testTheEditorForFilesChangesEverythingIfOneMayUseIt(): void
    {
        $edits = "\$_REQUEST['action'] = 'edit-theme-plugin-file'; do_action('admin_init');";
        self::assertSame('"site"', self::$blog->post("wp_set_current_user(1); $edits")[1]);
        self::assertSame('', self::$blog->post($edits)[1]);
    }
}
