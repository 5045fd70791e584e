<?php

/**
 * Laravel's router and middleware behind a real Pagewell, for RealGlueTest: `/laravel.php/news/4`.
 */

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';
require_once 'Illuminate/autoload.php';

use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Pipeline\Pipeline;
use Illuminate\Routing\Contracts\ControllerDispatcher as ControllerDispatcherContract;
use Illuminate\Routing\ControllerDispatcher;
use Illuminate\Routing\Router;
use Pagewell\Laravel\Declaring;
use Pagewell\Laravel\DeclaringDispatcher;

#[Pagewell\Attribute\Uses('news:{id}')]
class Page
{
    public function __invoke(Request $request, string $id): string
    {
        if ($request->query->has('write')) {
            Pagewell\changed('news', $id);
        }
        if ($request->query->has('many')) {
            Pagewell\uses('news', ...range(1, 500));
        }
        return bin2hex(random_bytes(8));
    }
}

$router = new Router(new Dispatcher(), $container = new Container());
$container->singleton(ControllerDispatcherContract::class, static fn (): ControllerDispatcher => new ControllerDispatcher($container));
DeclaringDispatcher::register($container);
$router->match(['GET', 'POST'], '/news/{id}', Page::class);
$container->instance(Request::class, $request = Request::capture());
(new Pipeline($container))->send($request)->through([Declaring::class])->then(static fn (Request $request) => $router->dispatch($request))->send();
