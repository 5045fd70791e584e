<?php

/**
 * The mechanisms by which plugins know visitors, in a small plugin: cookies on every first page, sessions that begin with
 * the first write, fragments by AJAX, nonces, tokens in response fields, links that write, lists of hidden posts.
 * `php/wordpress/tests/long/PluginsTest.php` tests plugins themselves where their directory is given.
 *
 * Nothing personal is stored for others, and nothing that is the same for all is refused.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressVisitorsTest extends TestCase
{
    private const SITE = 'add_action("init", function () { foreach (["pll_language" => "en", "pys_first_visit" => "true", "site_mark" => "1"] as $name => $value) { isset($_COOKIE[$name]) || headers_sent() || setcookie($name, $value); }'
        . ' if (isset($_GET["add-to-cart"])) { setcookie("shop_session", bin2hex(random_bytes(8))); echo "In your cart: " . (int) $_GET["add-to-cart"]; exit; } });'
        . ' add_filter("pagewell_shared_cookies", fn ($names) => [...$names, "site_mark", "no name at all"]);'
        . ' foreach (["wp_ajax_", "wp_ajax_nopriv_"] as $of) { add_action($of . "fragments", function () { setcookie("shop_session", "s"); wp_send_json(["cart" => "of " . ($_COOKIE["shop_session"] ?? "nobody")]); }); }'
        . ' add_shortcode("own", function () { setcookie("guest", bin2hex(random_bytes(8))); return "Welcome"; });'
        . ' add_shortcode("hello", fn () => "Hello, " . ($_COOKIE["affiliate"] ?? "you") . " of " . ($_COOKIE["pll_language"] ?? "en"));'
        . ' add_shortcode("nonce", fn () => wp_nonce_field("ask", "ask", true, false)); add_shortcode("own-nonce", function () { add_filter("nonce_user_logged_out", fn () => "guest-7"); return wp_nonce_field("ask", "ask", true, false); });'
        . ' add_action("template_redirect", function () { is_page("token") && header("Cart-Token: " . bin2hex(random_bytes(8))); is_page("land") && header("Vary: CF-IPCountry"); });'
        . ' foreach (["price", "land"] as $name) { add_shortcode($name, fn () => "In " . ($_SERVER["HTTP_CF_IPCOUNTRY"] ?? "no land")); }'
        . ' add_shortcode("track", fn () => "Order of " . esc_html($_GET["email"] ?? $_GET["order_key"] ?? "nobody"));'
        . ' add_shortcode("hidden", fn () => "Hidden: " . implode(", ", (array) get_option("_hidden_forums", []))); add_shortcode("members", function () { global $wpdb; return "Members: " . $wpdb->get_var("SELECT COUNT(*) FROM wp_members"); });'
        . ' add_action("wp", function () { global $wpdb; if (isset($_GET["join"]) && is_user_logged_in() && wp_verify_nonce($_GET["_wpnonce"] ?? "", "join")) { $wpdb->insert("wp_members", ["member" => get_current_user_id()]); } });'
        . ' add_shortcode("editor", function () { ob_start(); wp_editor("", "text"); return ob_get_clean(); });'
        . ' eval("namespace um\\\\common; class Screen { function avoid_mobile_cache() { is_page(\'form\') && wp_is_mobile() && header(\'Cache-Control: no-store\'); } }"); add_action("template_redirect", [new um\common\Screen(), "avoid_mobile_cache"]);'
        . ' function avoid_mobile_cache() { if (is_page("phones") && wp_is_mobile()) { nocache_headers(); exit("For phones"); } } add_action("template_redirect", "avoid_mobile_cache");'
        . ' add_shortcode("since", fn () => human_time_diff(time() - 3600) . " ago"); add_shortcode("long-since", fn () => human_time_diff(1000000000) . " ago, for " . human_time_diff(1000000000, 1000000090)); add_shortcode("active", fn () => apply_filters("bp_core_get_last_activity", "active 10 months ago", "", "")); add_shortcode("preferred", fn () => "You read " . apply_filters("pll_preferred_language", substr($_SERVER["HTTP_ACCEPT_LANGUAGE"] ?? "en", 0, 2), false)); add_filter("show_admin_bar", fn ($is) => $is || is_page("toolbar")); add_shortcode("days-since", fn () => human_time_diff(time() - 276480) . " ago");';

    private const NAMES = ['own', 'hello', 'nonce', 'own-nonce', 'token', 'price', 'land', 'track', 'hidden', 'members', 'since', 'long-since', 'days-since', 'preferred', 'toolbar', 'active', 'editor', 'form', 'phones'];

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    private static ?BlogPages $pages = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$blog->plugin(self::SITE);
        self::$blog->command('foreach (' . var_export(self::NAMES, true) . ' as $name) { wp_insert_post(["post_title" => $name, "post_name" => $name, "post_content" => "[$name]", "post_type" => "page", "post_status" => "publish"]); } $GLOBALS["wpdb"]->query("CREATE TABLE wp_members (member INT)");');
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

    /** @dataProvider shared */
    #[DataProvider('shared')]
    public function testWhatIsTheSameForAllIsStored(string $path): void
    {
        [, $fields] = self::$pagewell->ask('GET', $path, '', 'Host: blog.test');
        self::assertTrue(self::$pages->isStored($path, $fields['cache-status'][0]), $fields['cache-status'][0] . ($fields['x-pagewell-refusal'][0] ?? ''));
        self::assertArrayNotHasKey('set-cookie', $fields, 'cookies with the same value for all, or for scripts');
        self::assertTrue(self::$pages->isKept($path));
        // A visitor who has them.
        self::assertStringContainsString('hit', self::$pages->ask($path, 'GET', 'Cookie: site_mark=1; _ga=GA1.2.3.4')[1]);
        // The choice of a language has its own copies.
        self::assertStringNotContainsString('hit', self::$pages->ask($path, 'GET', 'Cookie: pll_language=nl')[1]);
        self::assertStringContainsString('hit', self::$pages->ask($path, 'GET', 'Cookie: pll_language=nl')[1]);
    }

    /** @return iterable<array{string}> */
    public static function shared(): iterable
    {
        yield from [['/tug/'], ['/nonce/'], ['/price/'], ['/land/'], ['/track/'], ['/?orderby=price'], ['/hello/?order=asc'], ['/category/ships/']];
    }

    /** @dataProvider personal */
    #[DataProvider('personal')]
    public function testWhatIsPersonalIsNotStored(string $path, string ...$fields): void
    {
        self::assertStringNotContainsString('stored', self::$pages->ask($path, 'GET', ...$fields)[1]);
        self::assertStringNotContainsString('hit', self::$pages->ask($path, 'GET', ...$fields)[1]);
    }

    /** @return iterable<string, list<string>> */
    public static function personal(): iterable
    {
        yield 'a cookie with a value for each visitor' => ['/own/'];
        yield 'a nonce of one visitor' => ['/own-nonce/'];
        yield 'a token in a field' => ['/token/'];
        yield 'a link that fills the cart' => ['/?add-to-cart=4'];
        yield 'with its session' => ['/gull/', 'Cookie: shop_session=7'];
        yield 'fragments' => ['/wp-admin/admin-ajax.php?action=fragments'];
        yield 'an order by its mail address' => ['/track/?email=eve%40blog.test'];
        yield 'an order by its key' => ['/track/?order_key=wc_order_Ab3dE6gH'];
        yield 'any address' => ['/track/?of=eve%40blog.test'];
        yield 'a reset of a password' => ['/track/?key=Ab3dE6gHiJkLmNoPqRsT&login=eve'];
    }

    public function testAPageOfAVisitorWithAnUnknownCookieIsRenderedForAllAsWell(): void
    {
        [$own, $how] = self::$pages->ask('/hello/', 'GET', 'Cookie: affiliate=7; pll_language=de');
        self::assertStringContainsString('Hello, 7 of de', $own);
        self::assertStringNotContainsString('stored', $how);
        // It joins the render without the unknown cookie, or finds its page. Each language has its own.
        [$shared, $how] = self::$pages->ask('/hello/', 'GET', 'Cookie: pll_language=de');
        self::assertStringContainsString('Hello, you of de', $shared);
        self::assertMatchesRegularExpression('/hit|collapsed/', $how);
        self::assertStringContainsString('Hello, you', self::$pages->ask('/hello/', 'GET', 'Cookie: affiliate=8; pll_language=de')[0]);
        self::assertStringContainsString('Hello, you of en', self::$pages->ask('/hello/')[0]);
    }

    public function testAPriceOfACountryIsOfThatCountry(): void
    {
        self::$pages->ask('/land/', 'PURGE');
        self::assertStringContainsString('In DE', self::$pages->ask('/land/', 'GET', 'CF-IPCountry: DE')[0]);
        self::assertStringContainsString('In FR', self::$pages->ask('/land/', 'GET', 'CF-IPCountry: FR')[0]);
        self::assertStringContainsString('In no land', self::$pages->ask('/land/')[0]);
        self::assertStringContainsString('hit', self::$pages->ask('/land/', 'GET', 'CF-IPCountry: DE')[1]);
        // Without Vary, PHP does not get the field, and nobody gets the page of another country.
        self::$pages->ask('/price/', 'PURGE');
        self::assertStringContainsString('In no land', self::$pages->ask('/price/', 'GET', 'CF-IPCountry: DE')[0]);
        self::assertStringContainsString('In no land', self::$pages->ask('/price/', 'GET', 'CF-IPCountry: FR')[0]);
    }

    public function testTheSettingsPageNamesCookiesThatPreventCaching(): void
    {
        self::$pages->ask('/own/');
        self::$pages->ask('/tug/', 'GET', 'Cookie: wordpress_logged_in_7=eve');
        $shown = html_entity_decode(self::$blog->command('wp_set_current_user(1); require_once ABSPATH . "wp-admin/includes/admin.php"; (new ReflectionMethod("Pagewell\WordPress\Admin\Screen", "show"))->invoke(null);'), ENT_QUOTES);
        self::assertStringContainsString("[...\$names, 'guest']);", $shown);
        self::assertStringContainsString('/own/', $shown);
        self::assertStringNotContainsString('wordpress_logged_in', $shown);
    }

    public function testAMemberWritesByALink(): void
    {
        self::$pages->ask('/members/');
        self::assertTrue(self::$pages->isKept('/members/'));
        [$cookie, $nonce] = explode("\n", self::$blog->command('$u = get_user_by("login", "ada")->ID; $t = WP_Session_Tokens::get_instance($u)->create(time() + 999); $_COOKIE[LOGGED_IN_COOKIE] = wp_generate_auth_cookie($u, time() + 999, "logged_in", $t); wp_set_current_user($u); echo LOGGED_IN_COOKIE . "=" . $_COOKIE[LOGGED_IN_COOKIE] . "\n" . wp_create_nonce("join");'));
        self::$pages->ask("/about/?join=1&_wpnonce=$nonce", 'GET', "Cookie: $cookie");
        self::assertStringContainsString('Members: 1', self::$pages->ask('/members/')[0]);
        // A stranger's link writes nothing, and purges nothing.
        self::$pages->ask("/about/?join=1&_wpnonce=$nonce");
        self::assertTrue(self::$pages->isKept('/members/'));
    }

    public function testAListOfHiddenPostsChangesPages(): void
    {
        self::$pages->ask('/hidden/');
        self::assertTrue(self::$pages->isKept('/hidden/'));
        self::$blog->command('update_option("_hidden_forums", ["4", "5"]);');
        self::assertStringContainsString('Hidden: 4, 5', self::$pages->ask('/hidden/')[0]);
        self::$blog->command('update_option("_hidden_forums", []);');
        self::assertStringNotContainsString('4', explode('Hidden', self::$pages->ask('/hidden/')[0])[1][2]);
        self::$blog->command('update_option("_hidden_forums", [7]); delete_option("_hidden_forums"); update_option("_notes", ["a" => "b"]);');
        self::assertFalse(self::$pages->isKept('/hidden/'));
        self::$blog->command('update_option("_notes", ["a" => "c"]); update_option("counts_cache", [4]);');
        self::assertTrue(self::$pages->isKept('/hidden/'));
    }

    public function testAnAgeEndsTheLifetime(): void
    {
        self::assertSame(1, preg_match('/ttl=(\d+)/', self::$pages->ask('/since/')[1], $found));
        self::assertThat((int) $found[1], self::logicalAnd(self::greaterThan(300), self::lessThanOrEqual(360)));
        preg_match('/ttl=(\d+)/', self::$pages->ask('/long-since/')[1], $found);
        self::assertGreaterThan(7200, (int) $found[1], 'an age that stays the same, and a time that does not end now');
        preg_match('/ttl=(\d+)/', self::$pages->ask('/days-since/')[1], $found);
        self::assertThat((int) $found[1], self::logicalAnd(self::greaterThan(3500), self::lessThanOrEqual(3600)), 'in 7 hours, 3 days are 4');
        preg_match('/ttl=(\d+)/', self::$pages->ask('/active/')[1], $found);
        self::assertThat((int) $found[1], self::logicalAnd(self::greaterThan(200), self::lessThanOrEqual(300)), 'a member who looks at a page is active');
    }

    public function testALanguageThatPolylangTakesFromTheBrowserIsOfThatBrowser(): void
    {
        self::$blog->command('update_option("polylang", ["browser" => true]);');
        foreach (['de', 'fr', 'de'] as $number => $language) {
            [$page, $how] = self::$pages->ask('/preferred/', 'GET', "Accept-Language: $language");
            self::assertStringContainsString("You read $language", $page, $how);
            self::assertSame($number === 2, str_contains($how, 'hit'), $how);
        }
    }

    public function testTheEditorOfAVisitorIsTheSameForAllBrowsers(): void
    {
        foreach (['Googlebot/2.1', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36'] as $agent) {
            [$page, $how] = self::$pages->ask('/editor/', 'GET', "User-Agent: $agent");
            self::assertStringContainsString('tmce-active', $page, $agent);
            self::assertStringContainsString('by-device', $how, $agent);
        }
    }

    public function testUltimateMemberForbidsCachesOfPhonesAndNoOthers(): void
    {
        $phone = 'User-Agent: Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0';
        self::assertStringContainsString('cache-control', self::$pages->ask('/form/', 'GET', $phone)[1]);
        $how = self::$pages->ask('/form/')[1];
        self::assertTrue(self::$pages->isStored('/form/', $how), $how);
    }

    public function testAnotherFunctionOfThatNameMayShowPhonesAnotherPage(): void
    {
        self::assertStringContainsString('by-device', self::$pages->ask('/phones/')[1]);
    }

    public function testTheToolbarOfAVisitorIsTheSameForAllDevices(): void
    {
        $phone = self::$pages->ask('/toolbar/', 'GET', 'User-Agent: Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0');
        self::assertTrue(self::$pages->isStored('/toolbar/', $phone[1]), $phone[1]);
        self::assertSame(1, preg_match('/id="wpadminbar" class="([^"]*)"/', $phone[0], $found));
        self::assertStringNotContainsString('mobile', $found[1]);
        self::assertTrue(self::$pages->isKept('/toolbar/'));
    }
}
