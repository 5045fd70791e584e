<?php

/**
 * The glue for Symfony and Laravel in a real php-fpm, behind the real binary: pages are kept, and
 * dropped by a write, by whichever way its change takes.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Bridge;

use Pagewell\Core\Invalidation;
use Pagewell\Core\SocketClient;
use Pagewell\Tests\Support\PlainServer;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class RealGlueTest extends TestCase
{
    private static RealPagewell $pagewell;

    public static function setUpBeforeClass(): void
    {
        self::$pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell->stop();
    }

    /** @dataProvider frameworks */
    #[DataProvider('frameworks')]
    public function testAPageIsKeptUntilItsDataChanges(string $script, string $autoload): void
    {
        if (stream_resolve_include_path($autoload) === false) {
            self::markTestSkipped("$autoload is not installed");
        }
        [$status, $fields, $first] = self::$pagewell->ask('GET', "/$script/news/4");
        self::assertSame([200, 16], [$status, strlen($first)]);
        self::assertArrayNotHasKey('pagewell-cache-control', $fields);
        self::assertSame($first, self::$pagewell->ask('GET', "/$script/news/4")[2]);
        self::$pagewell->ask('GET', "/$script/news/5");
        foreach (['POST', 'GET'] as $method) {
            // At another address than the page's own, which a POST would drop in any case (RFC 9111 section 4.4).
            $before = self::number();
            self::assertSame(200, self::$pagewell->ask($method, "/$script/news/4?write")[0]);
            // One change and the one that asks: the change is not sent once more after PHP's answer. The answer
            // to a GET that is not stored has a number of its own.
            self::assertSame($before + ($method === 'GET' ? 3 : 2), self::number());
            $next = self::$pagewell->ask('GET', "/$script/news/4")[2];
            self::assertNotSame($first, $next, $method);
            self::assertSame($next, self::$pagewell->ask('GET', "/$script/news/4")[2]);
            self::assertTrue(self::$pagewell->hits("/$script/news/5"));
            $first = $next;
        }
    }

    /** @dataProvider frameworks */
    #[DataProvider('frameworks')]
    public function testLongListsGoOnlyToPagewell(string $script, string $autoload): void
    {
        if (stream_resolve_include_path($autoload) === false) {
            self::markTestSkipped("$autoload is not installed");
        }
        $ask = static fn (string ...$lines): array => PlainServer::ask(__DIR__ . '/../../tests/behind', [], 'GET', "/$script/news/4?many", ...$lines);
        [$content, $fields] = $ask();
        self::assertSame(16, strlen($content));
        self::assertSame(['not-in-front'], $fields['x-pagewell-refusal'] ?? []);
        self::assertArrayNotHasKey('cache-groups', $fields);
        self::assertStringContainsString('"news:500"', implode($ask('Via: 1.1 pagewell')[1]['cache-groups']));
    }

    /** The number of a change that is made now, and drops nothing. */
    private static function number(): int
    {
        return (new SocketClient(self::$pagewell->admin(), timeoutSeconds: 60))->invalidate(new Invalidation(['nothing']))->number;
    }

    /** @return iterable<string, array{string, string}> */
    public static function frameworks(): iterable
    {
        yield 'Symfony' => ['symfony.php', 'Symfony/Component/HttpKernel/autoload.php'];
        yield 'Laravel' => ['laravel.php', 'Illuminate/autoload.php'];
    }
}
