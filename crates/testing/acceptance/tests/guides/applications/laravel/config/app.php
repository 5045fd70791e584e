<?php

/** The settings of the application, and its providers: those of the framework, and its own. */

declare(strict_types=1);

$framework = method_exists(Illuminate\Support\ServiceProvider::class, 'defaultProviders') ? Illuminate\Support\ServiceProvider::defaultProviders()->toArray() : [
    Illuminate\Auth\AuthServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class,
    Illuminate\Filesystem\FilesystemServiceProvider::class, Illuminate\Foundation\Providers\ConsoleSupportServiceProvider::class,
    Illuminate\Foundation\Providers\FoundationServiceProvider::class, Illuminate\Queue\QueueServiceProvider::class,
    Illuminate\Translation\TranslationServiceProvider::class, Illuminate\View\ViewServiceProvider::class,
];

return [
    'name' => 'News', 'env' => 'production', 'debug' => false, 'url' => 'http://localhost', 'timezone' => 'UTC',
    'locale' => 'en', 'fallback_locale' => 'en', 'cipher' => 'AES-256-CBC', 'key' => str_repeat('k', 32), 'aliases' => [],
    'providers' => [...$framework, App\Providers\AppServiceProvider::class, App\MemberProvider::class],
];
