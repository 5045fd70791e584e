<?php

/**
 * Whether Pagewell is in front of this request, and whether the response can report changes to it.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/**
 * The path by which the request came.
 *
 * @internal
 */
final class Front
{
    /** Methods whose responses report changes: RFC 9875 section 3. */
    private const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE'];

    /** Whether this request came through Pagewell, according to the fields that it adds. */
    public static function isInFront(): bool
    {
        return self::isGivenByIt() || preg_match('/\bpagewell\b/', (string) ($_SERVER['HTTP_VIA'] ?? '')) === 1;
    }

    /**
     * Whether Pagewell itself sent PHP this request, over FastCGI. A web server as its origin
     * forwards the request's fields. A client that reaches that server directly can send `Via: 1.1
     * pagewell`, too.
     */
    public static function isGivenByIt(): bool
    {
        return str_starts_with((string) ($_SERVER['SERVER_SOFTWARE'] ?? ''), 'pagewell/');
    }

    /**
     * Whether Pagewell makes this request to compare a stored page with its response, which no visitor sees. A counter of
     * views leaves it out. Pagewell removes the field from requests of clients.
     */
    public static function isReference(): bool
    {
        return isset($_SERVER['HTTP_PAGEWELL_REFERENCE']) && self::isInFront();
    }

    /** Whether the response can still carry changes. */
    public static function canCarry(): bool
    {
        return !headers_sent() && self::carries();
    }

    /** Whether the response carries changes, if they were added before its header section was sent. */
    public static function carries(): bool
    {
        return PHP_SAPI !== 'cli' && self::isInFront() && self::isUnsafe();
    }

    /** Whether the request may write by its method. */
    public static function isUnsafe(): bool
    {
        return in_array(strtoupper((string) ($_SERVER['REQUEST_METHOD'] ?? '')), self::UNSAFE, true);
    }
}
