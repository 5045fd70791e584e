<?php

/**
 * A WordPress behind the real binary, for its administrators: WP-CLI (with a stand-in of it), the
 * admin bar, Site Health.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressAdminTest extends TestCase
{
    private const ADMIN = 'wp_set_current_user(1); ';

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$pagewell = self::$blog->behind();
        self::get('/ferry/');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$blog = null;
    }

    protected function setUp(): void
    {
        self::$blog->control(self::$pagewell->admin());
        self::$blog->plugin('');
        self::$blog->command('do_action("pagewell_changed", "site"); delete_transient("pagewell_away");');
    }

    public function testItsStatusByCommand(): void
    {
        $this->cli("'status'");
        self::assertStringContainsString(' answers', $status = $this->cli("'status'"));
        self::assertStringContainsString('Changes not sent yet: none', $status);
        self::assertStringContainsString('by the control interface: site', $status);
        self::assertStringEndsWith("Success: Changes reach Pagewell.\n", $status);
        self::$blog->control(RealWordPress::AWAY);
        self::assertStringContainsString('Control interface: Pagewell is not at ' . RealWordPress::AWAY, $status = $this->cli("'status'"));
        self::assertStringContainsString('Error: Changes do not reach Pagewell. ', $status);
        self::$blog->command('wp_update_post(["ID" => get_page_by_path("tern", OBJECT, "post")->ID, "post_content" => "Changed."]);');
        self::$blog->control(self::$pagewell->admin());
        self::assertStringContainsString('Warning: Pages with these tags may be old.', $this->cli("'status'"));
        self::$blog->command("do_action('pagewell_retry');");
        self::assertStringNotContainsString('Warning', $this->cli("'status'"));
        self::$blog->control('off');
        self::assertStringContainsString('Success: Changes reach Pagewell on responses only: ', $this->cli("'status'"));
    }

    public function testTheGermanTranslationHasEveryText(): void
    {
        $directory = __DIR__ . '/../../wordpress/pagewell/languages';
        $texts = self::messages("$directory/pagewell.pot");
        $translated = self::messages("$directory/pagewell-de_DE.po");
        self::assertSame(array_keys($texts), array_keys($translated));
        foreach ($translated as $text => $german) {
            self::assertSame([true, substr_count($text, '%s')], [$german !== '', substr_count($german, '%s')], $text);
        }
        // WordPress reads the file that msgfmt has compiled.
        $shown = self::$blog->command('load_textdomain("pagewell", WP_PLUGIN_DIR . "/pagewell/languages/pagewell-de_DE.mo"); echo json_encode(array_map(fn ($text) => __($text, "pagewell"), ' . var_export(array_keys($texts), true) . '));');
        self::assertSame(array_values($translated), json_decode($shown, true), 'run: msgfmt -o pagewell-de_DE.mo pagewell-de_DE.po');
    }

    /** @return array<string, string> text → translation */
    private static function messages(string $file): array
    {
        preg_match_all('/^msgid "(.+)"\nmsgstr "(.*)"$/m', (string) file_get_contents($file), $found);
        return array_combine(array_map(stripcslashes(...), $found[1]), array_map(stripcslashes(...), $found[2]));
    }

    /** @dataProvider purges */
    #[DataProvider('purges')]
    public function testAPurgeByCommand(string $call, string $said, bool $isFerryLeft, bool $isTernLeft): void
    {
        foreach (['/ferry/', '/tern/'] as $path) {
            self::get($path);
            self::assertTrue(self::hits($path));
        }
        self::assertMatchesRegularExpression("~^$said\n$~D", $this->cli($call));
        self::assertSame([$isFerryLeft, $isTernLeft], [self::hits('/ferry/'), self::hits('/tern/')]);
    }

    /** @return iterable<string, array{string, string, bool, bool}> */
    public static function purges(): iterable
    {
        yield 'everything' => ["'purge', [], ['all' => true]", 'Success: \d+ pages purged\.', false, false];
        yield 'a path' => ["'purge', ['/ferry/']", 'Success: 1 page purged\.', false, true];
        yield 'a post' => ["'purge', [], ['post' => (string) get_page_by_path('ferry', OBJECT, 'post')->ID]", 'Success: \d+ pages? purged\.', false, true];
        yield 'a tag' => ["'purge', [], ['tag' => 'none, called:tern']", 'Success: 1 page purged\.', true, false];
        yield 'a whole URL' => ["'purge', ['http://blog.test/ferry/']", 'Success: 1 page purged\.', false, true];
        yield 'a page that is not cached' => ["'purge', ['/nothing/']", 'Success: 0 pages purged\. No cached page has this URL or tag: http://blog.test/nothing/\.', true, true];
        yield 'a page of another site' => ["'purge', ['http://elsewhere.test/ferry/']", "Error: 'http://elsewhere.test/ferry/' is no page of this site: .*", true, true];
        yield 'no path' => ["'purge', ['ferry']", "Error: 'ferry' is no page of this site: .*", true, true];
        yield 'a post that is not there' => ["'purge', [], ['post' => '4711']", 'Error: There is no post 4711\.', true, true];
        yield 'nothing' => ["'purge'", 'Error: Nothing is named to purge: .*', true, true];
    }

    public function testAPurgeByCommandOfASiteInADirectory(): void
    {
        $directory = 'add_filter("option_home", fn () => "http://blog.test/wp", 20);';
        self::$blog->plugin($directory);
        foreach (['/ferry/', '/wp/ferry/', 'http://blog.test/wp/ferry/'] as $page) {
            self::get('/wp/ferry/');
            self::assertTrue(self::hits('/wp/ferry/'));
            self::assertStringStartsWith("http://blog.test/wp/ferry/\n  hit", $this->cli("'explain', ['$page']", $directory));
            self::assertSame("Success: 1 page purged.\n", $this->cli("'purge', ['$page']", $directory));
            self::assertFalse(self::hits('/wp/ferry/'));
        }
        self::assertStringContainsString('has this URL or tag: http://blog.test/wp/wpx/.', $this->cli("'purge', ['/wpx/']", $directory));
    }

    public function testAPurgeByCommandThatFailsIsTriedAgain(): void
    {
        self::$blog->control(RealWordPress::AWAY);
        self::assertStringContainsString('Error: The pages were not purged: Pagewell is not at', $this->cli("'purge', [], ['all' => true]"));
        self::assertSame(['site'], self::$blog->pending());
        self::assertStringEndsWith("its admin address.\n", $this->cli("'purge', ['/ferry/']"), 'a URL is not tried again');
        self::$blog->forget();
    }

    public function testAPageIsExplainedByCommand(): void
    {
        self::get('/ferry/');
        self::assertStringContainsString('  hit          It is answered from the cache.', $text = $this->cli("'explain', ['/ferry/']"));
        self::assertStringContainsString('called:ferry', $text);
        self::get('/ferry/?preview=1');
        self::assertStringContainsString('not stored: no-store', $this->cli("'explain', ['/ferry/?preview=1']"));
        self::$blog->control(RealWordPress::AWAY);
        self::assertStringStartsWith('Error: Pagewell is not at', $this->cli("'explain', ['/ferry/']"));
    }

    public function testTheReadersOfAPageByCommand(): void
    {
        self::$blog->command('wp_insert_post(["post_type" => "page", "post_title" => "Latest", "post_name" => "latest", "post_status" => "publish", "post_content" => "<!-- wp:latest-posts {\"postsToShow\":3} /-->"]);');
        self::get('/latest/');
        $text = $this->cli("'explain', ['/latest/'], ['readers' => true]", $this->resolved());
        self::assertStringContainsString('  hit          It is answered from the cache.', $text);
        self::assertMatchesRegularExpression('~^  read by      core/latest-posts: .*\bname:\d+~m', $text);
        self::assertMatchesRegularExpression('~^  read by      page: .*\bcalled:latest\b~m', $text);
        self::assertTrue(self::hits('/latest/'), 'the page that visitors get stays');
        self::assertStringNotContainsString('read by', $this->cli("'explain', ['/latest/']", $this->resolved()), 'only if it is wanted');
        self::assertStringContainsString('Error: The response, with status 200, names no readers', $this->cli("'explain', ['/wp-login.php'], ['readers' => true]", $this->resolved()));
        self::assertStringContainsString('Error: The page cannot be rendered: No route.', $this->cli("'explain', ['/latest/'], ['readers' => true]", 'add_filter("pre_http_request", fn () => new WP_Error("no", "No route."));'));
    }

    public function testTheAdminBarSaysWhetherVisitorsGetThePageFromTheCache(): void
    {
        self::assertStringContainsString('Not cached yet', $this->bar('/tug/'));
        self::get('/tug/');
        self::assertStringContainsString('Cached for visitors, for another ', $bar = $this->bar('/tug/'));
        self::assertStringContainsString('Purge this page', $bar);
        self::get('/tug/?preview=1');
        self::assertStringContainsString('Not cached: no-store', $this->bar('/tug/?preview=1'));
        self::assertSame('', $this->bar('/tug/', 'wp_set_current_user(2); '), 'an author');
        self::assertSame('', $this->bar('/tug/', self::ADMIN . "define('WP_ADMIN', true); "), 'in the administration');
    }

    public function testTheAdminBarAsksOnceAMinuteWhereNobodyAnswers(): void
    {
        self::$blog->control(RealWordPress::AWAY);
        self::assertStringContainsString('Unknown: Pagewell is not at', $this->bar('/tug/'));
        self::$blog->control(self::$pagewell->admin());
        self::assertStringContainsString('Unknown: Pagewell is not at', $this->bar('/tug/'));
    }

    public function testTheLinkPurgesThePage(): void
    {
        self::get('/tug/');
        self::assertSame('http://blog.test/tug/', $this->press('http://blog.test/tug/'));
        self::assertFalse(self::hits('/tug/'));
        self::assertStringContainsString('The page was purged.', $this->bar('/tug/'));
        self::assertStringNotContainsString('purged.', $this->bar('/tug/'), 'it is shown once');
        self::assertSame('This is not a page of this site.', $this->press('http://elsewhere.test/'));
        self::assertSame('Sorry, you are not allowed to do this.', $this->press('http://blog.test/tug/', 2));
        self::$blog->control(RealWordPress::AWAY);
        $this->press('http://blog.test/tug/');
        self::assertStringContainsString('The page was not purged: Pagewell is not at', $this->bar('/tug/'));
    }

    public function testSiteHealth(): void
    {
        $ask = self::ADMIN . "\$found = apply_filters('site_status_tests', ['direct' => []])['direct']; foreach (\$found as \$name => \$test) { \$result = (\$test['test'])(); echo \$name === \$result['test'] ? '' : 'another ', \$result['test'], ' ', \$result['status'], \"\\n\"; }";
        self::assertSame("pagewell_front recommended\npagewell_control good\npagewell_pending good\npagewell_arrangement good\npagewell_other good\n", self::$blog->command($ask));
        self::assertStringContainsString('pagewell_front good', self::$blog->command("\$_SERVER['HTTP_VIA'] = '1.1 pagewell'; $ask"));
        self::$blog->control(RealWordPress::AWAY);
        self::$blog->command('do_action("pagewell_changed", "tides");');
        self::assertStringContainsString("pagewell_control critical\npagewell_pending critical\n", self::$blog->command($ask));
        self::assertStringContainsString(RealWordPress::AWAY, self::$blog->command("echo json_encode(apply_filters('debug_information', []));"));
        self::$blog->forget();
        self::$blog->control('off');
        self::assertStringContainsString('pagewell_control recommended', self::$blog->command($ask));
        self::$blog->control('localhost');
        self::assertStringContainsString("PAGEWELL_ADMIN is 'localhost': write an address", html_entity_decode(self::$blog->command(self::ADMIN . "echo apply_filters('site_status_tests', ['direct' => []])['direct']['pagewell_control']['test']()['description'], apply_filters('debug_information', [])['pagewell']['fields']['address']['value'];"), ENT_QUOTES));
    }

    /** @param string $plugin what else the site has as a plugin */
    private function cli(string $call, string $plugin = ''): string
    {
        self::$blog->plugin('require ' . var_export(__DIR__ . '/../../tests/stand-ins/wp-cli.php', true) . "; $plugin");
        return self::$blog->command("WP_CLI::run('pagewell', $call);");
    }

    /** Code with which WordPress finds its own host, which no name server has, at Pagewell's address. */
    private function resolved(): string
    {
        return 'add_filter("pre_http_request", fn ($made, $options, $url) => str_starts_with($url, "http://blog.test/") ? wp_remote_get(' . var_export(self::$pagewell->address(), true) . ' . substr($url, 16), ["headers" => ["Host" => "blog.test"]] + $options) : $made, 10, 3); define("WP_ACCESSIBLE_HOSTS", "127.0.0.1");';
    }

    /** The texts of the entry, as on the page at this path. */
    private function bar(string $path, string $who = self::ADMIN): string
    {
        return self::$blog->command("\$_SERVER['REQUEST_URI'] = '$path'; $who require_once ABSPATH . WPINC . '/class-wp-admin-bar.php'; \$bar = new WP_Admin_Bar(); do_action_ref_array('admin_bar_menu', [&\$bar]);"
            . " foreach (\$bar->get_nodes() ?? [] as \$node) { echo str_starts_with(\$node->id, 'pagewell') ? wp_strip_all_tags(\$node->title) . \"\\n\" : ''; }");
    }

    /** @return string where the link leads, or why it does not */
    private function press(string $url, int $user = 1): string
    {
        return trim(self::$blog->command("wp_set_current_user($user); add_filter('wp_redirect', function (\$to) { echo \$to; return false; }); add_filter('wp_die_handler', fn () => function (\$text) { exit(\$text); });"
            . " \$_REQUEST['_wpnonce'] = wp_create_nonce('pagewell_purge_page'); \$_GET['url'] = '$url'; do_action('admin_post_pagewell_purge_page');"));
    }

    private static function hits(string $path): bool
    {
        return str_contains(self::get($path), 'hit');
    }

    /** @return string status and fields */
    private static function get(string $path): string
    {
        $options = ['http' => ['ignore_errors' => true, 'timeout' => 60, 'header' => 'Host: blog.test']];
        file_get_contents(self::$pagewell->address() . $path, false, stream_context_create($options));
        return implode("\n", $http_response_header);
    }
}
