<?php

/**
 * Loads the site for its tests.
 */

declare(strict_types=1);

error_reporting(E_ALL);
date_default_timezone_set('UTC');

require __DIR__ . '/../src/autoload.php';
require __DIR__ . '/../fill/Writer.php';
