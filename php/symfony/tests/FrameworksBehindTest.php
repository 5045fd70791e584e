<?php

/**
 * Whole applications of Laravel and Symfony in a real php-fpm, behind the real binary: after each write every page is as
 * the application makes it, and pages of other data stay.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Tests\Laravel\LaravelDatabase;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class FrameworksBehindTest extends TestCase
{
    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
    }

    public static function tearDownAfterClass(): void
    {
        [$pagewell, self::$pagewell] = [self::$pagewell, null];
        $pagewell->stop();
    }

    /** @dataProvider applications */
    #[DataProvider('applications')]
    public function testAfterEachWriteAllPagesAreAsTheApplicationMakesThem(callable $isInstalled, string $script, string $page, string $label): void
    {
        $isInstalled() || self::markTestSkipped("for $script");
        $ask = static fn (int $id, string $method = 'GET', string $query = ''): array => self::$pagewell->ask($method, "/$script/$page/$id$query");
        for ($round = 1; $round <= 6; $round++) {
            array_map($ask, [4, 5]);
            self::assertTrue(self::$pagewell->hits("/$script/$page/4") && self::$pagewell->hits("/$script/$page/5"), "before write $round");
            self::assertSame(200, $ask(4, 'POST', "?title=title-$round")[0]);
            [$status, $fields, $content] = $ask(4);
            self::assertSame([200, "$label: title-$round"], [$status, trim($content)]);
            self::assertStringContainsString('stored', $fields['cache-status'][0]);
            self::assertTrue(self::$pagewell->hits("/$script/$page/5"), 'other data');
            self::assertSame("$label: title-$round", trim($ask(4)[2]));
        }
    }

    /** @return iterable<string, array{callable, string, string, string}> */
    public static function applications(): iterable
    {
        yield 'Laravel' => [LaravelDatabase::isInstalled(...), 'laravel-app.php', 'news', 'News'];
        yield 'Symfony' => [SymfonyBundles::load(...), 'symfony-app.php', 'row', 'Row'];
    }
}
