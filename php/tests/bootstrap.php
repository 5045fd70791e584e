<?php

/**
 * Loads the packages and the classes of their tests. The tests of a package are in its directory `tests`; Support has
 * what several of them use.
 */

declare(strict_types=1);

error_reporting(E_ALL);

require __DIR__ . '/../client/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (preg_match('~^Pagewell\\\\Tests\\\\(\w+)\\\\(\w+)$~D', $class, $name) !== 1) {
        return;
    }
    $file = $name[1] === 'Support' ? __DIR__ . "/Support/$name[2].php" : __DIR__ . '/../' . strtolower($name[1]) . "/tests/$name[2].php";
    if (is_file($file)) {
        require $file;
    }
});
