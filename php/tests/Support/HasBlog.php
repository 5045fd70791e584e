<?php

/**
 * One RealWordPress for all tests of a class. Each test begins with nothing left to be sent.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

trait HasBlog
{
    private static ?RealWordPress $blog = null;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
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
}
