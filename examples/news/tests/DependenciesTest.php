<?php

/**
 * The dependencies of each page: the dependency list of the site, compared with its controllers.
 *
 * A route that is in neither list fails the test, so that nobody adds a page without
 * deciding whether it may be kept.
 */

declare(strict_types=1);

namespace News\Tests;

use News\Libraries\Database;
use News\Request;
use Pagewell\Dependencies\DependencyList;
use Pagewell\Dependencies\Finder;
use Pagewell\Dependencies\Reader;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\usesOf;

final class DependenciesTest extends TestCase
{
    /** Page → the fields that offer it for storing, without the one for browsers. */
    private const DECLARED = [
        '/' => ['"news"', 86_400],
        '/page/2/' => ['"news"', 86_400],
        '/rss.xml' => ['"news"', 86_400],
        '/search/ferry/' => ['"news"', 86_400],
        '/news/4/' => ['"news:4", "news:*"', 86_400],
        '/letters/' => ['"comments", "news"', 86_400],
    ];

    private const UNDECLARED = ['/random/', '/office/', '/office/new/', '/office/news/4/'];

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testEveryPageIsInOneList(): void
    {
        $paths = [...array_keys(self::DECLARED), ...self::UNDECLARED];
        foreach (self::routes() as [$method, $pattern]) {
            $known = array_filter($paths, static fn (string $path): bool => preg_match("~^$pattern$~D", $path) === 1);
            self::assertTrue($method !== 'GET' || $known !== [], "GET $pattern is in neither list");
        }
    }

    /** @dataProvider declared */
    #[DataProvider('declared')]
    public function testAPageThatDeclares(string $path, string $groups, int $seconds): void
    {
        $channel = RecordingChannel::install();
        [$controller, $request] = self::controller($path);
        usesOf($controller, $request->parameters());
        $channel->send();
        self::assertSame(["Cache-Groups: $groups", "Pagewell-Cache-Control: max-age=$seconds", 'Cache-Control: no-cache'], $channel->lines());
    }

    /** @return iterable<string, array{string, string, int}> */
    public static function declared(): iterable
    {
        foreach (self::DECLARED as $path => [$groups, $seconds]) {
            yield $path => [$path, $groups, $seconds];
        }
    }

    /** @dataProvider undeclared */
    #[DataProvider('undeclared')]
    public function testAPageThatDoesNot(string $path): void
    {
        $channel = RecordingChannel::install();
        [$controller, $request] = self::controller($path);
        usesOf($controller, $request->parameters());
        $channel->send();
        self::assertSame(['Pagewell-Cache-Control: no-store', 'X-Pagewell-Refusal: not-cached'], $channel->lines());
        self::assertNotNull(Reader::of($controller::class)->notCached, 'it is a decision');
    }

    public function testNoControllerIsUndeclared(): void
    {
        $list = Finder::inRoutes(require __DIR__ . '/../pages.php');
        self::assertSame([], $list->undeclared());
        self::assertSame(['comments', 'news'], array_keys($list->kinds()));
        $directory = Finder::inDirectory(__DIR__ . '/../src/Controllers');
        self::assertSame([], $directory->undeclared());
    }

    public function testACompiledListSaysTheSame(): void
    {
        $file = tempnam(sys_get_temp_dir(), 'pagewell');
        file_put_contents($file, Finder::inRoutes(require __DIR__ . '/../pages.php')->compile());
        try {
            DependencyList::useCompiled($file);
            foreach (self::DECLARED as $path => [$groups, $seconds]) {
                $this->testAPageThatDeclares($path, $groups, $seconds);
            }
        } finally {
            DependencyList::useCompiled(null);
            unlink($file);
        }
    }

    /** @return iterable<string, array{string}> */
    public static function undeclared(): iterable
    {
        foreach (self::UNDECLARED as $path) {
            yield $path => [$path];
        }
    }

    /** @return array{object, Request} */
    private static function controller(string $path): array
    {
        foreach (self::routes() as [$method, $pattern, $make]) {
            if ($method === 'GET' && preg_match("~^$pattern$~D", $path, $parts) === 1) {
                return [$make(new Database('mysql:unix_socket=/nowhere')), (new Request('GET', $path))->matched($parts)];
            }
        }
        self::fail("nothing answers GET $path");
    }

    /** @return list<array{string, string, callable}> */
    private static function routes(): array
    {
        return require __DIR__ . '/../src/routes.php';
    }
}
