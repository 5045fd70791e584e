<?php

/**
 * The front controller: every page of the site begins here.
 */

declare(strict_types=1);

namespace News;

use News\Libraries\Database;

require __DIR__ . '/../src/autoload.php';

// `php -S 127.0.0.1:8000 public/index.php` asks here for files too: false hands them back to it.
if (PHP_SAPI === 'cli-server' && is_file(__DIR__ . explode('?', (string) $_SERVER['REQUEST_URI'], 2)[0])) {
    return false;
}

date_default_timezone_set('UTC');
(new Site(require __DIR__ . '/../src/routes.php', Database::configured()))->answer(Request::received())->send();
