<?php

/**
 * Laravel's own router, events, database and Eloquent: the middleware, transactions, models.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Illuminate\Pipeline\Pipeline;
use Illuminate\Queue\Events\JobProcessed;
use Illuminate\Routing\CallableDispatcher;
use Illuminate\Routing\Contracts;
use Illuminate\Routing\ControllerDispatcher;
use Illuminate\Routing\Router;
use Illuminate\Session\ArraySessionHandler;
use Illuminate\Session\Store;
use Pagewell\Configuration;
use Pagewell\Laravel\Declaring;
use Pagewell\Laravel\DeclaringDispatcher;
use Pagewell\Laravel\ModelChanges;
use Pagewell\Laravel\PagewellProvider;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\fragment;
use function Pagewell\uses;

final class LaravelTest extends TestCase
{
    private RecordingClient $client;

    public static function setUpBeforeClass(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
    }

    protected function setUp(): void
    {
        $this->client = new RecordingClient();
        Configuration::set($this->client);
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        Configuration::reset();
        RequestScope::begin();
    }

    public function testTheAttributesOfAControllerAreSaid(): void
    {
        $response = $this->ask('GET', '/news/4');
        self::assertSame('news 4', $response->getContent());
        self::assertSame('"news:4", "news:*"', $response->headers->get('Cache-Groups'));
        self::assertSame('"front"', $this->ask('GET', '/')->headers->get('Cache-Groups'));
    }

    public function testARouteThatSaysNothingIsLeftAsItIs(): void
    {
        $response = $this->ask('GET', '/closure');
        self::assertSame(['closure', false], [$response->getContent(), $response->headers->has('Cache-Groups')]);
        self::assertSame('no-cache, private', $response->headers->get('Cache-Control'));
        self::assertSame('nothing-declared', $response->headers->get('X-Pagewell-Refusal'));
    }

    public function testAFragmentIsAnElementWhereTheRequestSaysThatItIsUnderstood(): void
    {
        $response = $this->ask('GET', '/fragment', ['HTTP_SURROGATE_CAPABILITY' => 'pagewell="ESI/1.0"']);
        self::assertSame(['<esi:include src="/box"/>', 'content="ESI/1.0"'], [$response->getContent(), $response->headers->get('Surrogate-Control')]);
        $response = $this->ask('GET', '/fragment');
        self::assertSame(['in place', null], [$response->getContent(), $response->headers->get('Surrogate-Control')]);
    }

    public function testAWriteIsCarried(): void
    {
        self::assertSame('"news", "news:4"', $this->ask('POST', '/news/4')->headers->get('Cache-Group-Invalidation'));
    }

    public function testTransactionsAsLaravelNestsThem(): void
    {
        [$connection] = LaravelDatabase::open();
        $channel = RecordingChannel::install('POST');
        $connection->transaction(static function () use ($connection): void {
            changed('a');
            try {
                $connection->transaction(static function (): void {
                    changed('b');
                    throw new \DomainException('rolled back');
                });
            } catch (\DomainException) {
                $connection->transaction(static fn () => changed('c'));
            }
        });
        self::assertSame(['Cache-Group-Invalidation: "a", "c", "a:*", "c:*"'], $channel->lines());
        $connection->beginTransaction();
        $connection->beginTransaction();
        changed('d');
        $connection->rollBack(0);
        self::assertSame(0, $connection->transactionLevel());
        changed('e');
        self::assertSame(['Cache-Group-Invalidation: "a", "c", "e", "a:*", "c:*", "e:*"'], $channel->lines());
    }

    /** StartSession has saved and closed it by the time that the outermost middleware sees the response. */
    public function testAPageOfASessionIsNotOffered(): void
    {
        $session = new Store('shopvisit', new ArraySessionHandler(10));
        $request = Request::create('/news/4');
        $request->setLaravelSession($session);
        $session->start();
        $session->put('user', 'Ada');
        $session->save();
        $response = (new Declaring())->handle($request, static function (): Response {
            uses('news', 4);
            return new Response('Hello Ada');
        });
        self::assertFalse($response->headers->has('Cache-Groups'));
        self::assertFalse($response->headers->has('Pagewell-Cache-Control'));
    }

    /** It runs at once, within the transaction in which it was dispatched. */
    public function testAJobOnSyncTellsNothingBeforeTheCommit(): void
    {
        [$connection, $events] = LaravelDatabase::open();
        RequestScope::begin(new RecordingChannel('GET'), $this->client);
        $job = static fn () => $events->dispatch(new JobProcessed('sync', new \stdClass()));
        $connection->transaction(function () use ($job): void {
            changed('a');
            $job();
            self::assertSame([], $this->client->calls());
            changed('b');
            $job();
            self::assertSame([], $this->client->calls());
        });
        $job();
        self::assertSame(['a', 'b', 'a:*', 'b:*'], $this->client->tags());
    }

    public function testAJobWhoseConnectionWasLostHoldsUpNoOther(): void
    {
        [$connection, $events] = LaravelDatabase::open();
        RequestScope::begin(new RecordingChannel(null), $this->client);
        $connection->beginTransaction();
        changed('a');
        $connection->setPdo($connection->getPdo()); // As reconnect() does it.
        $events->dispatch(new JobProcessed('redis', new \stdClass()));
        self::assertSame(['a', 'a:*'], $this->client->tags());
        changed('b');
        $events->dispatch(new JobProcessed('redis', new \stdClass()));
        self::assertContains('b', $this->client->tags());
    }

    public function testModelsThatAreNamedSayWhatHappensToThem(): void
    {
        [, $events] = LaravelDatabase::open();
        PagewellProvider::listenToModel($events, LaravelNews::class, 'news');
        $channel = RecordingChannel::install('POST');
        $news = LaravelNews::query()->create(['title' => 'first']);
        $news->update(['title' => 'second']);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:1"'], $channel->lines());
        $channel = RecordingChannel::install('POST');
        $news->delete();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:1"'], $channel->lines());
    }

    public function testTheKeyOfAModelMayBeAnObject(): void
    {
        $channel = RecordingChannel::install('POST');
        ModelChanges::changed('news', new class () {
            public string $id = '01HX';
        });
        self::assertSame(['Cache-Group-Invalidation: "news", "news:01HX"'], $channel->lines());
    }

    /** @param array<string, string> $server */
    private function ask(string $method, string $path, array $server = []): Response
    {
        $router = new Router(new Dispatcher(), $container = new Container());
        if (class_exists(CallableDispatcher::class)) {
            // From Laravel 9.13 on, the application binds it.
            $container->singleton(Contracts\CallableDispatcher::class, static fn (): CallableDispatcher => new CallableDispatcher($container));
        }
        $container->singleton(Contracts\ControllerDispatcher::class, static fn (): ControllerDispatcher => new ControllerDispatcher($container));
        DeclaringDispatcher::register($container);
        $router->get('/', LaravelFront::class);
        $router->get('/news/{id}', [LaravelPages::class, 'one']);
        $router->post('/news/{id}', [LaravelPages::class, 'save']);
        $router->get('/closure', static fn (): string => 'closure');
        $router->get('/fragment', static fn (): string => fragment('/box', static fn (): string => 'in place'));
        return (new Pipeline($container))->send(Request::create($path, $method, server: $server))->through([Declaring::class])->then(static fn (Request $request) => $router->dispatch($request));
    }
}
