<?php

/**
 * Which options that are written change pages: settings, whichever way they are saved, and no notes. What the
 * button for all pages says.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\HasBlog;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressSettingsTest extends TestCase
{
    use HasBlog;

    /** @dataProvider writes */
    #[DataProvider('writes')]
    public function testASettingChangesThePagesThatReadItAndANoteNothing(string $script, bool|string $changes): void
    {
        $tags = is_string($changes) ? $changes : ($changes ? '"setting:tide_table", "settings"' : '');
        self::assertSame(['done', $tags], self::$blog->post("$script echo 'done';"));
    }

    /** @return iterable<string, array{string, bool|string}> the script, and the tags; true: of the setting */
    public static function writes(): iterable
    {
        $admin = "define('WP_ADMIN', true); wp_set_current_user(1); ";
        $save = "update_option('tide_table', uniqid()); ";
        $rest = "wp_set_current_user(1); register_setting('general', 'tide_table', ['show_in_rest' => true, 'type' => 'string']); do_action('rest_api_init', rest_get_server()); ";
        $ask = "\$request = new WP_REST_Request('POST', '/wp/v2/settings'); \$request->set_param('%s', %s); \$response = rest_do_request(\$request); \$response->get_status() === 200 || exit('no'); ";
        yield "a plugin's setting by REST" => [$rest . sprintf($ask, 'tide_table', 'uniqid()'), true];
        yield "one of WordPress's by REST" => [$rest . sprintf($ask, 'description', 'uniqid()'), '"site"'];
        yield 'one by REST that no page shows' => [$rest . sprintf($ask, 'default_ping_status', '"closed"'), false];
        yield 'registered, by nobody' => ["register_setting('tides', 'tide_table'); $save", true];
        yield 'registered, added and deleted' => ["register_setting('tides', 'tide_more'); add_option('tide_more', 1); delete_option('tide_more');", '"setting:tide_more", "settings"'];
        yield "on a plugin's own page" => ["$admin \$GLOBALS['pagenow'] = 'admin.php'; $save", true];
        yield 'on one under a type of posts' => ["$admin \$GLOBALS['pagenow'] = 'edit.php'; \$_REQUEST['page'] = 'tides'; $save", true];
        yield 'by admin-post' => ["$admin \$GLOBALS['pagenow'] = 'admin-post.php'; $save", true];
        yield "by a plugin's REST route" => ["define('REST_REQUEST', true); wp_set_current_user(1); \$GLOBALS['wp']->query_vars['rest_route'] = '/tides/v1/table'; $save", true];
        yield 'by AJAX of a plugin' => ["$admin define('DOING_AJAX', true); \$GLOBALS['core_actions_post'] = ['heartbeat']; \$_REQUEST['action'] = 'tides'; $save", true];
        yield 'ignored by name' => ["$admin \$GLOBALS['pagenow'] = 'admin.php'; add_filter('pagewell_ignored_options', fn () => ['tide_table']); $save", false];
        yield 'named as a setting, by nobody' => ["add_filter('pagewell_options', fn (\$names) => [...\$names, 'tide_table']); $save", '"site"'];
        yield 'by nobody' => [$save, false];
        yield 'by an author' => ["define('WP_ADMIN', true); wp_set_current_user(2); \$GLOBALS['pagenow'] = 'admin.php'; $save", false];
        yield 'while a post is saved' => ["$admin \$GLOBALS['pagenow'] = 'post.php'; $save", false];
        yield "by AJAX of WordPress's" => ["$admin define('DOING_AJAX', true); \$GLOBALS['core_actions_post'] = ['heartbeat']; \$_REQUEST['action'] = 'heartbeat'; $save", false];
        yield "by WordPress's REST routes" => ["define('REST_REQUEST', true); wp_set_current_user(1); \$GLOBALS['wp']->query_vars['rest_route'] = '/wp/v2/posts/4'; $save", false];
        $notes = "set_transient('tides', uniqid()); set_site_transient('tides', uniqid()); update_option('cron', get_option('cron') + ['x' => uniqid()]); update_option('_tide_lock', uniqid()); update_option('tides.lock', uniqid()); update_option('tide_last_run', uniqid());";
        yield 'notes, by somebody' => ["$admin \$GLOBALS['pagenow'] = 'admin.php'; $notes", false];
        // A plugin may keep a note that it has made of a setting.
        yield 'notes beside a setting' => ["$admin \$GLOBALS['pagenow'] = 'admin.php'; update_option('tide_cache', uniqid()); $save set_transient('tides_made', uniqid()); update_option('_tide_style', uniqid());", '"setting:tide_cache", "setting:tide_table", "settings", "transient:tides_made", "setting:_tide_style"'];
    }

    public function testWhatWpCliSavesIsASetting(): void
    {
        $cli = "define('WP_CLI', true); \$_SERVER['argv'] = ['wp', '--quiet', '%s', 'update']; update_option('tide_table', uniqid());";
        self::$blog->command(sprintf($cli, 'tides'));
        self::assertSame([], self::$blog->pending());
        self::$blog->command(sprintf($cli, 'option'));
        self::assertSame(['setting:tide_table', 'settings'], self::$blog->pending());
    }

    public function testTheNoticeSaysThatAllPagesWereDroppedWhereTheyWere(): void
    {
        self::assertSame(['success', '"site"'], $this->drop(asRequest: true));
        self::assertSame('', $this->notice(), 'it is shown once');
        $pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        try {
            self::$blog->control($pagewell->admin());
            self::assertSame(['success', ''], $this->drop(asRequest: false));
        } finally {
            $pagewell->stop();
        }
    }

    public function testTheNoticeSaysWhyTheyWereNotDropped(): void
    {
        self::assertSame(['error', ''], $this->drop(asRequest: false, reason: 'The pages were not purged: Pagewell is not at 127.0.0.1:1: Connection refused.'));
        self::assertSame(['site'], self::$blog->pending(), 'it is tried again');
        self::assertSame(['warning', '"site"'], $this->drop(asRequest: true, fromItself: false, reason: 'could not be called: Pagewell is not at 127.0.0.1:1'));
    }

    /** @return array{string, string} the kind of notice, and what the answer carried */
    private function drop(bool $asRequest, bool $fromItself = true, string $reason = ''): array
    {
        $press = "wp_set_current_user(1); require_once ABSPATH . 'wp-admin/includes/admin.php'; \$_REQUEST['_wpnonce'] = wp_create_nonce('pagewell_drop'); do_action('admin_post_pagewell_drop');";
        $carried = $asRequest ? self::$blog->post($press, $fromItself)[1] : [self::$blog->command($press), ''][1];
        $notice = $this->notice();
        self::assertStringContainsString($reason, html_entity_decode($notice));
        return [preg_match('/notice notice-(\w+)/', $notice, $found) === 1 ? $found[1] : '', $carried];
    }

    private function notice(): string
    {
        $page = self::$blog->command("wp_set_current_user(1); require_once ABSPATH . 'wp-admin/includes/admin.php'; (new \ReflectionMethod('Pagewell\WordPress\Admin\Screen', 'show'))->invoke(null);");
        return preg_match('~<div class="notice.*?</div>~s', $page, $found) === 1 ? $found[0] : '';
    }
}
