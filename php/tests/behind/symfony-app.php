<?php

/**
 * A whole application of Symfony behind a real Pagewell, for FrameworksBehindTest: `/symfony-app.php/row/4`.
 */

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

use Pagewell\Tests\Symfony\SymfonyApplication;
use Pagewell\Tests\Symfony\SymfonyBundles;
use Symfony\Component\HttpFoundation\Request;

SymfonyBundles::load();
$site = new SymfonyApplication(getenv('NOTES') . '/symfony');
$response = $site->handle($request = Request::createFromGlobals());
$response->send();
$site->terminate($request, $response);
