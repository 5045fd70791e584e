<?php

/**
 * A whole application of Laravel behind a real Pagewell, for FrameworksBehindTest: `/laravel-app.php/news/4`.
 */

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;
use Pagewell\Tests\Laravel\LaravelApplication;
use Pagewell\Tests\Laravel\LaravelDatabase;

LaravelDatabase::isInstalled();
$database = getenv('NOTES') . '/laravel.sqlite';
touch($database); // Laravel creates none.
$site = new LaravelApplication([], $database);
$kernel = $site->app->make(Kernel::class);
$response = $kernel->handle($request = Request::capture());
$response->send();
$kernel->terminate($request, $response);
$site->stop();
