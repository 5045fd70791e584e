<?php

/**
 * The provider of Laravel: what it registers, its configuration, and the guards of the application.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Container\Container;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Laravel\Declaring;
use Pagewell\Laravel\PagewellProvider;
use Pagewell\PageCache;
use Pagewell\RequestScope;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\uses;

final class LaravelProviderTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
    }

    protected function tearDown(): void
    {
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    public function testTheProviderRegistersEverything(): void
    {
        [$application, $events] = $this->application(['models' => [LaravelNews::class => 'news'], 'lifetime' => 600]);
        $provider = new PagewellProvider($application);
        $provider->register();
        $provider->boot();
        self::assertTrue($events->hasListeners(\Illuminate\Database\Events\TransactionCommitted::class));
        self::assertTrue($events->hasListeners('eloquent.saved: ' . LaravelNews::class));
        self::assertTrue($events->hasListeners(\Illuminate\Queue\Events\JobExceptionOccurred::class));
        self::assertNotNull($application->atEnd);
        self::assertInstanceOf(PageCache::class, $application->make(PageCache::class));
        self::assertSame(600, Configuration::lifetimeSeconds());
        self::assertSame(['/app/config/pagewell.php'], array_values(PagewellProvider::pathsToPublish(PagewellProvider::class, 'pagewell-config')));
    }

    /** @dataProvider mistyped */
    #[DataProvider('mistyped')]
    public function testAMistypedSettingIsRefusedAsTheApplicationBoots(string $key, mixed $value, string $message): void
    {
        [$application] = $this->application([$key => $value]);
        $this->expectException(InvalidConfiguration::class);
        $this->expectExceptionMessage($message);
        (new PagewellProvider($application))->boot();
    }

    /** @return iterable<array{string, mixed, string}> */
    public static function mistyped(): iterable
    {
        yield ['changes', 'contol', "PAGEWELL_CHANGES is 'contol': write response or control."];
        yield ['chnages', 'control', "config/pagewell.php has 'chnages': the settings are admin, "];
        yield ['CHANGES', 'control', "config/pagewell.php has 'CHANGES'"];
        yield ['lifetime', 'a day', "PAGEWELL_LIFETIME is 'a day': write seconds"];
        yield ['shared_cookies', ['a', 1], "'shared_cookies' is array"];
        yield ['admin', false, "'admin' is bool"];
        yield ['enabled', 'off', '\'enabled\' (PAGEWELL_ENABLED) is \'off\': write true or false.'];
        yield ['models', [LaravelNews::class], "'models' has '0': write the class and its kind"];
    }

    public function testAPageOfASignedInVisitorIsNeverOffered(): void
    {
        $auth = new class () {
            /** @var array<string, object> */
            protected array $guards = [];

            public function signIn(string $name, ?string $user): void
            {
                $this->guards[$name] = new class ($user) {
                    public function __construct(private readonly ?string $user)
                    {
                    }

                    public function hasUser(): bool
                    {
                        return $this->user !== null;
                    }
                };
            }
        };
        $container = new Container();
        $container->bind('auth', static fn () => $auth, true);
        $page = static function (): Response {
            uses('news', 4);
            return (new Response('Hello Ada'))->setPublic();
        };
        $ask = static fn (): Response => (new Declaring($container))->handle(Request::create('/news/4'), $page);
        $auth->signIn('api', 'Ada');
        self::assertTrue($ask()->headers->has('Cache-Groups'), 'the application has asked no guard');
        $container->make('auth');
        self::assertFalse($ask()->headers->has('Cache-Groups'));
        self::assertSame('no-store', $ask()->headers->get('Pagewell-Cache-Control'));
        $auth->signIn('api', null);
        self::assertTrue($ask()->headers->has('Cache-Groups'));
    }

    /**
     * @param array<string, mixed> $settings
     *
     * @return array{Container, Dispatcher}
     */
    private function application(array $settings): array
    {
        $kernel = $this->createStub(LaravelKernel::class);
        $kernel->method('prependMiddleware')->willReturnCallback(static fn (string $middleware) => self::assertSame(Declaring::class, $middleware));
        $application = new class () extends Container {
            public ?\Closure $atEnd = null;

            public function terminating(\Closure $callback): void
            {
                $this->atEnd = $callback;
            }

            public function runningInConsole(): bool
            {
                return false;
            }

            public function basePath(string $path): string
            {
                return "/app/$path";
            }
        };
        $application->instance(Kernel::class, $kernel);
        $application->instance(\Illuminate\Contracts\Events\Dispatcher::class, $events = new Dispatcher());
        $application->instance('config', new \Illuminate\Config\Repository(['pagewell' => $settings]));
        return [$application, $events];
    }
}
