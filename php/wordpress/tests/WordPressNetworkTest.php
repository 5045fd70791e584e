<?php

/**
 * The WordPress plugin in a network whose blogs have hosts of their own, and so may be sites of their
 * own to Pagewell: an answer speaks of one of them, the control interface to all. Debian's WordPress.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressNetworkTest extends TestCase
{
    private const JOURNAL = RealWordPress::JOURNAL;

    private static ?RealWordPress $blog = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled(['two.test', 'blog.test.']);
    }

    public static function tearDownAfterClass(): void
    {
        self::$blog?->stop();
        self::$blog = null;
    }

    protected function setUp(): void
    {
        self::$blog->forget();
    }

    public function testAnAnswerSpeaksOfItsOwnHostAndTheControlInterfaceOfOthers(): void
    {
        $both = "do_action('pagewell_changed', 'post:1'); switch_to_blog(2); do_action('pagewell_changed', 'post:2'); restore_current_blog();";
        self::assertSame('"1/post:1"', self::$blog->post($both)[1]);
        // Nobody listens there in this test, so it is kept; and is not put on an answer that nobody there hears.
        self::assertSame(['2/post:2'], self::$blog->pending());
        self::assertSame('"1/post:3"', self::$blog->post("do_action('pagewell_changed', 'post:3');")[1]);
        self::assertSame(['2/post:2'], self::$blog->pending());
    }

    public function testBlogsAtOneHostShareAnAnswer(): void
    {
        self::$blog->rows("UPDATE wp_blogs SET domain = 'BLOG.test', path = '/three/' WHERE blog_id = 3");
        $other = "switch_to_blog(3); do_action('pagewell_changed', 'post:2'); restore_current_blog();";
        self::assertSame('"3/post:2"', self::$blog->post($other)[1]);
        self::assertSame([], self::$blog->pending());
    }

    public function testWhatAllBlogsShareGoesBothWays(): void
    {
        $renamed = "wp_update_user(['ID' => 1, 'display_name' => 'Grace ' . bin2hex(random_bytes(4))]);";
        $carried = explode(', ', self::$blog->post($renamed)[1]);
        self::assertContains('"network/user:1"', $carried);
        self::assertContains('network/user:1', self::$blog->pending());
        $named = self::$blog->command(self::JOURNAL . "switch_to_blog(2); Page::uses('user:1', 'post:1'); echo implode(' ', Page::tags());");
        self::assertSame('network/user:1 2/post:1', $named);
    }

    public function testPluginsAndUpdatesOfTheNetworkChangeEveryBlog(): void
    {
        self::assertSame('"network"', self::$blog->post("do_action('upgrader_process_complete', null, []);")[1]);
        self::assertSame('"network"', self::$blog->post("do_action('activated_plugin', 'a/a.php', true);")[1]);
        self::assertSame('"1/site"', self::$blog->post("do_action('activated_plugin', 'a/a.php', false);")[1]);
        $page = "wp(); (new \ReflectionMethod('Pagewell\WordPress\Read\CacheHeaders', 'finish'))->invoke(null); echo json_encode(array_diff(['network', '1/site'], Page::tags()));";
        self::assertSame('[]', self::$blog->command(self::JOURNAL . $page));
        self::assertSame('1/site network', self::$blog->command(self::JOURNAL . "echo implode(' ', Tags::everything(['network/user:3']));"));
    }

    public function testABlogThatIsArchivedChangesItsOwnPages(): void
    {
        self::assertSame('', self::$blog->post('update_blog_status(2, "archived", "1");')[1]);
        self::assertSame(['2/site'], self::$blog->pending());
        self::$blog->post('update_blog_details(2, ["last_updated" => "2026-03-01 00:00:00"]);');
        self::assertSame(['2/site'], self::$blog->pending());
    }

    public function testAPageIsNamedByThePathOfItsBlogOrByAUrlOfAnyBlog(): void
    {
        $named = static fn (string $page): string => self::$blog->command("switch_to_blog(2); echo Pagewell\WordPress\Admin\PageState::urlOf('$page') ?? 'none';");
        self::assertSame(['http://two.test/about/', 'http://BLOG.test/about/', 'none'], array_map($named, ['/about/', 'http://BLOG.test/about/', 'http://elsewhere.test/about/']));
    }

    public function testNoCallIsForOneSiteAlone(): void
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        self::$blog->control((string) stream_socket_get_name($server, false));
        $told = self::$blog->post("define('PAGEWELL_SITE', 'blog.test'); switch_to_blog(2); do_action('pagewell_changed', 'post:2'); restore_current_blog();");
        $call = stream_socket_accept($server, 60);
        self::$blog->control(RealWordPress::AWAY);
        self::assertSame('', $told[1]);
        self::assertStringEndsWith('{"tags":["2/post:2"]}', (string) stream_get_contents($call));
    }
}
