<?php

/**
 * The attributes of controllers in a whole application of Laravel: they are applied before the controller runs.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Contracts\Support\Renderable;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Route;
use Pagewell\Attribute\NotCached;
use Pagewell\Attribute\Uses;
use Pagewell\Configuration;
use Pagewell\Core\Exception\UnknownParameter;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\uses;

final class LaravelControllersTest extends TestCase
{
    private LaravelApplication $site;

    protected function setUp(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
        require_once __DIR__ . '/LaravelApplication.php';
        $this->site = new LaravelApplication();
        Configuration::set(new RecordingClient());
        RequestScope::begin();
        Route::middleware('cached')->group(static function (): void {
            Route::post('/articles', [LaravelArticles::class, 'store']);
            Route::get('/articles/{article}', [LaravelArticles::class, 'show']);
            Route::get('/by-title/{article:title}', [LaravelArticles::class, 'show']);
            Route::get('/mistyped', [LaravelArticles::class, 'mistyped']);
            Route::get('/stopped/{article}', [LaravelArticles::class, 'show'])->middleware(LaravelStop::class);
            Route::get('/within/{how}/{path}', [LaravelWithin::class, 'page'])->where('path', '.*');
            Route::get('/undeclared/{how}/{path}', [LaravelWithin::class, 'undeclared'])->where('path', '.*');
            Route::get('/view/{how}/{path}', [LaravelWithin::class, 'view'])->where('path', '.*');
            Route::get('/closure/{how}/{path}', static fn (string $how, string $path): string => 'page, ' . LaravelWithin::ask($how, $path))->where('path', '.*');
            Route::get('/visitor', [LaravelWithin::class, 'visitor']);
        });
        Route::middleware('web')->get('/basket', static fn (): string => 'two pears');
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        isset($this->site) && $this->site->stop();
        Configuration::reset();
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    public function testAWriteDoesNotFailForTheAttributesOfItsClass(): void
    {
        $response = $this->site->post('/articles');
        self::assertSame([200, 'stored'], [$response->getStatusCode(), $response->getContent()]);
        self::assertSame('"news", "news:6"', $response->headers->get('Cache-Group-Invalidation'));
    }

    public function testAMistypedAttributeFailsBeforeItsControllerRuns(): void
    {
        $response = $this->site->get('/mistyped');
        self::assertSame(500, $response->getStatusCode());
        self::assertInstanceOf(UnknownParameter::class, $response->exception);
        self::assertSame(2, Article::query()->count());
    }

    public function testAModelCountsAsItsKeyWhateverTheAddressHas(): void
    {
        foreach (['/articles/4', '/by-title/four'] as $path) {
            self::assertSame('"news:4", "news:*"', $this->site->get($path)->headers->get('Cache-Groups'), $path);
        }
        self::assertFalse($this->site->get('/by-title/ten')->headers->has('Cache-Groups'), 'a missing article, whose key is unknown');
    }

    public function testAMiddlewareThatAnswersDeclaresNothing(): void
    {
        $response = $this->site->get('/stopped/4');
        self::assertSame(['not here', false], [$response->getContent(), $response->headers->has('Cache-Groups')]);
    }

    /** @dataProvider parts */
    #[DataProvider('parts')]
    public function testARequestWithinARequestBelongsToItsPage(string $path, string $content, ?string $groups, ?string $control): void
    {
        $response = $this->site->get($path);
        self::assertSame([$content, $groups, $control], [$response->getContent(), $response->headers->get('Cache-Groups'), $response->headers->get('Pagewell-Cache-Control')]);
    }

    /** @return iterable<string, array{string, string, ?string, ?string}> */
    public static function parts(): iterable
    {
        foreach (['route', 'kernel'] as $how) {
            yield "#[Uses], by the $how" => ["/within/$how/articles/4", 'page, four', '"front", "news:4", "news:*", "after"', 'max-age=86400'];
            yield "#[NotCached], by the $how" => ["/within/$how/visitor", 'page, for 192.0.2.7', null, 'no-store'];
            yield "the page declares nothing, by the $how" => ["/undeclared/$how/articles/4", 'page, four', null, 'no-store'];
            yield "it is a view, which is rendered later, by the $how" => ["/view/$how/articles/4", 'page, four', null, 'no-store'];
            yield "it is of a closure, by the $how" => ["/closure/$how/articles/4", 'page, four', null, 'no-store'];
            yield "with a session of its own, by the $how" => ["/within/$how/basket", 'page, two pears', null, 'no-store'];
        }
    }

    public function testAPageWithoutAPartThatFailedIsNotCached(): void
    {
        $response = $this->site->get('/within/kernel/mistyped');
        self::assertSame([200, 'no-store'], [$response->getStatusCode(), $response->headers->get('Pagewell-Cache-Control')]);
    }
}

#[Uses('news:{article}')]
final class LaravelArticles
{
    public function store(): string
    {
        Article::query()->create(['title' => 'six']);
        return 'stored';
    }

    public function show(Article $article): string
    {
        return $article->title;
    }

    public function mistyped(): string
    {
        return $this->store();
    }
}

final class LaravelWithin
{
    #[Uses('front')]
    public function page(string $how, string $path): string
    {
        $page = 'page, ' . self::ask($how, $path);
        uses('after');
        return $page;
    }

    public function undeclared(string $how, string $path): string
    {
        return 'page, ' . self::ask($how, $path);
    }

    public function view(string $how, string $path): Renderable
    {
        return new class ($how, $path) implements Renderable {
            public function __construct(private readonly string $how, private readonly string $path)
            {
            }

            public function render(): string
            {
                return 'page, ' . LaravelWithin::ask($this->how, $this->path);
            }
        };
    }

    #[NotCached('by IP address')]
    public function visitor(): string
    {
        return 'for 192.0.2.7';
    }

    public static function ask(string $how, string $path): string
    {
        $request = Request::create("/$path");
        return (string) ($how === 'kernel' ? app(Kernel::class)->handle($request) : Route::dispatch($request))->getContent();
    }
}

final class LaravelStop
{
    public function handle(): \Illuminate\Http\Response
    {
        return new \Illuminate\Http\Response('not here');
    }
}
