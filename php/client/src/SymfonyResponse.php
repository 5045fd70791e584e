<?php

/**
 * Puts lines onto a response of Symfony's HttpFoundation, which Laravel and Drupal have too.
 *
 * HttpFoundation makes up `Cache-Control: no-cache, private` where an application sets none: that
 * is not the application's word, and does not keep a declared page from being stored. Its own
 * `private` or `no-store`, and that of a session in use, does.
 */

declare(strict_types=1);

namespace Pagewell;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response as FoundationResponse;
use Symfony\Component\HttpFoundation\ResponseHeaderBag;
use Symfony\Component\HttpFoundation\Session\Session;

/** Between a wire and a response of HttpFoundation. */
final class SymfonyResponse
{
    private function __construct()
    {
    }

    /** What the request carries by which an application may know its visitor. */
    public static function credentials(Request $request): Credentials
    {
        $field = implode('; ', array_map(strval(...), $request->headers->all('Cookie')));
        return Credentials::of($field, $request->cookies->all(), $request->server->all(), $request->headers->has('Authorization'));
    }

    /** Ends the wire with this response, and puts its lines onto it. */
    public static function finish(ResponseWire $wire, Request $request, FoundationResponse $response): void
    {
        $session = self::usesSession($request);
        $own = self::hasOwnCacheControl($response->headers);
        $lines = [];
        foreach ($response->headers->all() as $name => $values) {
            foreach ($own || $name !== 'cache-control' ? $values : [] as $value) {
                $lines[] = "$name: $value";
            }
        }
        foreach ($wire->finish($response->getStatusCode(), $lines, $session) as $line) {
            [$name, $value] = explode(': ', $line, 2);
            $response->headers->set($name, $value, in_array($name, ['Cache-Control', 'Surrogate-Control'], true));
        }
    }

    /**
     * Frameworks have saved and closed a session by the time that the response is there: what counts is
     * whether anything was looked up in it. Of one that cannot be asked that, being there is enough.
     */
    private static function usesSession(Request $request): bool
    {
        // Of PHP's own: one that is open, or was.
        if (session_id() !== '' && session_id() !== false) {
            return true;
        }
        if (!$request->hasSession()) {
            return false;
        }
        // Laravel's, which is there where StartSession has run.
        if (method_exists($request, 'session')) {
            return true;
        }
        // One that nobody has asked for yet is not made for this.
        if (!$request->hasSession(true)) {
            return false;
        }
        $session = $request->getSession();
        return $session->isStarted() || !$session instanceof Session || $session->getUsageIndex() > 0;
    }

    /** The bag keeps what it was told apart from what it makes up of it, and shows the latter only. */
    private static function hasOwnCacheControl(ResponseHeaderBag $headers): bool
    {
        return (fn (): bool => $this->cacheControl !== [])->call($headers);
    }
}
