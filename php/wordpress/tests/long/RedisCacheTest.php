<?php

/**
 * The changes of WordPressPagesTest on a site whose object cache is in Valkey or Redis.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealRedis;
use Pagewell\Tests\Support\RealWordPress;

final class RedisCacheTest extends WordPressPagesTest
{
    protected const TOGETHER = 4;

    private static ?RealRedis $redis = null;

    protected static function prepare(RealWordPress $blog): void
    {
        $missing = RealRedis::missing();
        if ($missing !== null) {
            $blog->stop();
            self::markTestSkipped($missing);
        }
        self::$redis = new RealRedis();
        $blog->cacheOutside(self::$redis);
        self::assertSame('1', $blog->command('wp_cache_set("seen", 1); wp_cache_set("never", false); wp_cache_set("gone", 1); wp_cache_delete("gone"); echo (int) wp_using_ext_object_cache();'));
        // Another process sees what was stored: also `false`, which is not the same as nothing.
        self::assertSame('[1,false,true,false,false]', $blog->command('$seen = wp_cache_get("seen"); $never = wp_cache_get("never", "", false, $found); $gone = wp_cache_get("gone", "", false, $left); echo json_encode([$seen, $never, $found, $gone, $left]);'));
    }

    public static function tearDownAfterClass(): void
    {
        parent::tearDownAfterClass();
        self::$redis = null;
    }

    public function testTheSiteKeepsItsObjectsThere(): void
    {
        self::assertGreaterThan(20, self::$redis?->count());
    }
}
