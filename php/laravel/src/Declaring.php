<?php

/**
 * The middleware for Laravel: the outermost, so that it sees the cookies and the session that the
 * others have added.
 *
 * DeclaringDispatcher applies the attributes of controllers. A request that the application handles within another one
 * belongs to the page of the outer one.
 *
 * Laravel starts a session and sets cookies for all routes of its group `web`; such a page is not offered for storing.
 * Public pages belong into the group `cached` (PagewellProvider).
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Contracts\Container\Container;
use Illuminate\Http\Request;
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
    /** Whether the request is a GET or HEAD; null: none is running. */
    private static ?bool $isPage = null;

    /** @param Container|null $container of the application, which has the guards */
    public function __construct(private readonly ?Container $container = null)
    {
    }

    /** @param \Closure(Request): Response $next */
    public function handle(Request $request, \Closure $next): Response
    {
        if (self::$isPage !== null) {
            $part = $next($request);
            if (self::$isPage && ResponseLines::isPersonal($request, $part)) {
                RequestScope::current()->notCached();
            }
            return $part;
        }
        self::$isPage = $request->isMethodSafe();
        try {
            return $this->declared($request, $next);
        } finally {
            self::$isPage = null;
        }
    }

    /** Whether a GET or HEAD is being answered, so that its controller may declare a page. */
    public static function isPage(): bool
    {
        return self::$isPage === true;
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
