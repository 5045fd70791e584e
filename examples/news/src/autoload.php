<?php

/**
 * Loads the classes of the site (namespace News, from this directory) and php/client.
 *
 * The site stands in the repository beside the library and needs no Composer; one that
 * stands alone requires vendor/autoload.php instead.
 */

declare(strict_types=1);

require __DIR__ . '/../../../php/client/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'News\\')) {
        $file = __DIR__ . '/' . strtr(substr($class, strlen('News\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
