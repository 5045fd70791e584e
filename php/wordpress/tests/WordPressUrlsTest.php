<?php

/**
 * Which forms of URLs contain terms of a post, so that another term changes the URL. Without WordPress.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressUrlsTest extends TestCase
{
    private const PLUGIN = __DIR__ . '/../pagewell/src';

    /** @dataProvider forms */
    #[DataProvider('forms')]
    public function testTermsInTheUrl(bool $hasTerms, string $type, string $ofPosts, string $ofType = ''): void
    {
        $rewrite = $ofType === '' ? [] : [$type => ['struct' => $ofType]];
        $script = 'require ' . var_export(self::PLUGIN . '/Write/PostLinks.php', true) . '; function get_option($name) { return ' . var_export($ofPosts, true) . '; }'
            . ' $wp_rewrite = (object) ["extra_permastructs" => ' . var_export($rewrite, true) . ']; $wp_filter = [];'
            . ' echo json_encode(Pagewell\WordPress\Write\PostLinks::hasTermsInUrl(' . var_export($type, true) . '));';
        self::assertSame([0, json_encode($hasTerms)], array_slice(RealPagewell::command($script, []), 0, 2));
    }

    /** @return iterable<string, array{0: bool, 1: string, 2: string, 3?: string}> */
    public static function forms(): iterable
    {
        yield 'numbers' => [false, 'post', ''];
        yield 'a date and a name' => [false, 'post', '/%year%/%monthnum%/%day%/%hour%%minute%%second%-%post_id%-%postname%/'];
        yield 'an author' => [false, 'post', '/%author%/%postname%/'];
        yield 'a category' => [true, 'post', '/%category%/%postname%/'];
        yield 'a taxonomy with a hyphen' => [true, 'post', '/%port-of-call%/%postname%/'];
        yield 'a page' => [false, 'page', '/%category%/%postname%/'];
        yield 'a type of a plugin' => [false, 'boat', '/%postname%/', '/boats/%boat%'];
        yield 'a type with a hyphen' => [false, 'sea-boat', '/%postname%/', '/boats/%sea-boat%'];
        yield 'a type with an author' => [false, 'boat', '/%postname%/', '/%author%/%boat%'];
        yield 'a type with a term' => [true, 'boat', '/%postname%/', '/%port-of-call%/%boat%'];
        yield 'a type beside posts with a term' => [true, 'boat', '/%port-of-call%/%postname%/', '/boats/%boat%'];
    }
}
