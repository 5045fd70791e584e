<?php

/**
 * The middleware for Laravel: the outermost, so that it sees the cookies and the session that the
 * others have added.
 *
 * DeclaringDispatcher applies the attributes of controllers. A request that the application handles within another one
 * belongs to the page of the outer one:
 *
 *     app()->handle($part)      the page is not cached if the part has failed, or is personal (a session, a cookie, `private`)
 *     Route::dispatch($part)    passes only the middleware of its route: not cached if that starts a session
 *
 * Laravel starts a session and sets cookies for all routes of its group `web`; such a page is not offered for storing.
 * Public pages belong into the group `cached` (PagewellProvider).
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Contracts\Container\Container;
use Illuminate\Http\Request;
use Illuminate\Routing\Events\RouteMatched;
use Illuminate\Routing\Route;
use Illuminate\Routing\Router;
use Illuminate\Session\Middleware\StartSession;
use Pagewell\Bridge\HttpFoundation\ResponseLines;
use Pagewell\CollectingChannel;
use Pagewell\RequestScope;
use Symfony\Component\HttpFoundation\Response;

/**
 * Puts declarations and changes onto Laravel's responses.
 *
 * @internal
 */
final class Declaring
{
    /** The request of the page; null: none is running. */
    private static ?Request $page = null;

    /** How many parts the kernel is handling. */
    private static int $parts = 0;

    /** @param Container|null $container of the application, which has the guards */
    public function __construct(private readonly ?Container $container = null)
    {
    }

    /** @param \Closure(Request): Response $next */
    public function handle(Request $request, \Closure $next): Response
    {
        if (self::$page !== null) {
            return self::part($request, $next);
        }
        self::$page = $request;
        try {
            return $this->declared($request, $next);
        } finally {
            self::$page = null;
        }
    }

    /** Whether a GET or HEAD is being answered, so that its controller may declare a page. */
    public static function isPage(): bool
    {
        return self::$page?->isMethodSafe() === true;
    }

    /** Whether a route is not that of the page, but of a part of it. */
    public static function isPart(Route $route): bool
    {
        return self::$page?->route() !== $route;
    }

    /** A route was found. One with a session, by Route::dispatch(), makes the page personal. */
    public static function matched(RouteMatched $event, Router $router): void
    {
        $isUnseen = self::isPage() && self::$page !== $event->request && self::$parts === 0;
        if ($isUnseen && array_filter($router->gatherRouteMiddleware($event->route), static fn (mixed $one): bool => is_string($one) && is_a($one, StartSession::class, true)) !== []) {
            RequestScope::current()->notCached();
        }
    }

    /** @param \Closure(Request): Response $next */
    private static function part(Request $request, \Closure $next): Response
    {
        self::$parts++;
        try {
            $part = $next($request);
        } finally {
            self::$parts--;
        }
        if (self::isPage() && ($part->getStatusCode() >= 400 || ResponseLines::isPersonal($request, $part))) {
            RequestScope::current()->notCached();
        }
        return $part;
    }

    /** @param \Closure(Request): Response $next */
    private function declared(Request $request, \Closure $next): Response
    {
        $channel = CollectingChannel::begin($request->getMethod(), isEnded: true, capability: (string) $request->headers->get('Surrogate-Capability', ''), credentials: ResponseLines::credentials($request));
        RetrievedRows::begin();
        try {
            $response = $next($request);
        } catch (\Throwable $fault) {
            RetrievedRows::end();
            $channel->lose();
            throw $fault;
        }
        RetrievedRows::declare(RequestScope::current());
        if ($this->isSignedIn()) {
            RequestScope::current()->signedIn();
        }
        ResponseLines::finish($channel, $request, $response);
        return $response;
    }

    /**
     * Whether a guard has identified the visitor. Guards that the application has not asked for
     * have identified nobody, and are not created here.
     */
    private function isSignedIn(): bool
    {
        $auth = $this->container?->resolved('auth') ? $this->container->make('auth') : null;
        foreach ($auth === null ? [] : (fn (): array => $this->guards ?? [])->call($auth) as $guard) {
            if (method_exists($guard, 'hasUser') ? $guard->hasUser() : $guard->user() !== null) {
                return true;
            }
        }
        return false;
    }
}
