<?php

/**
 * The middleware for Laravel: the outermost, so that it sees the cookies and the session that the
 * others have added.
 *
 * A controller's #[Uses] is applied once its route's parameters have become models. Laravel starts
 * a session and sets cookies for all routes of its group `web`; such a page is not offered for
 * storing. Put public pages into a group without StartSession, EncryptCookies and VerifyCsrfToken.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Http\Request;
use Pagewell\CollectingChannel;
use Pagewell\SymfonyResponse;
use Symfony\Component\HttpFoundation\Response;

use function Pagewell\usesOf;

/**
 * Puts declarations and changes onto Laravel's responses.
 *
 * @internal
 */
final class Declaring
{
    /** @param \Closure(Request): Response $next */
    public function handle(Request $request, \Closure $next): Response
    {
        $channel = CollectingChannel::begin($request->getMethod(), isEnded: true, capability: (string) $request->headers->get('Surrogate-Capability', ''), credentials: SymfonyResponse::credentials($request));
        try {
            $response = $next($request);
            $route = $request->route();
            if (is_object($route) && $route->getActionName() !== 'Closure') {
                usesOf(strtr($route->getActionName(), ['@' => '::']), $route->parameters());
            }
        } catch (\Throwable $fault) {
            $channel->lose();
            throw $fault;
        }
        SymfonyResponse::finish($channel, $request, $response);
        return $response;
    }
}
