<?php

/**
 * Laravel and automatic dependencies: in a request that Pagewell captures, connections report their statements.
 *
 *     event                                      what happens
 *     a connection of the driver mysql is made   by CapturingConnector, unless the application has a connector of its own
 *     a statement of another driver              the list is incomplete
 *     a value comes from a cache                 reads are hidden, unless the driver of the store is `array` or `null`
 *
 * Before Laravel 11, the event of the cache does not name its store: the default one counts.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Cache\Events\CacheHit;
use Illuminate\Contracts\Config\Repository;
use Illuminate\Contracts\Container\Container;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Database\Events\QueryExecuted;
use Pagewell\Capture\StatementCapture;

/** @internal */
final class StatementReports
{
    /** The key by which Laravel finds a connector of the application. */
    private const CONNECTOR = 'db.connector.mysql';

    /**
     * Caches whose values are in the process. A row of the cache in the database does not change when its value
     * expires, so that a page would keep the value.
     */
    private const SEEN = ['array', 'null'];

    /** Does nothing in a request that is not captured. */
    public static function register(Container $app): void
    {
        if (StatementCapture::running() === null) {
            return;
        }
        $app->bound(self::CONNECTOR) || $app->bind(self::CONNECTOR, CapturingConnector::class);
        self::refuseSilentStores($app->make('config'));
        $events = $app->make(Dispatcher::class);
        $events->listen(QueryExecuted::class, static function (QueryExecuted $event): void {
            self::onQuery($event->connection->getDriverName());
        });
        $events->listen(CacheHit::class, static function (CacheHit $event) use ($app): void {
            self::onCacheHit($app->make('config'), $event->storeName ?? null);
        });
    }

    /** A store without events would hide reads without a word. */
    private static function refuseSilentStores(Repository $config): void
    {
        foreach ((array) $config->get('cache.stores') as $name => $store) {
            if (($store['events'] ?? true) === false && !in_array($store['driver'] ?? null, self::SEEN, true)) {
                StatementCapture::running()?->hide("laravel-cache:$name");
            }
        }
    }

    private static function onQuery(string $driver): void
    {
        if ($driver !== 'mysql') {
            StatementCapture::running()?->giveUp("a statement of Laravel's driver $driver");
        }
    }

    private static function onCacheHit(Repository $config, ?string $store): void
    {
        $store ??= (string) $config->get('cache.default');
        if (!in_array($config->get("cache.stores.$store.driver"), self::SEEN, true)) {
            StatementCapture::running()?->hide("laravel-cache:$store");
        }
    }
}
