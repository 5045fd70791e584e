<?php

/**
 * Loads the library for its tests, with or without Composer.
 */

declare(strict_types=1);

error_reporting(E_ALL);

require is_file(__DIR__ . '/../vendor/autoload.php') ? __DIR__ . '/../vendor/autoload.php' : __DIR__ . '/../autoload.php';
