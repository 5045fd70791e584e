<?php

/**
 * The listener in Symfony's own HttpKernel, with its dispatcher, resolvers and session listener.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Attribute\Uses;
use Pagewell\RequestScope;
use Pagewell\Symfony\FosHttpCache\Tag;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Cookie;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\Session\Session;
use Symfony\Component\HttpFoundation\Session\Storage\MockArraySessionStorage;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\HttpKernel\HttpKernelInterface;

use function Pagewell\changed;
use function Pagewell\fragment;
use function Pagewell\uses;

final class SymfonyTest extends TestCase
{
    private RecordingClient $client;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once 'Symfony/Component/DependencyInjection/autoload.php';
    }

    protected function setUp(): void
    {
        $this->client = new RecordingClient();
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testTheAttributesOfAControllerAreSaid(): void
    {
        $response = $this->ask('GET', [new SymfonyPages(), 'one'], ['id' => 4]);
        self::assertSame('"news:4", "news:*"', $response->headers->get('Cache-Groups'));
        self::assertSame('max-age=86400', $response->headers->get('Pagewell-Cache-Control'));
        self::assertStringContainsString('no-cache', (string) $response->headers->get('Cache-Control'));
    }

    public function testAControllerThatSaysNothingIsLeftAsItIs(): void
    {
        $response = $this->ask('GET', [new SymfonyPages(), 'nothing']);
        self::assertFalse($response->headers->has('Cache-Groups'));
        self::assertSame('no-cache, private', $response->headers->get('Cache-Control'));
    }

    /** @dataProvider kept */
    #[DataProvider('kept')]
    public function testWhatTheApplicationKeepsToOneVisitor(callable $change): void
    {
        $response = $this->ask('GET', static function (Request $request) use ($change): Response {
            uses('news', 4);
            $change($request, $response = new Response('page'));
            return $response;
        });
        self::assertFalse($response->headers->has('Cache-Groups'));
        self::assertStringContainsString('private', (string) $response->headers->get('Cache-Control'));
    }

    /** @return iterable<string, array{callable(Request, Response): mixed}> */
    public static function kept(): iterable
    {
        yield 'private' => [static fn (Request $request, Response $response) => $response->setPrivate()];
        yield 'the words that Symfony makes up, said by the application' => [static fn (Request $request, Response $response) => $response->headers->set('Cache-Control', 'no-cache, private')];
        yield 'a cookie' => [static fn (Request $request, Response $response) => $response->headers->setCookie(Cookie::create('a', 'b'))];
        yield 'a session' => [static fn (Request $request) => $request->getSession()->set('a', 'b')];
        yield 'a session that is saved and closed' => [static function (Request $request): void {
            $request->getSession()->set('a', 'b');
            $request->getSession()->save();
        }];
    }

    /** @testWith ["Cookie", "member=eyJhbGciOi"]
     *           ["Authorization", "Bearer eyJhbGciOi"]
     */
    #[TestWith(['Cookie', 'member=eyJhbGciOi'])]
    #[TestWith(['Authorization', 'Bearer eyJhbGciOi'])]
    public function testAPageMadeForSomebodyIsNotOffered(string $field, string $value): void
    {
        $response = $this->ask('GET', [new SymfonyPages(), 'one'], ['id' => 4], fields: [$field => $value]);
        self::assertFalse($response->headers->has('Cache-Groups'));
        self::assertStringContainsString('private', (string) $response->headers->get('Cache-Control'));
    }

    public function testWhatTheApplicationAllowsBrowsersStays(): void
    {
        $response = $this->ask('GET', static function (): Response {
            uses('news');
            return (new Response('page'))->setPublic()->setMaxAge(30);
        });
        self::assertSame('"news"', $response->headers->get('Cache-Groups'));
        self::assertSame('max-age=30, public', $response->headers->get('Cache-Control'));
    }

    public function testASubRequestBelongsToItsPage(): void
    {
        $kernel = null;
        $response = $this->ask('GET', static function () use (&$kernel): Response {
            uses('news', 4);
            $part = Request::create('/part');
            $part->attributes->set('_controller', static function (): Response {
                uses('comments');
                return new Response('part');
            });
            return new Response($kernel->handle($part, HttpKernelInterface::SUB_REQUEST)->getContent());
        }, kernel: $kernel);
        self::assertSame('"news:4", "news:*", "comments"', $response->headers->get('Cache-Groups'));
    }

    public function testAWrite(): void
    {
        $response = $this->ask('POST', static function (): Response {
            changed('news', 4);
            return new Response('', 303);
        });
        self::assertSame('"news", "news:4"', $response->headers->get('Cache-Group-Invalidation'));
        self::assertSame([], $this->client->calls());
    }

    public function testTheAttributeOfFosHttpCache(): void
    {
        self::assertSame('"news-4"', $this->ask('GET', [new SymfonyPages(), 'tagged'])->headers->get('Cache-Groups'));
        $response = $this->ask('POST', [new SymfonyPages(), 'tagged']);
        self::assertSame(['"news-4"', null], [$response->headers->get('Cache-Group-Invalidation'), $response->headers->get('Cache-Groups')]);
        self::assertFalse($this->ask('POST', [new SymfonyPages(), 'tagged'], ['status' => 422])->headers->has('Cache-Group-Invalidation'));
    }

    public function testAWriteOnAGet(): void
    {
        $this->ask('GET', static function (): Response {
            changed('news', 4);
            return new Response();
        });
        self::assertSame(['news', 'news:4'], $this->client->tags());
    }

    public function testAWriteWhoseResponseNeverCame(): void
    {
        try {
            $this->ask('POST', static function (): Response {
                changed('news', 4);
                throw new \DomainException('after the write');
            });
            self::fail('the exception was swallowed');
        } catch (\DomainException) {
            RequestScope::current()->end();
            self::assertSame(['news', 'news:4'], $this->client->tags());
        }
    }

    public function testAFragmentIsAnElementWhereTheRequestSaysThatItIsUnderstood(): void
    {
        $page = static function (): Response {
            $response = new Response(fragment('/box', static fn (): string => 'in place'));
            $response->headers->set('Surrogate-Control', 'max-age=5');
            return $response;
        };
        $response = $this->ask('GET', $page, fields: ['Surrogate-Capability' => 'pagewell="ESI/1.0"']);
        self::assertSame(['<esi:include src="/box"/>', ['max-age=5, content="ESI/1.0"']], [$response->getContent(), $response->headers->all('surrogate-control')]);
        $response = $this->ask('GET', $page);
        self::assertSame(['in place', ['max-age=5']], [$response->getContent(), $response->headers->all('surrogate-control')]);
    }

    /**
     * @param array<string, mixed>  $attributes
     * @param array<string, string> $fields
     */
    private function ask(string $method, callable $controller, array $attributes = [], ?HttpKernel &$kernel = null, array $fields = []): Response
    {
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener($this->client));
        $kernel = new HttpKernel($dispatcher, new ControllerResolver());
        $request = Request::create('/', $method);
        $request->setSession(new Session(new MockArraySessionStorage()));
        $request->headers->add($fields);
        $request->attributes->add(['_controller' => $controller] + $attributes);
        return $kernel->handle($request);
    }
}

/** A controller of the application under test. */
final class SymfonyPages
{
    #[Uses('news:{id}')]
    public function one(): Response
    {
        return new Response('page');
    }

    public function nothing(): Response
    {
        return new Response('page');
    }

    #[Tag('news-4')]
    public function tagged(Request $request): Response
    {
        return new Response('page', $request->attributes->getInt('status', 200));
    }
}
