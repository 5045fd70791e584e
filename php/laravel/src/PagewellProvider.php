<?php

/**
 * Laravel: registers the middleware, and listens to what the framework does.
 *
 *     event                                         what happens
 *     each request (middleware, the outermost)      lines go onto the response; #[Uses] of its controller is said
 *     TransactionBeginning, Committed, RolledBack   changes wait for the commit; levels as Laravel counts them
 *     the request has ended, a job, a command       later changes are sent, except those that wait for a
 *                                                   commit: a job on `sync` runs within its caller's transaction
 *     Eloquent: saved, updated, deleted, restored   changed(kind, key), of the models in config('pagewell.models')
 *     a statement that increments (Increments)      the same, or changed(kind) where it is not one row
 *
 * Found by Laravel by itself (composer.json). `config/pagewell.php`, if wanted:
 *
 *     return ['models' => [App\Models\News::class => 'news']];
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Console\Events\CommandFinished;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Contracts\Http\Kernel;
use Illuminate\Database\Connection;
use Illuminate\Database\Events\TransactionBeginning;
use Illuminate\Database\Events\TransactionCommitted;
use Illuminate\Database\Events\TransactionRolledBack;
use Illuminate\Queue\Events\JobExceptionOccurred;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Events\JobProcessed;
use Illuminate\Support\ServiceProvider;
use Pagewell\Environment;
use Pagewell\Outgoing;
use Pagewell\Transaction;

use function Pagewell\changed;

/** Registers Pagewell with an application. */
final class PagewellProvider extends ServiceProvider
{
    /** What happens to a model that its readers can see. increment() fires `updated`, and no `saved`. */
    private const MODEL_EVENTS = ['saved', 'updated', 'deleted', 'restored'];

    /** Something has ended, and its process may go on for long. */
    private const ENDS = [
        JobProcessed::class,
        JobFailed::class,
        JobExceptionOccurred::class,
        CommandFinished::class,
        'Laravel\Octane\Events\RequestTerminated',
    ];

    /** @var array<string, \WeakReference<Connection>> that have begun a transaction, by name */
    private static array $begun = [];

    /** A variable of the environment that is mistyped is refused here, before anything is written. */
    public function boot(): void
    {
        Environment::check();
        $this->app->terminating(static fn () => Outgoing::current()->flush());
        $this->app->make(Kernel::class)->prependMiddleware(Declaring::class);
        $events = $this->app->make(Dispatcher::class);
        self::listen($events);
        foreach ((array) $this->app->make('config')->get('pagewell.models', []) as $model => $kind) {
            self::listenToModel($events, $model, $kind);
        }
    }

    /** Transactions, jobs and commands. */
    public static function listen(Dispatcher $events): void
    {
        $events->listen(TransactionBeginning::class, static function (TransactionBeginning $event): void {
            // Levels of ours that Laravel has left without a word: kept.
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
     * Says what happens to a model.
     *
     * @param string $model its class
     * @param string $kind  what changed() calls it
     */
    public static function listenToModel(Dispatcher $events, string $model, string $kind): void
    {
        foreach (self::MODEL_EVENTS as $event) {
            $events->listen("eloquent.$event: $model", static function (object $written) use ($kind): void {
                changed($kind, $written->getKey());
            });
        }
        Increments::listen($events, $model, $kind);
    }

    /** A connection that was lost, or let go of, has ended its transaction without a word: nothing waits for it. */
    private static function end(): void
    {
        foreach (self::$begun as $name => $connection) {
            $level = $connection->get()?->transactionLevel() ?? 0;
            self::lower((string) $name, $level, static fn (Transaction $open) => $open->commit());
            if ($level === 0) {
                unset(self::$begun[$name]);
            }
        }
        Outgoing::current()->flush();
    }

    private static function transaction(string $connection): Transaction
    {
        return Outgoing::current()->transaction("laravel $connection");
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
