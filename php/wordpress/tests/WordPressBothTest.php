<?php

/**
 * The plugin and automatic dependencies on one site: the tags decide for posts, terms, comments and users, the
 * statements for options and for tables of other plugins.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressBothTest extends TestCase
{
    private const HEALTH = 'require_once ABSPATH . "wp-admin/includes/admin.php"; echo json_encode((apply_filters("site_status_tests", ["direct" => []])["direct"]["pagewell_arrangement"]["test"])());';

    public function testAPageDependsOnItsTagsAndOnItsStatements(): void
    {
        $blog = RealWordPress::settled(isFollowed: true);
        $blog->plugin('add_shortcode("tides", function () { global $wpdb; return "High: " . $wpdb->get_var("SELECT high FROM wp_tides WHERE id = 1") . "; " . get_option("tide_note"); });');
        $blog->command('wp_insert_post(["post_title" => "tides", "post_name" => "tides", "post_content" => "[tides]", "post_type" => "page", "post_status" => "publish"]); $GLOBALS["wpdb"]->query("CREATE TABLE wp_tides (id INT PRIMARY KEY, high VARCHAR(9))"); $GLOBALS["wpdb"]->query("INSERT INTO wp_tides VALUES (1, \'04:10\'), (2, \'05:10\')"); add_option("tide_note", "calm");');
        $pagewell = $blog->behind();
        try {
            $pages = new BlogPages($pagewell);
            // A write that is answered after the changes so far are applied.
            $applied = static fn (): array => $pages->ask('/?s=nothing', 'POST');
            $isKept = static fn (string $path): bool => $pages->isKept($path) || ($applied() && $pages->isKept($path) || $pages->isKept($path));
            self::assertTrue($isKept('/tides/') && $isKept('/ferry/') && $isKept('/'), $pagewell->log());
            $explained = json_decode($blog->command('use Pagewell\WordPress\Purge\ControlClient; $e = ControlClient::explain("http://blog.test/tides/"); echo json_encode([$e->tags, $e->hasReads]);'), true);
            self::assertContains('site', $explained[0]);
            self::assertNotContains('table:tides', $explained[0], 'its statement is known');
            self::assertTrue($explained[1]);
            self::assertNotSame('', $pagewell->ask('GET', '/tides/', '', 'Host: blog.test')[2]);
            self::assertSame([], preg_grep('/^pagewell-/', array_keys($pagewell->ask('GET', '/tides/', '', 'Host: blog.test')[1])), 'fields for Pagewell');
            self::assertStringContainsString('and automatic dependencies', json_decode($blog->command(self::HEALTH), true)['label']);

            // Past WordPress: by the statements alone.
            $blog->rows("UPDATE wp_tides SET high = '06:20' WHERE id = 1");
            $applied();
            self::assertStringContainsString('High: 06:20', $pages->ask('/tides/')[0]);
            $blog->rows("UPDATE wp_options SET option_value = 'rough' WHERE option_name = 'tide_note'");
            $applied();
            self::assertStringContainsString('rough', $pages->ask('/tides/')[0]);
            // Another row of the same table; then a post, past WordPress.
            self::assertTrue($isKept('/tides/'));
            $blog->rows("UPDATE wp_tides SET high = '09:09' WHERE id = 2");
            $applied();
            self::assertTrue($pages->isKept('/tides/'));
            $blog->rows("UPDATE wp_posts SET post_title = 'Tides and time' WHERE post_name = 'tides'");
            $applied();
            self::assertStringContainsString('Tides and time', $pages->ask('/tides/')[0]);
            self::assertTrue($isKept('/tides/'));
            $blog->command('$GLOBALS["wpdb"]->query("UPDATE wp_tides SET high = \'10:10\' WHERE id = 2");');
            $applied();
            self::assertTrue($pages->isKept('/tides/'), 'the tag of the table does not count');
            // By WordPress.
            $blog->command('wp_update_post(["ID" => get_page_by_path("ferry", OBJECT, "post")->ID, "post_title" => "The ferry is here"]);');
            $applied();
            self::assertStringContainsString('The ferry is here', $pages->ask('/ferry/')[0]);
            self::assertStringContainsString('The ferry is here', $pages->ask('/')[0]);
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }
}
