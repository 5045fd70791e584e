<?php

/**
 * Rows among the arguments of a controller, in Symfony's own HttpKernel: `{name}` of an attribute is the id of such a
 * row before it is a part of the URL. DoctrineEntitiesTest has them from Doctrine.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Attribute\Uses;
use Pagewell\RequestScope;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ArgumentResolver;
use Symfony\Component\HttpKernel\Controller\ArgumentResolverInterface;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;

final class SymfonyRowsTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once 'Symfony/Component/DependencyInjection/autoload.php';
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    /**
     * @dataProvider rows
     *
     * @param array<string, mixed> $attributes of the request
     */
    #[DataProvider('rows')]
    public function testARowAmongTheArgumentsOfAController(string $method, array $attributes, ?object $row, string $groups): void
    {
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener(new RecordingClient()));
        $request = Request::create('/');
        $request->attributes->add(['_controller' => [new RowPages(), $method]] + $attributes);
        $response = (new HttpKernel($dispatcher, new ControllerResolver(), null, $this->arguments($row)))->handle($request);
        self::assertSame($groups, $response->headers->get('Cache-Groups'));
    }

    /** @return iterable<string, array{string, array<string, mixed>, object|null, string}> */
    public static function rows(): iterable
    {
        yield 'by another column' => ['row', ['slug' => 'the-ferry'], new RowOfPages(4), '"news:4", "news:*"'];
        yield 'whose column has the name of the argument' => ['row', ['row' => 'the-ferry'], new RowOfPages(4), '"news:4", "news:*"'];
        yield 'that is not found' => ['row', ['row' => '5'], null, '"news:5", "news:*"'];
        yield 'an object without an id' => ['row', ['row' => '2026-03-01'], new \DateTimeImmutable('2026-03-01'), '"news:2026-03-01", "news:*", "news:2026"'];
        yield 'a value of its own' => ['page', [], null, '"news:1", "news:*"'];
    }

    /** Symfony's arguments, and a row for `$row`, as Doctrine's resolver finds one. */
    private function arguments(?object $row): ArgumentResolverInterface
    {
        return new class ($row) implements ArgumentResolverInterface {
            public function __construct(private readonly ?object $row)
            {
            }

            public function getArguments(Request $request, callable $controller, ?\ReflectionFunctionAbstract $reflector = null): array
            {
                $names = array_map(static fn (\ReflectionParameter $one): string => $one->getName(), (new \ReflectionFunction($controller(...)))->getParameters());
                return $names === ['row'] ? [$this->row] : (new ArgumentResolver())->getArguments($request, $controller);
            }
        };
    }
}

/** An entity. */
final class RowOfPages
{
    public function __construct(private readonly int $id)
    {
    }

    public function getId(): int
    {
        return $this->id;
    }
}

/** A controller of the application under test. */
final class RowPages
{
    #[Uses('news:{row}')]
    public function row(?object $row): Response
    {
        return new Response('page');
    }

    #[Uses('news:{page}')]
    public function page(int $page = 1): Response
    {
        return new Response('page');
    }
}
