<?php

/**
 * A request with a cookie on no list, through the real binary: its page is for its client, and the page for everybody
 * is rendered without the cookie.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\TestCase;

final class UnknownCookieTest extends TestCase
{
    public function testAPageForAnUnknownCookieIsRenderedForAllAsWell(): void
    {
        $pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        try {
            [, $fields, $own] = $pagewell->ask('GET', '/greeting/4', '', 'Cookie: theme=dark');
            self::assertSame(['Hello, dark', ['private, no-cache']], [$own, $fields['cache-control']]);
            self::assertStringNotContainsString('stored', $fields['cache-status'][0]);
            // It joins the render without the cookie, or finds its page.
            [, $fields, $shared] = $pagewell->ask('GET', '/greeting/4');
            self::assertSame(['Hello, all', ['no-cache']], [$shared, $fields['cache-control']]);
            self::assertMatchesRegularExpression('/hit|collapsed/', $fields['cache-status'][0]);
            self::assertSame('Hello, all', $pagewell->ask('GET', '/greeting/4', '', 'Cookie: theme=light')[2]);
        } finally {
            $pagewell->stop();
        }
    }
}
