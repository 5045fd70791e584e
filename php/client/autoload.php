<?php

/**
 * Loads the library where there is no Composer: `require 'php/client/autoload.php';`.
 *
 * Does what Composer does from the files composer.json: classes of the namespace Pagewell from the
 * directories of the library and of the integrations (PSR-4), and the functions at once. Harmless
 * before and after Composer: the functions are loaded once.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (preg_match('~^Pagewell\\\\((?:(Bridge|Symfony|Laravel)\\\\)?(.+))$~D', $class, $name) !== 1) {
        return;
    }
    $file = strtr($name[3], '\\', '/') . '.php';
    foreach ($name[2] === '' ? ['core', 'client'] : [strtolower($name[2])] as $package) {
        if (is_file(__DIR__ . "/../$package/src/$file")) {
            require __DIR__ . "/../$package/src/$file";
            return;
        }
    }
});

require __DIR__ . '/src/load.php';
