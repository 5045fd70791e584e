<?php

/**
 * WordPress and MediaWiki behind another web server, with Pagewell in front of it or without: nginx refuses a
 * header section of more than 4 KB, so a long list of tags would end the page.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealMediaWiki;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class AnotherServerTest extends TestCase
{
    private const VIA = 'Via: 1.1 pagewell';

    /** The size that nginx accepts by default, less a part for other fields. */
    private const HEAD_MAX = 3600;

    public function testAPageOfWordPress(): void
    {
        $blog = RealWordPress::settled();
        try {
            $blog->command('update_option("posts_per_page", 200); for ($n = 0; $n < 150; $n++) { wp_insert_post(["post_title" => "Many $n", "post_status" => "publish", "post_date" => "2025-03-01 12:00:00", "tags_input" => "tag-$n"]); }');
            [, $fields] = $blog->plain('/');
            self::assertSame(['not-in-front'], $fields['x-pagewell-refusal'] ?? []);
            self::assertArrayNotHasKey('surrogate-key', $fields);
            [$content, $fields, $bytes] = $blog->plain('/', self::VIA);
            self::assertStringContainsString('Many 149', $content);
            self::assertSame(['too-many-tags'], $fields['x-pagewell-refusal'] ?? [], 'the terms of the posts are too many');
            self::assertLessThan(self::HEAD_MAX, $bytes);
            [, $fields, $bytes] = $blog->plain('/2025/03/01/feed/', self::VIA);
            self::assertLessThan(self::HEAD_MAX, $bytes);
            [, $fields, $bytes] = $blog->plain('/wp-json/wp/v2/posts?per_page=100&orderby=id', self::VIA);
            self::assertLessThan(self::HEAD_MAX, $bytes);
            self::assertStringContainsString('every:post', implode(' ', $fields['surrogate-key']), 'they are named as a whole');
            self::assertStringNotContainsString('text:', implode(' ', $fields['surrogate-key']));
            [, $told] = $blog->post('do_action("pagewell_changed", ...array_map(fn ($n) => "post:$n", range(1, 500)));', fromItself: false);
            self::assertSame('"site"', $told);
        } finally {
            $blog->stop();
        }
    }

    public function testAPageOfMediaWiki(): void
    {
        $wiki = RealMediaWiki::start();
        try {
            $wiki->edit('Ferry', implode(' ', array_map(static fn (int $n): string => "[[A page with a long name number $n]]", range(1, 150))));
            [, $fields] = $wiki->plain('/index.php/Ferry');
            self::assertSame(['not-in-front'], $fields['x-pagewell-refusal'] ?? []);
            self::assertArrayNotHasKey('surrogate-key', $fields);
            [$content, $fields, $bytes] = $wiki->plain('/index.php/Ferry', self::VIA);
            self::assertStringContainsString('number 150', $content);
            self::assertLessThan(self::HEAD_MAX, $bytes);
            self::assertMatchesRegularExpression('/(^| )link( |$)/', implode(' ', $fields['surrogate-key']), 'all links, as a whole');
        } finally {
            $wiki->stop();
        }
    }
}
