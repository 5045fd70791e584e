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
    if (preg_match('~^Pagewell\\\\(?:(Bridge|Core|Laravel|Symfony)\\\\)?(.+)$~D', $class, $name) !== 1) {
        return;
    }
    $file = __DIR__ . '/../' . ($name[1] === '' ? 'client' : strtolower($name[1])) . '/src/' . strtr($name[2], '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});

require __DIR__ . '/src/load.php';
