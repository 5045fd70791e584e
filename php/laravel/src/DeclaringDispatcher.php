<?php

/**
 * Calls the controllers of routes: before it does, their #[Uses], #[FreshFor] and #[NotCached] are applied.
 *
 * At this point the parameters of the route are models. A mistyped attribute is an error before the controller has
 * written anything. A POST or another unsafe method is never cached, so its attributes are not read. If a middleware
 * answers in place of the controller, nothing is declared.
 *
 * A controller or a view may dispatch another route. Its attributes belong to the page, which has to declare something before:
 * the part alone says nothing about the rest of the page.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Contracts\Container\Container;
use Illuminate\Routing\Contracts\ControllerDispatcher;
use Illuminate\Routing\Route;
use Pagewell\Core\Refusal;
use Pagewell\RequestScope;

use function Pagewell\usesOf;

/**
 * Applies the attributes of a controller, and calls it by the dispatcher of the application.
 *
 * @internal
 */
final class DeclaringDispatcher implements ControllerDispatcher
{
    public function __construct(private readonly ControllerDispatcher $dispatcher)
    {
    }

    /** Has each controller called by way of this class. */
    public static function register(Container $container): void
    {
        $container->extend(ControllerDispatcher::class, static fn (ControllerDispatcher $dispatcher): self => new self($dispatcher));
    }

    /**
     * @param mixed  $controller
     * @param string $method
     */
    public function dispatch(Route $route, $controller, $method)
    {
        if (Declaring::isPage()) {
            $scope = RequestScope::current();
            if (Declaring::isPart($route) && $scope->refusal() === Refusal::Nothing) {
                $scope->notCached();
            }
            usesOf(strtr($route->getActionName(), ['@' => '::']), $route->parameters());
        }
        return $this->dispatcher->dispatch($route, $controller, $method);
    }

    /**
     * @param \Illuminate\Routing\Controller $controller
     * @param string                         $method
     */
    public function getMiddleware($controller, $method)
    {
        return $this->dispatcher->getMiddleware($controller, $method);
    }
}
