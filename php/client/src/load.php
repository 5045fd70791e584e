<?php

/**
 * Loads the functions once, whether Composer or autoload.php comes first: each of them would
 * otherwise declare them a second time, which is a fatal error.
 */

declare(strict_types=1);

if (!function_exists('Pagewell\\uses')) {
    require __DIR__ . '/functions.php';
}
