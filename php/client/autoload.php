<?php

/**
 * Loads the library where there is no Composer: `require 'php/client/autoload.php';`.
 *
 * Does what Composer does from composer.json: classes of the namespace Pagewell
 * from src/ (PSR-4), and the functions at once. Harmless before and after Composer: the
 * functions are loaded once.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (!str_starts_with($class, 'Pagewell\\')) {
        return;
    }
    $name = strtr(substr($class, strlen('Pagewell\\')), '\\', '/');
    // The glue for frameworks stands beside this directory.
    $glue = preg_match('~^(Symfony|Laravel)/(.+)$~D', $name, $found) === 1 ? __DIR__ . '/../' . strtolower($found[1]) . "/src/{$found[2]}.php" : '';
    foreach ([__DIR__ . "/src/$name.php", $glue] as $file) {
        if (is_file($file)) {
            require $file;
            return;
        }
    }
});

require __DIR__ . '/src/load.php';
