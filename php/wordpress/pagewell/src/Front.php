<?php

/**
 * Whether Pagewell is in front of this request, and whether the answer can tell it what has changed.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** The way that the request came. */
final class Front
{
    /** Methods whose answers say what has changed: RFC 9875 section 3. */
    private const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE'];

    /** Whether this request came through Pagewell, as far as it says so: it signs what it passes on. */
    public static function isInFront(): bool
    {
        return self::isGivenByIt() || preg_match('/\bpagewell\b/', (string) ($_SERVER['HTTP_VIA'] ?? '')) === 1;
    }

    /**
     * Whether Pagewell itself gave PHP this request, over FastCGI. A web server that is its origin passes on
     * what the request says, and whoever reaches that one past Pagewell can say `Via: 1.1 pagewell`, too.
     */
    public static function isGivenByIt(): bool
    {
        return str_starts_with((string) ($_SERVER['SERVER_SOFTWARE'] ?? ''), 'pagewell/');
    }

    /** Whether the answer can say what has changed. */
    public static function canCarry(): bool
    {
        return PHP_SAPI !== 'cli' && !headers_sent() && self::isInFront() && self::isUnsafe();
    }

    /** Whether the request may write by its method. */
    public static function isUnsafe(): bool
    {
        return in_array(strtoupper((string) ($_SERVER['REQUEST_METHOD'] ?? '')), self::UNSAFE, true);
    }
}
