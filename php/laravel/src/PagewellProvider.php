<?php

/**
 * Laravel: registers the middleware, and listens to what the framework does.
 *
 *     event                                         what happens
 *     each request (middleware, the outermost)      lines are added to the response
 *     a route calls its controller                  its attributes are applied (DeclaringDispatcher)
 *     TransactionBeginning, Committed, RolledBack   changes wait for the commit; levels as Laravel counts them
 *     the request has ended, a job, a command       later changes are sent, except those that wait for a
 *                                                   commit: a job on `sync` runs within its caller's transaction
 *     Eloquent: saved, updated, deleted, restored   changed(kind, key), of the models in config('pagewell.models')
 *     a statement that increments (Increments)      the same, or changed(kind) where it is not one row
 *     events of models with the trait               InvalidatesPages
 *     a connection is made, in a captured request   its statements are reported (StatementReports)
 *
 * It also adds the middleware group `cached` for pages without a session, and the commands
 * pagewell:invalidate and pagewell:explain.
 *
 * Laravel discovers it (composer.json). `config/pagewell.php` is optional: `php artisan
 * vendor:publish --tag=pagewell-config`.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Console\Events\CommandFinished;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Database\Connection;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Events\TransactionBeginning;
use Illuminate\Database\Events\TransactionCommitted;
use Illuminate\Database\Events\TransactionRolledBack;
use Illuminate\Queue\Events\JobExceptionOccurred;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Events\JobProcessed;
use Illuminate\Routing\Events\RouteMatched;
use Illuminate\Routing\Middleware\SubstituteBindings;
use Illuminate\Routing\Router;
use Illuminate\Support\ServiceProvider;
use Pagewell\Bridge\Console\ExplainCommand;
use Pagewell\Bridge\Console\InvalidateCommand;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Transaction;
use Pagewell\NoPagewell;
use Pagewell\OutboxDelivery;
use Pagewell\PageCache;
use Pagewell\RequestPageCache;
use Pagewell\RequestScope;

/** Registers Pagewell with an application. */
final class PagewellProvider extends ServiceProvider
{
    /** The middleware group for pages that are the same for everybody. */
    public const GROUP = 'cached';

    /** The configuration with its defaults. */
    private const FILE = __DIR__ . '/../config/pagewell.php';

    /** Events after which the process may continue for long. */
    private const ENDS = [
        JobProcessed::class,
        JobFailed::class,
        JobExceptionOccurred::class,
        CommandFinished::class,
        'Laravel\Octane\Events\RequestTerminated',
    ];

    /** @var array<string, string> kinds of the models in config/pagewell.php, by class */
    private static array $kinds = [];

    /** @var array<string, \WeakReference<Connection>> connections that have begun a transaction, by name */
    private static array $begun = [];

    /** The file of the package has the values of .env, also after `config:cache`. */
    public function register(): void
    {
        $this->mergeConfigFrom(self::FILE, 'pagewell');
        $this->app->singleton(PageCache::class, RequestPageCache::class);
        StatementReports::register($this->app);
        DeclaringDispatcher::register($this->app);
    }

    /** Wrong settings are refused here, before anything is written. */
    public function boot(): void
    {
        /** @var array<string, mixed> $settings */
        $settings = (array) $this->app->make('config')->get('pagewell', []);
        $models = (array) ($settings['models'] ?? []);
        $isEnabled = $settings['enabled'] ?? true;
        if (!is_bool($isEnabled)) {
            throw new InvalidConfiguration("config/pagewell.php: 'enabled' (PAGEWELL_ENABLED) is " . var_export($isEnabled, true) . ': write true or false.');
        }
        Configuration::ofFramework('config/pagewell.php', array_diff_key($settings, ['models' => null, 'enabled' => null]));
        $isEnabled || Configuration::set(new NoPagewell());
        foreach ($models as $model => $kind) {
            if (!is_string($model) || !is_string($kind) || !class_exists($model)) {
                throw new InvalidConfiguration("config/pagewell.php: 'models' has '$model': write the class and its kind, as in [App\\Models\\News::class => 'news'].");
            }
        }
        $this->publishes([self::FILE => $this->app->basePath('config/pagewell.php')], 'pagewell-config');
        $this->app->terminating(static fn () => RequestScope::current()->flushOrLog());
        $this->app->make(Kernel::class)->prependMiddleware(Declaring::class);
        $this->callAfterResolving('router', static function (Router $router): void {
            $router->hasMiddlewareGroup(self::GROUP) || $router->middlewareGroup(self::GROUP, [SubstituteBindings::class, WithoutErrors::class]);
        });
        if ($this->app->runningInConsole()) {
            $this->commands([InvalidateCommand::class, ExplainCommand::class]);
        }
        $events = $this->app->make(Dispatcher::class);
        self::listen($events);
        $events->listen(RouteMatched::class, fn (RouteMatched $event) => Declaring::matched($event, $this->app->make('router')));
        self::$kinds = $models;
        foreach ($models as $model => $kind) {
            self::listenToModel($events, $model, $kind);
        }
    }

    /** Listens to transactions, jobs and commands. */
    public static function listen(Dispatcher $events): void
    {
        $events->listen(TransactionBeginning::class, static function (TransactionBeginning $event): void {
            // Levels that Laravel has left without an event: their changes are sent.
            self::lower((string) $event->connection->getName(), $event->connection->transactionLevel() - 1, static fn (Transaction $open) => $open->commit());
            self::transaction((string) $event->connection->getName())->begin();
            self::$begun[(string) $event->connection->getName()] = \WeakReference::create($event->connection);
        });
        $events->listen(TransactionCommitted::class, static function (TransactionCommitted $event): void {
            self::lower((string) $event->connection->getName(), $event->connection->transactionLevel(), static fn (Transaction $open) => $open->commit());
        });
        $events->listen(TransactionRolledBack::class, static function (TransactionRolledBack $event): void {
            self::lower((string) $event->connection->getName(), $event->connection->transactionLevel(), static fn (Transaction $open) => $open->rollBack());
        });
        $events->listen(self::ENDS, self::end(...));
    }

    /**
     * Publishes the changes of a model.
     *
     * @param string $model its class
     * @param string $kind  what changed() calls it
     */
    public static function listenToModel(Dispatcher $events, string $model, string $kind): void
    {
        foreach (ModelChanges::EVENTS as $event) {
            $events->listen("eloquent.$event: $model", static function (object $written) use ($kind): void {
                ModelChanges::changed($kind, $written->getKey());
            });
        }
        Increments::listen($events, $model, $kind);
    }

    /**
     * Returns the kind of a model that config/pagewell.php names, or null.
     *
     * @internal
     */
    public static function kindOf(Model $model): ?string
    {
        return self::$kinds[$model::class] ?? null;
    }

    /** Ends the transactions of connections that were lost or released without an event, and sends the changes. */
    private static function end(): void
    {
        foreach (self::$begun as $name => $connection) {
            $level = $connection->get()?->transactionLevel() ?? 0;
            self::lower((string) $name, $level, static fn (Transaction $open) => $open->commit());
            if ($level === 0) {
                unset(self::$begun[$name]);
            }
        }
        RequestScope::current()->flushOrLog();
        OutboxDelivery::attempt(Configuration::client(null));
    }

    private static function transaction(string $connection): Transaction
    {
        return RequestScope::current()->transaction("laravel $connection");
    }

    /** @param callable(Transaction): void $end ends one level */
    private static function lower(string $connection, int $level, callable $end): void
    {
        $transaction = self::transaction($connection);
        while ($transaction->level() > max(0, $level)) {
            $end($transaction);
        }
    }
}
