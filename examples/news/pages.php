<?php

/**
 * Which page belongs to which controller, for the dependency list:
 *
 *     php/client/bin/pagewell-php dependencies --routes examples/news/pages.php
 *
 * Made from the routes, so that there is no second list to keep.
 */

declare(strict_types=1);

use News\Libraries\Database;

require_once __DIR__ . '/src/autoload.php';

$pages = [];
foreach (require __DIR__ . '/src/routes.php' as [$method, $pattern, $make]) {
    $address = preg_replace(['/\(\?:(.*)\)\?$/', '/\(\?<(\w+)>.*?\)/', '/\\\\/'], ['$1', '{$1}', ''], $pattern);
    $controller = $make(new Database('mysql:unix_socket=/nowhere'));
    $pages[] = [$method === 'GET' ? $address : "$method $address", $controller::class];
}
return $pages;
