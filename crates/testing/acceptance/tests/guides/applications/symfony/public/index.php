<?php

/** The front controller, as Symfony's skeleton has it. */

declare(strict_types=1);

require __DIR__ . '/../packages.php';
require __DIR__ . '/../vendor/autoload.php';

$kernel = new App\Kernel('prod', false);
$request = Symfony\Component\HttpFoundation\Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
