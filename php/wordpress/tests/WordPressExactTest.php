<?php

/**
 * A change of a blog does not invalidate the pages that do not show it.
 *
 * The block theme has a list of all pages on each page, so that a change with too many tags is
 * noticed. Another test shows that no outdated page remains (WordPressPagesTest).
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressExactTest extends TestCase
{
    private const POSTS = ['/ferry/', '/gull/', '/tug/', '/tern/', '/buoy/'];

    private const PAGES = [
        ...self::POSTS, '/', '/feed/', '/comments/feed/', '/category/ships/', '/category/birds/', '/author/ada/', '/2026/03/', '/?s=ferry', '/?p=6',
        '/about/', '/about/team/', '/depth/', '/picture/', '/latest/', '/join/', '/all/', '/nothing/', '/category/crabs/', '/author/eve/', '/wp-sitemap.xml', '/robots.txt',
    ];

    /** Where posts are listed, with what they say. */
    private const LISTS = ['/', '/feed/', '/2026/03/', '/?s=ferry'];

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    private static ?BlogPages $pages = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$blog->command('switch_theme("twentytwentythree"); delete_option("theme_switched"); require_once ABSPATH . "wp-admin/includes/image.php";'
            . ' $picture = wp_insert_attachment(["post_title" => "Quay", "post_mime_type" => "image/png", "post_status" => "inherit"], "quay.png"); wp_update_attachment_metadata($picture, ["width" => 30, "height" => 20, "file" => "quay.png"]);'
            . ' $parent = get_page_by_path("about")->ID; $all = "<!-- wp:categories {\"showEmpty\":true} /-->";'
            . ' foreach (["team" => "", "depth" => "[depth]", "picture" => "[gallery ids=$picture size=full]", "latest" => "<!-- wp:latest-comments {\"commentsToShow\":5} /-->", "join" => "[register]", "all" => $all] as $name => $content) {'
            . ' wp_insert_post(["post_title" => $name, "post_name" => $name, "post_content" => $content, "post_type" => "page", "post_status" => "publish", "comment_status" => "closed", "post_parent" => $name === "team" ? $parent : 0]); }'
            . ' for ($n = 1; $n < 7; $n++) { wp_insert_comment(["comment_post_ID" => get_page_by_path("tug", OBJECT, "post")->ID, "comment_author" => "Joe", "comment_content" => "No. $n", "comment_approved" => 1, "comment_date" => "2026-05-0$n 12:00:00"]); }');
        self::$blog->command('flush_rewrite_rules();');
        self::$pagewell = self::$blog->behind();
        self::$pages = new BlogPages(self::$pagewell);
        // Changes that WordPress writes with its first page in this theme cannot be sent then; they
        // are sent with the next ones.
        self::$pages->ask('/');
        self::$blog->command('do_action("pagewell_changed", "site");');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$pages = self::$blog = null;
    }

    /**
     * @dataProvider changes
     *
     * @param list<string> $dropped
     */
    #[DataProvider('changes')]
    public function testOnlyWhatMayShowItIsDropped(string $script, array $dropped): void
    {
        array_map(self::$pages->ask(...), self::PAGES);
        self::assertSame([], self::dropped(), 'all pages are kept');
        self::$blog->command('require_once ABSPATH . "wp-admin/includes/admin.php"; $find = fn ($path, $type = "post") => get_page_by_path($path, OBJECT, $type)->ID; ' . $script);
        sort($dropped);
        self::assertSame($dropped, self::dropped(), self::$blog->command(RealWordPress::JOURNAL . 'echo json_encode(array_slice(Journal::recent(), 0, 3)); echo json_encode(ControlClient::explain("http://blog.test/wp-sitemap.xml"));'));
    }

    /** @return iterable<string, array{string, list<string>}> */
    public static function changes(): iterable
    {
        // Feeds look through all custom fields for enclosures.
        yield 'a custom field that no page asks for' => ['update_post_meta($find("ferry"), "colour", "red");', ['/feed/']];
        yield 'of a page that is in the navigation' => ['update_post_meta($find("about", "page"), "colour", "red");', []];
        yield 'a custom field that its page asks for' => ['update_post_meta($find("depth", "page"), "depth", "4 m");', ['/depth/']];
        yield 'a custom field, and the post is saved' => ['wp_update_post(["ID" => $find("gull"), "meta_input" => ["colour" => "white"]]);', ['/gull/', '/category/birds/', '/author/ada/', '/', '/feed/', '/2026/03/']];
        yield 'a picture is turned' => ['wp_update_attachment_metadata($find("quay", "attachment"), ["width" => 20, "height" => 30, "file" => "quay-r.png"]); update_attached_file($find("quay", "attachment"), "quay-r.png");', ['/picture/']];
        yield 'the text of a page' => ['wp_update_post(["ID" => $find("about", "page"), "post_content" => "Who we were."]);', ['/about/', '/?s=ferry']];
        yield 'the text of a post' => ['wp_update_post(["ID" => $find("gull"), "post_content" => "It flew."]);', ['/gull/', '/category/birds/', '/author/ada/', ...self::LISTS]];
        yield 'an old comment' => ['wp_insert_comment(["comment_post_ID" => $find("gull"), "comment_author" => "Zoe", "comment_content" => "Old", "comment_approved" => 1, "comment_date" => "2026-04-01 12:00:00"]);', ['/gull/', '/feed/', '/comments/feed/']];
        yield 'another that goes' => ['wp_delete_comment(get_comments(["post_id" => $find("gull")])[0]->comment_ID, true);', ['/gull/', '/feed/', '/comments/feed/']];
        yield 'a new comment' => ['wp_insert_comment(["comment_post_ID" => $find("gull"), "comment_author" => "Zoe", "comment_content" => "New", "comment_approved" => 1]);', ['/gull/', '/feed/', '/comments/feed/', '/latest/']];
        yield 'another category without posts' => ['wp_insert_term("Eels", "category");', ['/all/']];
        yield 'a category without posts' => ['wp_insert_term("Crabs", "category");', ['/category/crabs/', '/all/']];
        yield 'its meta' => ['update_term_meta(get_term_by("slug", "crabs", "category")->term_id, "colour", "red");', ['/category/crabs/', '/all/']];
        yield 'a user' => ['wp_insert_user(["user_login" => "eve", "user_pass" => "secret-of-eve", "user_email" => "eve@blog.test", "role" => "subscriber"]);', ['/author/eve/']];
        yield 'their role' => ['(new WP_User(get_user_by("login", "eve")->ID))->set_role("editor");', ['/author/eve/']];
        yield 'what is written when WordPress has ended' => ['$id = $find("depth", "page"); register_shutdown_function(fn () => register_shutdown_function(fn () => update_post_meta($id, "depth", "9 m")));', ['/depth/']];
        yield 'past WordPress, when it has ended' => ['$id = $find("gull"); register_shutdown_function(function () use ($id) { $GLOBALS["wpdb"]->update("wp_posts", ["post_content" => "Gone."], ["ID" => $id]); clean_post_cache($id); });', array_values(array_diff(self::ofGull(), ['/latest/']))];
        yield 'who may register' => ['update_option("users_can_register", 1);', ['/join/']];
        yield 'who may comment' => ['update_option("comment_registration", 1);', self::POSTS];
        yield 'how feeds are' => ['update_option("rss_use_excerpt", 1);', ['/feed/']];
        yield 'how long feeds are' => ['update_option("posts_per_rss", 3);', ['/feed/', '/comments/feed/']];
        yield 'what a menu adds by itself' => ['update_option("nav_menu_options", ["auto_add" => [1]]);', []];
        yield 'with what format a post begins' => ['update_option("default_post_format", "aside");', []];
        yield 'the same rules for addresses' => ['flush_rewrite_rules();', []];
    }

    public function testABlockIsNamedForWhatItReads(): void
    {
        $key = self::$blog->command('echo Pagewell\WordPress\Read\Readers::key();');
        $readers = static fn (string $key): array => self::$pagewell->ask('GET', "/latest/?pagewell_readers=$key", '', 'Host: blog.test')[1]['x-pagewell-readers'] ?? [];
        $lines = $readers($key);
        self::assertCount(1, preg_grep('~^core/latest-comments (.* )?latest:5( |$)~', $lines), implode("\n", $lines));
        self::assertSame([], preg_grep('~^core/page-list .*latest:5~', $lines));
        self::assertSame([], $readers('wrong'), 'only with a key of this site');
    }

    /** While users edit, alone or together. The long test does so in a browser's way (php/wordpress/tests/long). */
    public function testWritesOfTheEditorPurgeNothing(): void
    {
        array_map(self::$pages->ask(...), self::PAGES);
        self::assertSame([], self::dropped(), 'all pages are kept');
        $script = "require_once ABSPATH . 'wp-admin/includes/admin.php'; wp_set_current_user(1); wp_set_post_lock(4);"
            . " wp_refresh_post_lock([], ['wp-refresh-post-lock' => ['post_id' => 4, 'lock' => '']], 'post');"
            . " \$asked = new WP_REST_Request('POST', '/wp/v2/posts/4/autosaves'); \$asked->set_body_params(['id' => 4, 'content' => 'Not yet.']); \$saved = rest_do_request(\$asked)->get_data()['parent'];"
            . " \$room = wp_insert_post(['post_type' => 'wp_sync_storage', 'post_status' => 'publish', 'post_title' => 'postType/post:4']); add_post_meta(\$room, 'wp_sync_update', 'AAE='); add_post_meta(4, 'wp_sync_update', 'AAE=');"
            . " update_user_meta(1, 'wp_persisted_preferences', ['a' => 1]); set_transient('note', 1, 60); wp_schedule_single_event(time() + 60, 'nothing'); wp_clear_scheduled_hook('nothing'); echo \$saved;";
        self::assertSame(['4', ''], self::$blog->post($script));
        self::assertSame([], self::dropped());
    }

    public function testAPageThatWasSomebodysInPartIsNotKept(): void
    {
        self::$blog->command('foreach (["taste" => "[taste]", "as-admin" => "[as-admin]"] as $name => $content) { wp_insert_post(["post_title" => $name, "post_name" => $name, "post_content" => $content, "post_type" => "page", "post_status" => "publish"]); }');
        [$shown, $why] = self::$pages->ask('/taste/', 'GET', 'Cookie: taste=salt');
        self::assertStringContainsString('You like salt', $shown);
        self::assertStringContainsString('detail=unknown-cookie', $why);
        [$shown, $why] = self::$pages->ask('/as-admin/');
        self::assertStringContainsString('Hello, admin', $shown);
        self::assertStringContainsString('refusal: signed-in', $why);
        self::assertStringContainsString('You like nothing', self::$pages->ask('/taste/')[0]);
    }

    /** @dataProvider failures */
    #[DataProvider('failures')]
    public function testAFailureOfTheRestApiIsNotKept(string $url, string $status): void
    {
        $draft = self::$blog->command('$made = get_page_by_path("soon", OBJECT, "post")->ID ?? wp_insert_post(["post_title" => "Soon", "post_name" => "soon", "post_status" => "draft"]); echo $made;');
        foreach ([1, 2] as $time) {
            [$shown, $why] = self::$pages->ask(sprintf($url, $draft));
            self::assertStringContainsString($status, $shown);
            self::assertStringContainsString('refusal: rest-route', $why, "request $time");
        }
    }

    /** @return iterable<string, array{string, string}> */
    public static function failures(): iterable
    {
        yield 'a draft' => ['/wp-json/wp/v2/posts/%d', ' 401 '];
        yield 'a draft, in an envelope with status 200' => ['/wp-json/wp/v2/posts/%d?_envelope', '"status":401'];
        yield 'the same at another URL' => ['/?rest_route=/wp/v2/posts/%d&_envelope=1', '"status":401'];
        yield 'no user' => ['/wp-json/wp/v2/users/4711?_envelope', '"status":404'];
        yield 'no route' => ['/wp-json/nothing/v1/here?_envelope', '"status":404'];
        yield 'a nonce that is not valid' => ['/wp-json/wp/v2/posts/4?_wpnonce=0&_envelope', '"status":403'];
        yield 'another method' => ['/wp-json/wp/v2/posts/4?_method=DELETE', ' 401 '];
        yield 'a method without content' => ['/wp-json/wp/v2/posts/4?_method=HEAD', ' 200 '];
    }

    public function testWhatAResponseOfTheRestApiContainsHasToBeKnownToo(): void
    {
        $known = static fn (string $before, string $ask): string => self::$blog->command("$before Pagewell\WordPress\Read\RestSources::listen(); define('REST_REQUEST', true); http_response_code(200); \$ask = fn (\$route, \$method = 'GET') => rest_do_request(new WP_REST_Request(\$method, \$route)); \$ask('/wp/v2/posts'); $ask"
            . " echo json_encode((new ReflectionMethod('Pagewell\WordPress\Read\RefusalCheck', 'isOtherRest'))->invoke(null));");
        self::assertSame('false', $known('', ''));
        self::assertSame('true', $known('', "\$ask('/wp/v2/posts/4711');"), 'a failure within');
        self::assertSame('true', $known('', "apply_filters('rest_post_dispatch', new WP_REST_Response([], 404), rest_get_server(), new WP_REST_Request('GET', '/'));"), 'embedded, without a route');
        self::assertSame('true', $known("add_filter('rest_pre_dispatch', fn (\$made, \$server, \$request) => \$request->get_route() === '/wp/v2/tags' ? ['tides'] : \$made, 10, 3);", "\$ask('/wp/v2/tags');"), 'by a plugin');
        self::assertSame('true', $known("add_filter('rest_dispatch_request', fn (\$made, \$request) => \$request->get_route() === '/wp/v2/tags' ? ['tides'] : \$made, 10, 2);", "\$ask('/wp/v2/tags');"), 'by a plugin, later');
        foreach (['HTTP_X_HTTP_METHOD_OVERRIDE', 'HTTP_X_WP_NONCE'] as $field) {
            self::assertSame('true', $known('', "\$_SERVER['$field'] = 'GET';"), $field);
        }
        self::$pages->ask('/wp-json/wp/v2/posts?_embed');
        self::assertTrue(self::$pages->isKept('/wp-json/wp/v2/posts?_embed'), 'what is embedded in it is known');
    }

    public function testOfASettingsPageCountsWhatPagesMayShow(): void
    {
        $saved = static fn (string $option): string => self::$blog->post("\$GLOBALS['pagenow'] = 'options.php'; update_option('$option', bin2hex(random_bytes(4)));")[1];
        self::assertSame(['"setting:of_a_plugin", "settings"', '"setting:upload_path", "settings"', '"setting:comment_registration", "settings"', ''], array_map($saved, ['of_a_plugin', 'upload_path', 'comment_registration', 'comment_moderation']));
    }

    public function testNoRuleForAddressesIsNewWhenAllAreMadeAnew(): void
    {
        self::$blog->post('flush_rewrite_rules();');
        self::assertSame('', self::$blog->post('flush_rewrite_rules();')[1]);
        // A rule affects URLs that begin as it does; one that may match any URL affects all pages.
        self::assertSame('"routes", "route:por"', self::$blog->post("add_rewrite_rule('^port/?$', 'index.php?pagename=about', 'top'); flush_rewrite_rules();")[1]);
        self::assertSame('"site"', self::$blog->post("add_rewrite_rule('^(port|quay)/?$', 'index.php?pagename=about', 'top'); flush_rewrite_rules();")[1]);
        // The rules before another process cleared them are unknown. A render of the audit may make them again first.
        $cleared = static fn (): string => [self::$blog->command("update_option('rewrite_rules', '');"), self::$blog->post('flush_rewrite_rules();')[1]][1];
        self::assertContains('"site"', [$cleared(), $cleared(), $cleared()]);
    }

    /** The index of sitemaps shows how many there are: one for each 2,000 posts of a type. */
    public function testTheIndexOfSitemapsIsDroppedWhenTheirNumberChanges(): void
    {
        self::$blog->plugin("add_action('init', fn () => register_post_type('wreck', ['public' => true]));");
        $texts = 'post_content, post_excerpt, to_ping, pinged, post_content_filtered';
        $wrecks = array_map(static fn (int $n): string => "($n, 'wreck-$n', 'publish', 'wreck', '2020-01-01' + INTERVAL $n HOUR, '', '', '', '', '')", range(1, 1999));
        self::$blog->rows("INSERT INTO wp_posts (post_title, post_name, post_status, post_type, post_date, $texts) VALUES " . implode(', ', $wrecks));
        self::$blog->command('do_action("pagewell_changed", "site");');
        $shown = static fn (): int => preg_match_all('/wp-sitemap-posts-wreck-/', self::$pages->ask('/wp-sitemap.xml')[0]);
        $wreck = 'wp_insert_post(["post_title" => "New", "post_type" => "wreck", "post_status" => "publish"]);';
        self::assertSame([1, true], [$shown(), self::$pages->isKept('/wp-sitemap.xml')]);
        self::$blog->command($wreck);
        self::assertTrue(self::$pages->isKept('/wp-sitemap.xml'), 'with 2,000 it has the same');
        self::$blog->command($wreck);
        self::assertSame([false, 2], [self::$pages->isKept('/wp-sitemap.xml'), $shown()]);
        self::$blog->command('wp_delete_post($wpdb->get_var("SELECT MAX(ID) FROM wp_posts WHERE post_type = \'wreck\'"), true);');
        self::assertSame([false, 1], [self::$pages->isKept('/wp-sitemap.xml'), $shown()]);
        // In a transaction, the count may miss the writes of others.
        self::$blog->command("\$wpdb->query('START TRANSACTION'); $wreck \$wpdb->query('COMMIT');");
        self::assertSame([false, 2], [self::$pages->isKept('/wp-sitemap.xml'), $shown()]);
        $reported = self::$blog->post($wreck)[1];
        self::assertStringContainsString('"pages:post/wreck:1", "pages:post/wreck:3"', $reported);
        self::$blog->command('foreach ($wpdb->get_col("SELECT ID FROM wp_posts WHERE post_type = \'wreck\' ORDER BY ID DESC LIMIT 4") as $id) { get_post($id); $wpdb->update("wp_posts", ["post_status" => "draft"], ["ID" => $id]); clean_post_cache($id); }');
        self::assertSame([false, 1], [self::$pages->isKept('/wp-sitemap.xml'), $shown()]);
    }

    public function testBookkeepingOfUsersIsNotShown(): void
    {
        $written = static fn (string $key): string => self::$blog->post("update_user_meta(1, '$key', bin2hex(random_bytes(4)));")[1];
        self::assertSame(array_fill(0, 6, ''), array_map($written, ['session_tokens', 'wp_user-settings', 'wp_dashboard_quick_press_last_post_id', 'edit_post_per_page', 'metaboxhidden_post', 'last_login']));
        self::assertSame(array_fill(0, 3, '"user:1", "users"'), array_map($written, ['description', 'work', 'editor_of']));
        self::assertSame('', self::$blog->post("add_filter('pagewell_ignored_meta', fn () => ['work']); update_user_meta(1, 'work', 'x');")[1]);
    }

    /** @return list<string> whatever shows the post, or might if it were another one */
    private static function ofGull(): array
    {
        return ['/gull/', '/category/birds/', '/author/ada/', '/latest/', '/comments/feed/', ...self::LISTS];
    }

    /** @return list<string> the pages that did not come from memory; they are stored again */
    private static function dropped(): array
    {
        $dropped = array_values(array_filter(self::PAGES, static fn (string $path): bool => !self::$pages->isKept($path)));
        sort($dropped);
        return $dropped;
    }
}
