<?php

/**
 * Laravel's database and Eloquent on SQLite in the process, with the provider listening.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Connection;
use Illuminate\Events\Dispatcher;
use Pagewell\Laravel\PagewellProvider;

final class LaravelDatabase
{
    /** Whether Laravel is there; loads it if so. */
    public static function isInstalled(): bool
    {
        if (stream_resolve_include_path('Illuminate/autoload.php') === false) {
            return false;
        }
        require_once 'Illuminate/autoload.php';
        require_once __DIR__ . '/LaravelPages.php';
        return true;
    }

    /** @return array{Connection, Dispatcher} */
    public static function open(): array
    {
        $manager = new Manager();
        $manager->addConnection(['driver' => 'sqlite', 'database' => ':memory:']);
        $manager->setEventDispatcher($events = new Dispatcher());
        $manager->setAsGlobal();
        $manager->bootEloquent();
        $manager->getConnection()->statement('CREATE TABLE news (id INTEGER PRIMARY KEY, title TEXT, views INTEGER DEFAULT 0, likes INTEGER DEFAULT 0)');
        $manager->getConnection()->statement('CREATE TABLE other (id INTEGER PRIMARY KEY, views INTEGER DEFAULT 0)');
        PagewellProvider::listen($events);
        return [$manager->getConnection(), $events];
    }
}
