<?php

/**
 * The path by which a request came, as its variables say.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Core;

use Pagewell\Core\Front;
use PHPUnit\Framework\TestCase;

final class FrontTest extends TestCase
{
    /** @var array<string, mixed> */
    private array $server = [];

    protected function setUp(): void
    {
        $this->server = $_SERVER;
    }

    protected function tearDown(): void
    {
        $_SERVER = $this->server;
    }

    public function testARequestForAComparisonIsKnownBehindPagewellOnly(): void
    {
        self::assertFalse(Front::isReference());
        $_SERVER['SERVER_SOFTWARE'] = 'pagewell/0.1.0';
        self::assertFalse(Front::isReference());
        $_SERVER['HTTP_PAGEWELL_REFERENCE'] = '1';
        self::assertTrue(Front::isReference());
        $_SERVER['SERVER_SOFTWARE'] = 'nginx/1.22';
        self::assertFalse(Front::isReference());
        $_SERVER['HTTP_VIA'] = '1.1 pagewell';
        self::assertTrue(Front::isReference());
    }
}
