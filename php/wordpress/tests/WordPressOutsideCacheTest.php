<?php

/**
 * The same with an object cache outside of the process: what a write leaves there is what pages are made from.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealMemcached;
use Pagewell\Tests\Support\RealWordPress;

final class WordPressOutsideCacheTest extends WordPressPagesTest
{
    protected const TOGETHER = 4;

    private static ?RealMemcached $memcached = null;

    protected static function prepare(RealWordPress $blog): void
    {
        $missing = RealMemcached::missing();
        if ($missing !== null) {
            $blog->stop();
            self::markTestSkipped($missing);
        }
        self::$memcached = new RealMemcached();
        $blog->cacheOutside(self::$memcached);
        self::assertSame('1', $blog->command('wp_cache_set("seen", 1); echo (int) wp_using_ext_object_cache();'));
        self::assertSame('1', $blog->command('echo wp_cache_get("seen");'), 'another process sees it');
    }

    public static function tearDownAfterClass(): void
    {
        parent::tearDownAfterClass();
        self::$memcached = null;
    }
}
