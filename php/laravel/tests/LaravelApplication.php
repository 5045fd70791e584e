<?php

/**
 * A whole application of Laravel in the process: its HTTP kernel and console, a database, views,
 * sessions, Pagewell's provider. As `laravel new` makes it, shortened.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Contracts\Console\Kernel as ConsoleContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Http\Kernel as HttpContract;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;
use Illuminate\Database\Eloquent\Relations\BelongsToMany;
use Illuminate\Database\Eloquent\Relations\MorphTo;
use Illuminate\Database\Eloquent\Relations\Pivot;
use Illuminate\Database\Eloquent\SoftDeletes;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Bootstrap\BootProviders;
use Illuminate\Foundation\Bootstrap\LoadConfiguration;
use Illuminate\Foundation\Bootstrap\RegisterFacades;
use Illuminate\Foundation\Bootstrap\RegisterProviders;
use Illuminate\Foundation\Exceptions\Handler;
use Illuminate\Foundation\Http\Kernel as HttpKernel;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Route;
use Illuminate\Testing\TestResponse;
use Pagewell\Laravel\InvalidatesPages;
use Pagewell\Laravel\PagewellProvider;

final class LaravelApplication
{
    public readonly Application $app;

    private readonly string $directory;

    /**
     * @param array<string, mixed> $pagewell config/pagewell.php
     * @param string               $database the file of the database, which several processes may share
     */
    public function __construct(array $pagewell = [], string $database = ':memory:')
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-laravel-' . bin2hex(random_bytes(6));
        $configuration = [
            'app' => ['name' => 'News', 'env' => 'testing', 'debug' => true, 'url' => 'http://localhost', 'timezone' => 'UTC', 'locale' => 'en', 'fallback_locale' => 'en', 'cipher' => 'AES-256-CBC', 'key' => str_repeat('k', 32), 'aliases' => [], 'providers' => [
                \Illuminate\Auth\AuthServiceProvider::class, \Illuminate\Cookie\CookieServiceProvider::class, \Illuminate\Database\DatabaseServiceProvider::class, \Illuminate\Encryption\EncryptionServiceProvider::class, \Illuminate\Hashing\HashServiceProvider::class,
                \Illuminate\Filesystem\FilesystemServiceProvider::class, \Illuminate\Bus\BusServiceProvider::class, \Illuminate\Queue\QueueServiceProvider::class, \Illuminate\Session\SessionServiceProvider::class, \Illuminate\View\ViewServiceProvider::class, PagewellProvider::class,
            ]],
            'database' => ['default' => 'sqlite', 'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => $database]]],
            'queue' => ['default' => 'sync', 'connections' => ['sync' => ['driver' => 'sync'], 'database' => ['driver' => 'database', 'table' => 'jobs', 'queue' => 'default', 'retry_after' => 90]], 'failed' => ['driver' => 'null']],
            'session' => ['driver' => 'array', 'cookie' => 'laravel_session', 'lifetime' => 120, 'path' => '/', 'domain' => null, 'secure' => false, 'http_only' => true, 'same_site' => 'lax', 'expire_on_close' => false, 'lottery' => [0, 100]],
            'auth' => ['defaults' => ['guard' => 'web'], 'guards' => ['web' => ['driver' => 'session', 'provider' => 'users']], 'providers' => ['users' => ['driver' => 'database', 'table' => 'users']]],
            'view' => ['paths' => ["$this->directory/views"], 'compiled' => "$this->directory/compiled"],
            'pagewell' => $pagewell,
        ];
        foreach (['', '/config', '/views', '/compiled', '/bootstrap', '/bootstrap/cache'] as $part) {
            mkdir($this->directory . $part, 0700);
        }
        foreach ($configuration as $name => $values) {
            file_put_contents("$this->directory/config/$name.php", '<?php return ' . var_export($values, true) . ';');
        }
        file_put_contents("$this->directory/views/news.blade.php", '@error("title") wrong @enderror News: {{ $news->title }} @auth member @endauth');
        $this->app = new Application($this->directory);
        // Debian's package of Laravel 13 does not find the framework's own configuration.
        method_exists($this->app, 'dontMergeFrameworkConfiguration') && $this->app->dontMergeFrameworkConfiguration();
        $this->app->singleton(HttpContract::class, LaravelHttpKernel::class);
        $this->app->singleton(ConsoleContract::class, \Illuminate\Foundation\Console\Kernel::class);
        $this->app->singleton(ExceptionHandler::class, Handler::class);
        $this->app->make(HttpContract::class)->bootstrap();
        $this->createTables();
        $this->addRoutes();
    }

    public function get(string $path): TestResponse
    {
        return $this->send(Request::create($path));
    }

    public function post(string $path): TestResponse
    {
        return $this->send(Request::create($path, 'POST'));
    }

    /** Ends it, with its directory. */
    public function stop(): void
    {
        $this->app->flush();
        \Illuminate\Support\Facades\Facade::clearResolvedInstances();
        \Illuminate\Console\Application::forgetBootstrappers();
        Model::unsetEventDispatcher();
        Model::clearBootedModels();
        $left = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($this->directory, \FilesystemIterator::SKIP_DOTS), \RecursiveIteratorIterator::CHILD_FIRST);
        foreach ($left as $file) {
            $file->isDir() ? rmdir((string) $file) : unlink((string) $file);
        }
        rmdir($this->directory);
    }

    private function send(Request $request): TestResponse
    {
        $response = ($kernel = $this->app->make(HttpContract::class))->handle($request);
        $kernel->terminate($request, $response);
        return TestResponse::fromBaseResponse($response);
    }

    private function createTables(): void
    {
        $tables = ['news (id INTEGER PRIMARY KEY, title TEXT, views INTEGER DEFAULT 0, deleted_at TEXT)', 'comments (id INTEGER PRIMARY KEY, news_id INTEGER, owner_type TEXT, owner_id INTEGER, text TEXT, created_at TEXT, updated_at TEXT)',
            'tags (id INTEGER PRIMARY KEY, name TEXT)', 'news_tag (news_id INTEGER, tag_id INTEGER)', 'users (id INTEGER PRIMARY KEY, name TEXT)',
            'jobs (id INTEGER PRIMARY KEY, queue TEXT, payload TEXT, attempts INTEGER, reserved_at INTEGER, available_at INTEGER, created_at INTEGER)'];
        foreach ($tables as $table) {
            $this->app->make('db')->statement("CREATE TABLE IF NOT EXISTS $table");
        }
        $this->app->make('db')->insert("INSERT OR IGNORE INTO news (id, title) VALUES (4, 'four'), (5, 'five')");
    }

    private function addRoutes(): void
    {
        Route::middleware('cached')->get('/news/{article}', static function (Article $article) {
            \Pagewell\uses('news', $article->getKey());
            return view('news', ['news' => $article]);
        });
        Route::middleware('cached')->get('/front', static function () {
            Tag::query()->get();
            \Pagewell\uses('news');
            return 'front';
        });
        Route::middleware('cached')->get('/undeclared', static fn (): string => Tag::query()->get()->toJson());
        Route::middleware('web')->get('/member/{article}', static function (Article $article) {
            \Pagewell\uses('news', $article->getKey());
            return 'News: ' . $article->title;
        });
        Route::middleware('cached')->post('/news/{article}', static function (Request $request, Article $article): string {
            $article->update(['title' => $request->query('title', 'changed')]);
            return 'saved';
        });
    }
}

class LaravelHttpKernel extends HttpKernel
{
    protected $bootstrappers = [LoadConfiguration::class, RegisterFacades::class, RegisterProviders::class, BootProviders::class];

    protected $middlewareGroups = ['web' => [
        \Illuminate\Cookie\Middleware\EncryptCookies::class, \Illuminate\Cookie\Middleware\AddQueuedCookiesToResponse::class,
        \Illuminate\Session\Middleware\StartSession::class, \Illuminate\View\Middleware\ShareErrorsFromSession::class, \Illuminate\Routing\Middleware\SubstituteBindings::class,
    ]];
}

class Article extends Model
{
    use InvalidatesPages;
    use SoftDeletes;

    public $timestamps = false;

    protected $table = 'news';

    protected $guarded = [];

    public function pagewellIgnored(): array
    {
        return ['views'];
    }

    public function tags(): BelongsToMany
    {
        return $this->belongsToMany(Tag::class, 'news_tag', 'news_id', 'tag_id')->using(NewsTag::class);
    }
}

class Comment extends Model
{
    use InvalidatesPages;

    protected $guarded = [];

    protected $touches = ['news'];

    public function news(): BelongsTo
    {
        return $this->belongsTo(Article::class);
    }

    public function owner(): MorphTo
    {
        return $this->morphTo();
    }

    public function pagewellParents(): array
    {
        return ['news', 'owner'];
    }
}

class Tag extends Model
{
    use InvalidatesPages;

    public $timestamps = false;

    protected $guarded = [];

    public function pagewellUsesRetrieved(): bool
    {
        return true;
    }
}

class NewsTag extends Pivot
{
    use InvalidatesPages;

    public $timestamps = false;

    public function article(): BelongsTo
    {
        return $this->belongsTo(Article::class, 'news_id');
    }

    public function tag(): BelongsTo
    {
        return $this->belongsTo(Tag::class);
    }

    public function pagewellParents(): array
    {
        return ['article', 'tag'];
    }
}

class LaravelJob implements ShouldQueue
{
    /** @param int $id 0: it writes nothing */
    public function __construct(private readonly int $id = 4, private readonly bool $fails = false)
    {
    }

    public function handle(): void
    {
        Article::query()->find($this->id)?->update(['title' => 'by a job']);
        if ($this->fails) {
            throw new \DomainException('after the write');
        }
    }
}
