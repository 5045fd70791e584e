<?php

/**
 * Symfony's HttpKernel behind a real Pagewell, for RealGlueTest: `/symfony.php/news/4`.
 */

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';
require_once 'Symfony/Component/HttpKernel/autoload.php';

use Pagewell\Symfony\Listener;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;

#[Pagewell\Attribute\Uses('news:{id}')]
final class Page
{
    public function __invoke(Request $request, string $id): Response
    {
        if ($request->query->has('write')) {
            Pagewell\changed('news', $id);
        }
        if ($request->query->has('many')) {
            Pagewell\uses('news', ...range(1, 500));
        }
        return new Response(bin2hex(random_bytes(8)));
    }
}

$dispatcher = new EventDispatcher();
$dispatcher->addSubscriber(new Listener());
$request = Request::createFromGlobals();
$request->attributes->add(['_controller' => new Page(), 'id' => basename($request->getPathInfo())]);
$kernel = new HttpKernel($dispatcher, new ControllerResolver());
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
