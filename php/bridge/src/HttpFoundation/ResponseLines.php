<?php

/**
 * Adds lines to a response of Symfony's HttpFoundation, which Laravel and Drupal use as well.
 *
 * HttpFoundation sends `Cache-Control: no-cache, private` if the application sets none. This
 * default does not prevent a declared page from being stored. `private` or `no-store` of the
 * application, or of a session in use, does.
 *
 * In a request whose statements are reported (automatic dependencies), the default is removed: such
 * a page is stored without caching headers, if its statements are known. It stays if `Expires` or
 * `Last-Modified` would give the page a lifetime without its statements.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\HttpFoundation;

use Pagewell\Capture\StatementCapture;
use Pagewell\CollectingChannel;
use Pagewell\Core\Credentials;
use Pagewell\Core\Response;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response as FoundationResponse;
use Symfony\Component\HttpFoundation\ResponseHeaderBag;
use Symfony\Component\HttpFoundation\Session\Session;

/**
 * Between a channel and a response of HttpFoundation.
 *
 * @internal
 */
final class ResponseLines
{
    private function __construct()
    {
    }

    /** Returns the parts of the request that may identify its visitor. */
    public static function credentials(Request $request): Credentials
    {
        $field = implode('; ', array_map(strval(...), $request->headers->all('Cookie')));
        return Credentials::of($field, $request->cookies->all(), $request->server->all(), $request->headers->has('Authorization'));
    }

    /**
     * Finishes the channel with this response, and adds the lines to it.
     *
     * @param bool|null $session whether the session was read or written; null: determined here
     */
    public static function finish(CollectingChannel $channel, Request $request, FoundationResponse $response, ?bool $session = null): void
    {
        $session ??= self::usesSession($request);
        $own = self::hasOwnCacheControl($response->headers);
        $lines = [];
        foreach ($response->headers->all() as $name => $values) {
            foreach ($own || $name !== 'cache-control' ? $values : [] as $value) {
                $lines[] = "$name: $value";
            }
        }
        foreach ($channel->finish($response->getStatusCode(), $lines, $session) as $line) {
            [$name, $value] = explode(': ', $line, 2);
            $response->headers->set($name, $value, in_array($name, ['Cache-Control', 'Surrogate-Control'], true));
        }
        $isWithoutFields = !$response->headers->has('Expires') && !$response->headers->has('Last-Modified')
            && !self::hasOwnCacheControl($response->headers);
        if (StatementCapture::running() !== null && !$session && $isWithoutFields) {
            $response->headers->remove('Cache-Control');
        }
    }

    /** Whether the application's own Cache-Control forbids storing this response in a shared cache. */
    public static function forbidsStoring(FoundationResponse $response): bool
    {
        return self::hasOwnCacheControl($response->headers)
            && (new Response(lines: ["Cache-Control: {$response->headers->get('Cache-Control')}"]))->forbidsStoring();
    }

    /** Whether this response may be for one visitor: a session, a cookie, or an own Cache-Control. */
    public static function isPersonal(Request $request, FoundationResponse $response): bool
    {
        return self::usesSession($request) || self::forbidsStoring($response) || $response->headers->has('Set-Cookie');
    }

    /**
     * When the response exists, frameworks have already closed the session. So a session counts if
     * it was read or written. If that cannot be determined, its existence counts.
     */
    private static function usesSession(Request $request): bool
    {
        // PHP's own session is open, or was.
        if (session_id() !== '' && session_id() !== false) {
            return true;
        }
        if (!$request->hasSession()) {
            return false;
        }
        // Laravel's session exists if StartSession has run.
        if (method_exists($request, 'session')) {
            return true;
        }
        // Do not create a session that the application has not used.
        if (!$request->hasSession(true)) {
            return false;
        }
        $session = $request->getSession();
        return $session->isStarted() || !$session instanceof Session || $session->getUsageIndex() > 0;
    }

    /** The bag stores the application's value and its own separately, and returns only its own. */
    private static function hasOwnCacheControl(ResponseHeaderBag $headers): bool
    {
        return (fn (): bool => $this->cacheControl !== [])->call($headers);
    }
}
