<?php

/**
 * Part of the middleware group `cached`: views have `$errors`, which is empty.
 *
 * In the group `web`, ShareErrorsFromSession sets it. Layouts read it (`@error`), and would fail
 * without it.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Contracts\Container\Container;
use Illuminate\Http\Request;
use Illuminate\Support\ViewErrorBag;
use Symfony\Component\HttpFoundation\Response;

/**
 * Shares an empty `$errors` with all views.
 *
 * @internal
 */
final class WithoutErrors
{
    public function __construct(private readonly Container $container)
    {
    }

    /** @param \Closure(Request): Response $next */
    public function handle(Request $request, \Closure $next): Response
    {
        $this->container->bound('view') && $this->container->make('view')->share('errors', new ViewErrorBag());
        return $next($request);
    }
}
