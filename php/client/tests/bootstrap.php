<?php

/**
 * Loads the library for its tests, with or without Composer.
 */

declare(strict_types=1);

error_reporting(E_ALL);

require is_file(__DIR__ . '/../vendor/autoload.php') ? __DIR__ . '/../vendor/autoload.php' : __DIR__ . '/../autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Pagewell\\Tests\\')) {
        $file = __DIR__ . '/' . strtr(substr($class, strlen('Pagewell\\Tests\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
