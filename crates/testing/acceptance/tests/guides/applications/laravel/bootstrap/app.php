<?php

/** The application: by its builder in Laravel 11 and later, by its kernels before. */

declare(strict_types=1);

use Illuminate\Foundation\Application;

$directory = dirname(__DIR__);
if (method_exists(Application::class, 'configure')) {
    // Debian's package does not find the framework's own configuration.
    return Application::configure(basePath: $directory)->withMiddleware()->withExceptions()->create()
        ->dontMergeFrameworkConfiguration();
}
$app = new Application($directory);
$app->singleton(Illuminate\Contracts\Http\Kernel::class, Illuminate\Foundation\Http\Kernel::class);
$app->singleton(Illuminate\Contracts\Console\Kernel::class, Illuminate\Foundation\Console\Kernel::class);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);
return $app;
