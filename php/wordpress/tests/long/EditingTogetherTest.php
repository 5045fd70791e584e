<?php

/**
 * While users edit posts, WordPress writes rows every few seconds that no page shows: locks, automatic
 * saves, heartbeats, notes of editing together, transients, scheduled jobs. None of them purges a page,
 * or a response of the REST API.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use Pagewell\Tests\Support\WordPressEditor;
use PHPUnit\Framework\TestCase;

final class EditingTogetherTest extends TestCase
{
    private const PAGES = [
        '/', '/feed/', '/comments/feed/', '/ferry/', '/gull/', '/about/', '/category/ships/', '/author/ada/', '/?s=ferry', '/?orderby=modified', '/missing/', '/robots.txt',
        '/wp-sitemap.xml', '/wp-sitemap-posts-post-1.xml', '/wp-sitemap-users-1.xml', '/wp-json/wp/v2/posts?_embed', '/wp-json/wp/v2/posts/4', '/wp-json/wp/v2/users/1',
    ];

    private const ROUNDS = 20;

    /** As notes of editing together are stored: a post for each document, whose meta is written all the time. */
    private const TOGETHER = '$room = wp_insert_post(["post_type" => "wp_sync_storage", "post_status" => "publish", "post_title" => "postType/post:4", "post_name" => md5((string) $n)]);'
        . ' add_post_meta($room, "wp_sync_update", ["client_id" => $n, "data" => "AAE="]); update_post_meta($room, "wp_sync_awareness", [["client_id" => $n]]); add_post_meta(4, "wp_sync_update", "AAE=$n"); delete_post_meta($room, "wp_sync_update");';

    private const NOTES = 'set_transient("note_$n", $n, 60); delete_transient("note_$n"); set_site_transient("shared_$n", $n, 60); wp_schedule_single_event(time() + 3600 + $n, "nothing", [$n]); wp_clear_scheduled_hook("nothing", [$n]);'
        . ' update_user_meta(1, "wp_persisted_preferences", ["core" => ["n" => $n], "_modified" => gmdate("c")]); update_user_meta(1, "wp_user-settings-time", time() + $n); wp_cache_set("n", $n, "site-transient");';

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$pagewell = self::$blog->behind();
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$blog = null;
    }

    public function testNoWriteOfEditingPurgesAPage(): void
    {
        $editor = new WordPressEditor(self::$pagewell);
        $draft = $editor->rest('POST', 'wp/v2/posts', ['title' => 'Of tides', 'status' => 'draft'])['id'];
        $editor->page('/wp-admin/post.php?post=4&action=edit');
        $pages = new BlogPages(self::$pagewell);
        array_map($pages->ask(...), [...self::PAGES, ...self::PAGES]);
        self::assertSame([], self::purged($pages), 'every page is cached');
        foreach (range(1, self::ROUNDS) as $n) {
            $editor->page('/wp-admin/post.php?post=4&action=edit');
            $beat = $editor->heartbeat(['wp-refresh-post-lock' => ['post_id' => 4, 'lock' => ''], 'wp-check-locked-posts' => ['post-4', "post-$draft"]]);
            self::assertArrayHasKey('new_lock', $beat['wp-refresh-post-lock'] ?? [], json_encode($beat));
            $saved = $editor->rest('POST', 'wp/v2/posts/4/autosaves', ['title' => "The ferry, $n", 'content' => "Text $n"]);
            self::assertSame(4, $saved['parent']);
            $editor->rest('POST', "wp/v2/posts/$draft/autosaves", ['content' => "Draft $n"]);
            $editor->rest('POST', "wp/v2/posts/$draft", ['content' => "Draft, saved $n"]);
            self::$blog->command("\$n = $n; " . self::TOGETHER . self::NOTES);
        }
        self::assertSame((string) self::ROUNDS, self::$blog->rows("SELECT COUNT(*) FROM wp_posts WHERE post_type = 'wp_sync_storage'")[0]);
        self::assertSame([], self::purged($pages));
        // The same users do purge pages, when they save.
        $editor->rest('POST', 'wp/v2/posts/4', ['title' => 'The ferry is here']);
        self::assertSame([false, true], [$pages->isKept('/ferry/'), $pages->isKept('/about/')]);
    }

    /** @return list<string> */
    private static function purged(BlogPages $pages): array
    {
        return array_values(array_filter(self::PAGES, static fn (string $path): bool => !$pages->isKept($path)));
    }
}
