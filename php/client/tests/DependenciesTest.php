<?php

/**
 * The declarations of controllers, the list that is generated from them, and the command that
 * prints it.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Core\Exception\UnknownParameter;
use Pagewell\Dependencies\Command;
use Pagewell\Dependencies\DependencyList;
use Pagewell\Dependencies\Finder;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Tests\Controllers\Catalogue;
use Pagewell\Tests\Controllers\Invoked;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\usesOf;

final class DependenciesTest extends TestCase
{
    private const DECLARED = __DIR__ . '/controllers/declared';

    public static function setUpBeforeClass(): void
    {
        require_once self::DECLARED . '/Catalogue.php';
        require_once self::DECLARED . '/Invoked.php';
    }

    protected function tearDown(): void
    {
        DependencyList::useCompiled(null);
        RequestScope::begin();
    }

    /** @return iterable<string, array{string, array<string, mixed>, list<string>, string|null}> controller, parameters, tags, refusal */
    public static function statements(): iterable
    {
        $row = new class () {
            public function getId(): int
            {
                return 7;
            }
        };
        yield 'a kind, and that of the class' => [Catalogue::class . '::all', [], ['shop', 'products'], null];
        yield 'an id' => [Catalogue::class . '::one', ['id' => 4], ['shop', 'products:4', 'products:*'], null];
        yield 'a row that was fetched already' => [Catalogue::class . '::one', ['id' => $row], ['shop', 'products:7', 'products:*'], null];
        yield 'what is not cached declares nothing, nor does its class for it' => [Catalogue::class . '::basket', [], [], 'not-cached'];
        yield 'a method that says nothing has the words of its class' => [Catalogue::class . '::notAnAction', [], ['shop'], null];
        yield 'the interface' => [Invoked::class, ['name' => 'Ada:1', 'lang' => 'en'], ['products', 'authors:Ada:1-en', 'authors:*'], null];
        yield 'nobody' => ['No\Such\Thing::show', [], [], 'nothing-declared'];
    }

    /**
     * @dataProvider statements
     *
     * @param array<string, mixed> $parameters
     * @param list<string>         $tags
     */
    #[DataProvider('statements')]
    public function testAStatement(string $controller, array $parameters, array $tags, ?string $refusal): void
    {
        $file = tempnam(sys_get_temp_dir(), 'pagewell');
        file_put_contents($file, Finder::inDirectory(self::DECLARED)->compile());
        foreach ([null, $file] as $compiled) {
            if ($compiled === null || !str_ends_with($controller, 'notAnAction')) {
                DependencyList::useCompiled($compiled);
                RecordingChannel::install();
                usesOf($controller, $parameters);
                self::assertSame($tags, RequestScope::current()->tags());
                self::assertSame($refusal, RequestScope::current()->refusal()?->value);
            }
        }
        unlink($file);
    }

    /** @dataProvider typed */
    #[DataProvider('typed')]
    public function testAnIdThatVisitorsTypeInAnotherWayIsReachedByItsChange(string $typed, array $tags): void
    {
        RecordingChannel::install();
        usesOf(Catalogue::class . '::one', ['id' => $typed]);
        self::assertSame(['shop', ...$tags], RequestScope::current()->tags());
    }

    /** @return iterable<array{string, list<string>}> */
    public static function typed(): iterable
    {
        yield ['4', ['products:4', 'products:*']];
        yield ['tea', ['products:tea', 'products:*']];
        yield ['04', ['products:04', 'products:*', 'products:4']];
        yield ['4-the-ferry', ['products:4-the-ferry', 'products:*', 'products:4']];
        yield [' +4', ['products: +4', 'products:*', 'products:4']];
    }

    /** @dataProvider unknown */
    #[DataProvider('unknown')]
    public function testAParameterThatIsNotThere(array $parameters): void
    {
        RecordingChannel::install();
        try {
            usesOf(Catalogue::class . '::one', $parameters);
            self::fail('a name was filled with nothing');
        } catch (UnknownParameter $fault) {
            self::assertStringContainsString("'products:{id}'", $fault->getMessage());
            self::assertSame([], RequestScope::current()->tags(), 'nothing of it is declared');
        }
    }

    /** @return iterable<array{array<string, mixed>}> */
    public static function unknown(): iterable
    {
        yield from [[[]], [['id' => null]], [['id' => '']], [['id' => ['4']]], [['id' => new \stdClass()]]];
    }

    public function testTheList(): void
    {
        [$code, $out, $err] = $this->command('dependencies', self::DECLARED, '--json');
        self::assertSame([0, ''], [$code, $err]);
        $list = json_decode($out, true, 16, JSON_THROW_ON_ERROR);
        $rows = static fn (array $rows): array => array_map(static fn (array $row): string => "{$row['name']} " . implode(' ', $row['pages']), $rows);
        self::assertSame(['products /shop/', 'products:{id} /shop/{id} /shop/p/{id}', 'products /feed'], $rows($list['data']['products']['read_by']));
        self::assertSame(['products:{id} /shop'], $rows($list['data']['products']['written_by']));
        self::assertSame(60, $list['data']['products']['read_by'][0]['fresh_for']);
        self::assertSame([Catalogue::class . '::basket' => "it is the visitor's own"], $list['not_cached']);
        self::assertSame([], $list['undeclared']);
        $text = $this->command('dependencies', self::DECLARED)[1];
        self::assertMatchesRegularExpression('~^products\n    products +Pagewell.Tests.Controllers.Catalogue::all +/shop/  \(60 s at most\)$~m', $text);
    }

    public function testItFailsWhereAControllerSaysNothing(): void
    {
        [$code, $out, $err] = $this->command('dependencies', __DIR__ . '/controllers/undeclared');
        self::assertSame(1, $code);
        self::assertStringContainsString('undeclared: Pagewell\Tests\Forgotten\Silent, Pagewell\Tests\Forgotten\Half::one', $err);
        self::assertStringContainsString('kept by time alone', $out);
    }

    /** @dataProvider wrongUsages */
    #[DataProvider('wrongUsages')]
    public function testWrongUsage(string ...$arguments): void
    {
        [$code, , $err] = $this->command(...$arguments);
        self::assertSame(2, $code);
        self::assertStringStartsWith('usage: ', $err);
    }

    /** @return iterable<list<string>> */
    public static function wrongUsages(): iterable
    {
        yield from [[], ['list'], ['dependencies', 'a', 'b'], ['dependencies', '--nope'], ['dependencies', '--routes'], ['dependencies', '--json=1']];
    }

    public function testAFaultHasAnExitCodeOfItsOwn(): void
    {
        self::assertSame(3, $this->command('dependencies', '/nowhere/at/all')[0]);
    }

    public function testTheProgramItself(): void
    {
        exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(__DIR__ . '/../bin/pagewell-php') . ' --help', $lines, $code);
        self::assertSame(0, $code);
        self::assertStringStartsWith('usage: pagewell-php dependencies', $lines[0]);
    }

    /** @return array{int, string, string} exit code, what was printed, what went wrong */
    private function command(string ...$arguments): array
    {
        [$out, $err] = [fopen('php://memory', 'w+'), fopen('php://memory', 'w+')];
        $code = Command::run(array_values($arguments), $out, $err);
        rewind($out);
        rewind($err);
        return [$code, (string) stream_get_contents($out), (string) stream_get_contents($err)];
    }
}
