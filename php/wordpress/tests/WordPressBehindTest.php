<?php

/**
 * WordPress behind the real binary and php-fpm: jobs that run for long, and pages of plugins that hold output
 * of their own.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressBehindTest extends TestCase
{
    /** PHP that asks for a page as a visitor does. */
    private const VISIT = 'function visit(string $path): string { return (string) file_get_contents(getenv("FRONT") . $path, false, stream_context_create(["http" => ["ignore_errors" => true, "header" => "Host: blog.test"]])); } ';

    /** Work that changes nothing that a page shows, at the pace of a job, until a function says true; for half a minute at most. */
    private const WORK = 'function work(callable $until): string { for ($n = 0; $n < 150; $n++) { do_action("pagewell_changed", "tick:$n"); usleep(200_000); if ($until()) { return "while it runs"; } } return "never"; } ';

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$pagewell = self::$blog->behind();
        self::get('/ferry/');
        self::$blog->command('do_action("pagewell_changed", "site");');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$blog = null;
    }

    protected function tearDown(): void
    {
        self::$blog->plugin('');
    }

    public function testWhatALongJobChangesIsSeenWhileItRuns(): void
    {
        self::get('/ferry/');
        $job = 'wp_update_post(["ID" => get_page_by_path("ferry", OBJECT, "post")->ID, "post_title" => "On time"]); echo work(fn () => str_contains(visit("/ferry/"), "On time"));';
        self::assertSame('while it runs', $this->job($job));
    }

    public function testARenderThatNoVisitorSeesIsNoView(): void
    {
        self::$blog->plugin('add_action("wp_head", function () { $id = get_queried_object_id(); if (is_single()) { update_post_meta($id, "views", (int) get_post_meta($id, "views", true) + 1); update_post_meta($id, "size", 30); } });');
        $views = static fn (string ...$lines): array => [self::$blog->plain('/tern/', 'Via: 1.1 pagewell', ...$lines), self::$blog->rows("SELECT meta_value FROM wp_postmeta WHERE meta_key = 'views'")][1];
        $reference = 'Pagewell-Reference: 1';
        self::assertSame([[], ['1'], ['1'], ['2']], [$views($reference), $views(), $views($reference), $views()]);
        self::assertSame(['30'], self::$blog->rows("SELECT meta_value FROM wp_postmeta WHERE meta_key = 'size'"), 'what is no count is written');
    }

    public function testWhatAHookNamesBeforeTheWriteIsSentAfterIt(): void
    {
        self::get('/gull/');
        // Long enough for two turns; each visit stores the page as it still is.
        $slow = 'add_action("before_delete_post", function () { $began = time(); work(function () use ($began) { visit("/gull/"); return time() - $began > 4; }); }, PHP_INT_MAX); ';
        $this->job($slow . 'wp_delete_post(get_page_by_path("gull", OBJECT, "post")->ID, true);');
        self::assertStringContainsString('404', self::get('/gull/')[0]);
    }

    public function testWhatIsWrittenInATransactionIsSentAfterIt(): void
    {
        self::get('/tern/');
        // Somebody still visits right before the database commits.
        $in = 'add_filter("query", function ($query) { $query === "COMMIT" && visit("/tern/"); return $query; }, PHP_INT_MAX); $wpdb->query("START TRANSACTION"); wp_update_post(["ID" => get_page_by_path("tern", OBJECT, "post")->ID, "post_title" => "Terns have left"]);'
            . ' $began = time(); work(function () use ($began) { visit("/tern/"); return time() - $began > 4; }); $wpdb->query("COMMIT"); echo work(fn () => str_contains(visit("/tern/"), "have left"));';
        self::assertSame('while it runs', $this->job($in));
    }

    /** @dataProvider plugins */
    #[DataProvider('plugins')]
    public function testAPageOfAPluginThatHoldsOutput(string $plugin, string $kept): void
    {
        self::$blog->plugin($plugin);
        self::$blog->command('do_action("pagewell_changed", "site");');
        [$head, $content] = self::get('/buoy/');
        self::assertStringContainsString('A new buoy', $content, 'the page is not blank');
        self::assertStringContainsString('</html>', $content);
        self::assertSame($kept, preg_match('/^X-Pagewell-Refusal: (.*)$/mi', $head, $found) === 1 ? $found[1] : 'kept');
        self::assertSame($kept === 'kept', str_contains(self::get('/buoy/')[0], 'hit'));
    }

    /** @return iterable<string, array{string, string}> */
    public static function plugins(): iterable
    {
        yield 'none' => ['', 'kept'];
        yield 'in a filter that the page is asked with' => ['add_filter("pagewell_lifetime", function ($seconds) { ob_start(); echo "x"; ob_get_clean(); return $seconds; });', 'kept'];
        yield 'printed at the end' => ['add_action("shutdown", function () { do_action("pagewell_uses", "tides"); echo "<!-- tides -->"; }, -5);', 'kept'];
        yield 'a buffer that is left open, whose function sets a cookie' => ['add_action("wp_head", fn () => ob_start(function ($page) { setcookie("basket", "1"); return $page; }));', 'set-cookie'];
        yield 'all buffers flushed in between' => ['add_action("wp_footer", function () { while (ob_get_level() > 0) { ob_end_flush(); } }, 0);', 'sent-early'];
        yield 'that looks at the device' => ['add_action("wp_head", "wp_is_mobile");', 'by-device'];
        yield 'the same where there is a copy for each kind of device' => ['define("PAGEWELL_DEVICES", true); add_action("wp_head", "wp_is_mobile");', 'kept'];
        yield 'the same for the toolbar' => ['add_filter("show_admin_bar", "__return_true");', 'kept'];
        yield 'that sends what WordPress sends with pages that nobody may keep' => ['add_action("template_redirect", "nocache_headers");', 'cache-control'];
        yield 'that says so for caches of the server' => ['add_action("send_headers", fn () => header("CDN-Cache-Control: no-store"));', 'cache-control'];
        yield 'that says so as HTTP/1.0 does' => ['add_action("send_headers", fn () => header("Expires: Wed, 11 Jan 1984 05:00:00 GMT"));', 'cache-control'];
        yield 'with the constant for all page caches' => ['add_action("wp", fn () => define("DONOTCACHEPAGE", true));', 'not-cached'];
        yield 'a filter that fails' => ['add_filter("pagewell_lifetime", fn () => throw new RuntimeException("no lifetime"));', 'failed'];
    }

    public function testATimeThatThePluginOfAPageSetsIsItsLifetime(): void
    {
        self::$blog->plugin('add_action("send_headers", fn () => header("Cache-Control: public, max-age=60"));');
        self::$blog->command('do_action("pagewell_changed", "site");');
        array_map(self::get(...), ['/buoy/', '/buoy/']);
        self::assertMatchesRegularExpression('/hit; ttl=(60|5\d)\b/', self::get('/buoy/')[0]);
    }

    /** @dataProvider halves */
    #[DataProvider('halves')]
    public function testHalfAPageIsNotKept(string $plugin): void
    {
        self::$blog->plugin($plugin);
        self::$blog->command('do_action("pagewell_changed", "site");');
        [$head, $content] = self::get('/buoy/');
        self::assertStringContainsString(' 200 ', strtok($head, "\n"));
        self::assertStringNotContainsString('</html>', $content);
        self::assertStringContainsStringIgnoringCase('X-Pagewell-Refusal: failed', $head);
    }

    /** @return iterable<string, array{string}> */
    public static function halves(): iterable
    {
        yield 'an exception whose handler is silent' => ['set_exception_handler(function () {}); add_filter("the_content", fn () => throw new RuntimeException("half"));'];
        yield 'the same at the end' => ['set_exception_handler(function () {}); add_action("wp_footer", fn () => throw new RuntimeException("nearly"));'];
        yield 'an exit' => ['add_filter("the_content", fn () => exit);'];
    }

    public function testAModuleOfTheAdministrationMayAskForTheDeviceWhileItIsLoaded(): void
    {
        self::$blog->command('mkdir(WPMU_PLUGIN_DIR . "/kit/admin", 0755, true); file_put_contents(WPMU_PLUGIN_DIR . "/kit/admin/menu.php", "<?php wp_is_mobile();");');
        foreach (['init' => true, 'parse_request' => false, 'wp_head' => false] as $hook => $isKept) {
            self::$blog->plugin("add_action('$hook', function () { require WPMU_PLUGIN_DIR . '/kit/admin/menu.php'; });");
            self::$blog->command('do_action("pagewell_changed", "site");');
            self::get('/buoy/');
            self::assertSame($isKept, str_contains(self::get('/buoy/')[0], 'hit'), $hook);
        }
    }

    /** There, WordPress asks whether to redirect, and then does not. */
    public function testAFeedOfAnArchiveOnAHostWithAPortHasNewTexts(): void
    {
        self::$blog->plugin('foreach (["home", "siteurl"] as $name) { add_filter("pre_option_$name", fn () => "http://blog.test:8080"); }');
        self::$blog->command('do_action("pagewell_changed", "site");');
        $ask = static fn (): array => self::get('/category/ships/feed/', 'blog.test:8080');
        $ask();
        self::assertStringContainsString('hit', $ask()[0]);
        self::$blog->command('wp_update_post(["ID" => get_page_by_path("tug", OBJECT, "post")->ID, "post_content" => "A text that is new."]);');
        self::assertStringContainsString('A text that is new.', $ask()[1]);
    }

    public function testARouteOfAPluginIsKeptIfItIsAccepted(): void
    {
        self::$blog->plugin('add_action("rest_api_init", function () { foreach (["table", "mine"] as $name) { register_rest_route("tides/v1", $name, ["callback" => function () { do_action("pagewell_uses", "tides"); return ["high" => "04:10"]; }, "permission_callback" => "__return_true"]); } });'
            . ' add_filter("pagewell_rest_route", fn ($known, $request) => $known || $request->get_route() === "/tides/v1/table", 10, 2);');
        $ask = static fn (string $path): string => self::get("/wp-json/tides/v1/$path")[0];
        array_map($ask, ['table', 'mine']);
        self::assertStringContainsString('hit', $ask('table'));
        self::assertStringContainsStringIgnoringCase('X-Pagewell-Refusal: rest-route', $ask('mine'));
        self::$blog->command('do_action("pagewell_changed", "tides");');
        self::assertStringNotContainsString('hit', $ask('table'));
    }

    public function testAVisitorWhomTheWebServerKnowsGetsAPageOfTheirOwn(): void
    {
        $names = ['HTTP_AUTHORIZATION', 'REDIRECT_HTTP_AUTHORIZATION', 'PHP_AUTH_USER', 'PHP_AUTH_DIGEST', 'REMOTE_USER', 'AUTH_TYPE'];
        $why = '$why = fn () => Pagewell\WordPress\Read\RefusalCheck::of(false, false)?->value; foreach (' . var_export($names, true) . ' as $name) { foreach (["", "x"] as $value) { $_SERVER[$name] = $value; echo $why() === "authorization" ? "$name " : ""; } unset($_SERVER[$name]); }';
        // Apache sets some of them to nothing.
        self::assertSame(implode(' ', $names) . ' ', self::$blog->command($why));
    }

    /** A script in WordPress as a job, which may ask for pages. */
    private function job(string $script): string
    {
        return self::$blog->command('putenv("FRONT=' . self::$pagewell->address() . '"); ' . self::VISIT . self::WORK . $script);
    }

    /** @return array{string, string} status and fields, content */
    private static function get(string $path, string $host = 'blog.test'): array
    {
        $options = ['http' => ['ignore_errors' => true, 'timeout' => 60, 'header' => "Host: $host"]];
        $content = (string) file_get_contents(self::$pagewell->address() . $path, false, stream_context_create($options));
        return [implode("\n", $http_response_header), $content];
    }
}
