<?php

/**
 * A saved setting purges the pages that have read it, in whichever way, and no others.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressOptionsTest extends TestCase
{
    /** Shortcodes of plugins, by the page that shows one. */
    private const READERS = [
        'asks' => 'get_option("tide_table")',
        'selects' => '$GLOBALS["wpdb"]->get_var("SELECT option_value FROM wp_options WHERE option_name = \'tide_table\' LIMIT 1")',
        'searches' => 'implode($GLOBALS["wpdb"]->get_col("SELECT option_value FROM wp_options WHERE option_name LIKE \'tide%\' ORDER BY option_id"))',
        'loads' => 'wp_load_alloptions()["tide_table"]',
        'early' => '$GLOBALS["early"] === null ? "" : $GLOBALS["early"]()',
        'other' => 'get_option("tide_other")',
        'none' => '"nothing"',
    ];

    public function testASettingPurgesThePagesThatHaveReadIt(): void
    {
        $blog = RealWordPress::settled();
        $code = '$GLOBALS["early"] = null; if (str_contains($_SERVER["REQUEST_URI"] ?? "", "early")) { $value = get_option("tide_table"); $GLOBALS["early"] = fn () => $value; } ';
        foreach (self::READERS as $name => $reads) {
            $code .= "add_shortcode('$name', fn () => 'Shown: ' . ($reads));\n";
        }
        $blog->plugin($code);
        $pagewell = $blog->behind();
        try {
            foreach (array_keys(self::READERS) as $name) {
                $blog->command("wp_insert_post(['post_title' => '$name', 'post_name' => '$name', 'post_content' => '[$name]', 'post_type' => 'page', 'post_status' => 'publish']);");
            }
            $pages = new BlogPages($pagewell);
            $save = static fn (string $option, string $value): string => $blog->command("define('WP_CLI', true); \$_SERVER['argv'] = ['wp', 'option', 'update']; update_option('$option', '$value');");
            $save('tide_table', 'first');
            $save('tide_other', 'first');
            $paths = array_map(static fn (string $name): string => "/$name/", array_keys(self::READERS));
            // WordPress writes with its first pages.
            array_map($pages->ask(...), $paths);
            array_map($pages->ask(...), $paths);
            foreach ($paths as $path) {
                self::assertStringContainsString('hit', $pages->ask($path)[1], $path);
            }
            $save('tide_table', 'second');
            $purged = array_values(array_filter($paths, static fn (string $path): bool => !$pages->isKept($path)));
            self::assertSame(['/asks/', '/selects/', '/searches/', '/loads/', '/early/'], $purged);
            foreach ($purged as $path) {
                self::assertStringContainsString('second', $pages->ask($path)[0], $path);
            }
            array_map($pages->ask(...), $paths);
            // One that no page has read, and one that some have searched or loaded with all others.
            $save('tide_third', 'third');
            self::assertSame(['/searches/', '/loads/'], array_values(array_filter($paths, static fn (string $path): bool => !$pages->isKept($path))));
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }

    /** No option, table or post says that the files are others. */
    public function testAPluginThatEmptiesCachesPurgesAllPages(): void
    {
        $blog = RealWordPress::settled();
        $pagewell = $blog->behind();
        try {
            $pages = new BlogPages($pagewell);
            $pages->ask('/ferry/');
            foreach (['autoptimize_action_cachepurged', 'elementor/core/files/clear_cache', 'fl_builder_cache_cleared', 'w3tc_flush_all', 'litespeed_purge_all', 'cachify_flush_cache'] as $hook) {
                $pages->ask('/ferry/');
                self::assertTrue($pages->isKept('/ferry/'), $hook);
                $blog->command("do_action('$hook');");
                self::assertFalse($pages->isKept('/ferry/'), $hook);
            }
            // As Autoptimize calls it: after the changes of the request have been sent.
            self::assertTrue($pages->isKept('/ferry/'));
            $blog->command('add_action("shutdown", fn () => do_action("autoptimize_action_cachepurged"), 11);');
            self::assertFalse($pages->isKept('/ferry/'), 'at the end of a request');
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }

    public function testADeletedResultPurgesThePagesThatHaveReadIt(): void
    {
        $blog = RealWordPress::settled();
        $blog->plugin('add_shortcode("kept", fn () => "Kept: " . implode(", ", (array) get_transient("tides")));');
        $blog->command('set_transient("tides", ["low", "high"]); wp_insert_post(["post_title" => "kept", "post_name" => "kept", "post_content" => "[kept]", "post_type" => "page", "post_status" => "publish"]);');
        $pagewell = $blog->behind();
        try {
            $pages = new BlogPages($pagewell);
            array_map($pages->ask(...), ['/kept/', '/kept/']);
            self::assertStringContainsString('hit', $pages->ask('/kept/')[1]);
            $blog->command('set_transient("tides", ["low", "high"]);');
            self::assertTrue($pages->isKept('/kept/'));
            $blog->command('delete_transient("tides"); set_transient("tides", ["low"]);');
            self::assertStringNotContainsString('high', $pages->ask('/kept/')[0]);
            $blog->command('delete_transient("tides"); set_transient("tides", ["low"]); delete_transient("tides"); set_transient("tides", ["ebb"]);');
            self::assertStringContainsString('ebb', $pages->ask('/kept/')[0]);
            $blog->command('delete_transient("tides");');
            self::assertFalse($pages->isKept('/kept/'));
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }
}
