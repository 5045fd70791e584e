<?php

/**
 * The functions of the WordPress plugin that look at a page: whatever fails in one of them, visitors get the page,
 * and it is not stored.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressObserverTest extends TestCase
{
    /** Hooks that are not in the table of Sources. */
    private const OTHERS = [
        'pre_option_comment_registration', 'pre_option_category_children', 'wp_loaded', 'pagewell_uses', 'nonce_user_logged_out', 'nonce_life', 'set_current_user',
        'wp_is_mobile', 'user_can_richedit', 'redirect_canonical', 'parse_request', 'template_redirect', 'shutdown',
    ];

    private const OF_REST = ['rest_api_init', 'rest_request_before_callbacks', 'rest_pre_dispatch', 'rest_dispatch_request', 'rest_request_after_callbacks', 'rest_post_dispatch', 'rest_prepare_post', 'rest_prepare_category', 'rest_category_query', 'rest_prepare_user', 'rest_prepare_comment', 'oembed_response_data'];

    /** The plugin's class with a function that fails, and calls of all functions for the hook within each page. */
    private const FAILING = 'spl_autoload_register(static function ($class) { if ($class === "Pagewell\\\\WordPress\\\\Observer") {'
        . ' $code = str_replace(\'return $function(...$given);\', \'if ($hook === $GLOBALS["failing"]) { throw new \Error("in a test"); } return $function(...$given);\', file_get_contents(WP_PLUGIN_DIR . "/pagewell/src/Observer.php"), $count);'
        . ' $count === 1 || exit("the class is another one"); eval(substr($code, 5)); } }, true, true);'
        . ' $calls = static function () { foreach (($GLOBALS["wp_filter"][$GLOBALS["failing"]] ?? null)->callbacks[PHP_INT_MAX] ?? [] as $one) { $one["function"](null, null, null, null, null); } };'
        . ' add_action("wp_head", $calls); add_action("wp_head", fn () => do_action("pagewell_uses", "tides")); add_filter("rest_pre_serve_request", static function ($served) use ($calls) { $GLOBALS["failing"] === "rest_api_init" || $calls(); return $served; });';

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
        self::$blog->plugin('');
        self::$blog->command('do_action("pagewell_changed", "site");');
    }

    public function testAFunctionThatFailsEndsNoPage(): void
    {
        $table = json_decode(self::$blog->command('echo json_encode(array_keys((new ReflectionClassConstant("Pagewell\WordPress\Read\Sources", "TABLE"))->getValue()));'), true);
        self::assertGreaterThan(40, count($table));
        $this->fails('the_title', '/buoy/', '</html>');
        self::assertStringContainsString('a function for the hook the_title failed; the page is not cached: in a test', self::$pagewell->log());
        foreach ([...$table, ...self::OTHERS] as $hook) {
            $this->fails($hook, '/buoy/', '</html>');
        }
        foreach (self::OF_REST as $hook) {
            $this->fails($hook, '/wp-json/wp/v2/posts', 'A new buoy');
        }
    }

    private function fails(string $hook, string $path, string $shown): void
    {
        self::$blog->plugin("\$GLOBALS['failing'] = '$hook'; " . self::FAILING);
        [$head, $content] = self::get($path);
        self::assertStringContainsString(' 200 ', strtok($head, "\n"), $hook);
        self::assertStringContainsString($shown, $content, $hook);
        self::assertMatchesRegularExpression('/^X-Pagewell-Refusal: (unobserved|sent-early)/mi', $head, $hook);
    }

    public function testArgumentsThatNobodyExpectsEndNoPage(): void
    {
        $odd = '[[new stdClass(), new stdClass()], [[]], [[[]], [[]], [[]]], ["x", "y", "z"], [0], [null, -1, false], []]';
        $hooks = 'array_filter(array_keys($GLOBALS["wp_filter"]), fn ($hook) => !in_array($hook, ["shutdown", "template_redirect", "parse_request", "wp_loaded"], true))';
        self::$blog->plugin("add_action('wp_head', function () { foreach ($hooks as \$hook) { foreach (\$GLOBALS['wp_filter'][\$hook]->callbacks[PHP_INT_MAX] ?? [] as \$one) { foreach ($odd as \$given) { \$one['function'](...\$given); } } } });");
        [$head, $content] = self::get('/buoy/');
        self::assertStringContainsString(' 200 ', strtok($head, "\n"));
        self::assertStringContainsString('</html>', $content);
    }

    /** Before that, WordPress has neither a query nor a user. */
    public function testAPluginThatReadsBeforeWordPressIsReady(): void
    {
        $reads = 'get_terms(["taxonomy" => "category", "hide_empty" => false]); get_term_children(1, "category"); get_posts(["post_type" => "page"]); get_pages(); get_users(["has_published_posts" => true, "orderby" => "post_count"]);'
            . ' get_user_meta(1); get_user_by("id", 1); get_comments(["number" => 5]); is_sticky(4); get_option("sticky_posts"); get_option("page_comments"); get_the_title(4);';
        self::$blog->plugin("add_action('plugins_loaded', function () { $reads });");
        [$head, $content] = self::get('/buoy/');
        self::assertStringContainsString(' 200 ', strtok($head, "\n"));
        self::assertStringContainsString('</html>', $content);
        self::assertStringContainsString('hit', self::get('/buoy/')[0], 'it is stored, with all that was read');
        self::$blog->command('wp_insert_term("Crabs", "category");');
        self::assertStringNotContainsString('hit', self::get('/buoy/')[0]);
    }

    /** A failure in a block or a widget of the site is the site's own. */
    public function testAFailureOfTheSiteStaysOne(): void
    {
        self::$blog->plugin('add_action("init", function () { register_block_type("a/b", ["render_callback" => fn () => throw new RuntimeException("of the site")]); }); add_action("wp_head", fn () => print(do_blocks("<!-- wp:a/b /-->")));');
        self::assertStringContainsString(' 500 ', strtok(self::get('/buoy/')[0], "\n"));
    }

    /** @return array{string, string} status and fields, content */
    private static function get(string $path): array
    {
        $options = ['http' => ['ignore_errors' => true, 'timeout' => 60, 'header' => 'Host: blog.test']];
        $content = (string) file_get_contents(self::$pagewell->address() . $path, false, stream_context_create($options));
        return [implode("\n", $http_response_header), $content];
    }
}
