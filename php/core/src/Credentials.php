<?php

/**
 * The parts of a request by which an application may know its visitor: cookies, and Authorization.
 *
 * A page that is rendered for a request with one of these may be personal, so the library does not
 * offer it to a shared cache. SharedCookies says which cookies are harmless.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** The names of a request's cookies, and whether it has credentials. */
final class Credentials
{
    /** Variables that a web server sets if it has identified the visitor. */
    private const AUTHORIZATION = ['HTTP_AUTHORIZATION', 'REDIRECT_HTTP_AUTHORIZATION', 'PHP_AUTH_USER', 'PHP_AUTH_DIGEST', 'REMOTE_USER', 'AUTH_TYPE'];

    /**
     * @param list<string> $cookies       their names, in each spelling in which they can be read
     * @param bool         $authorization whether the request has Authorization, or one of these variables
     * @param bool         $isKnown       false: the contents of the request are unknown
     */
    public function __construct(
        public readonly array $cookies = [],
        public readonly bool $authorization = false,
        public readonly bool $isKnown = true,
    ) {
    }

    /**
     * Returns those of a framework's request.
     *
     * @param string                   $field         the field Cookie, all lines
     * @param array<int|string, mixed> $cookies       as parsed from it, by name
     * @param array<int|string, mixed> $server        variables, as in $_SERVER
     * @param bool                     $authorization whether there is a field Authorization
     */
    public static function of(string $field, array $cookies = [], array $server = [], bool $authorization = false): self
    {
        // As sent, and as parsed: an application may have removed one, or changed its name.
        $sent = array_map(static fn (string $pair): string => trim(explode('=', $pair, 2)[0]), explode(';', $field));
        $names = array_filter([...$sent, ...array_map(strval(...), array_keys($cookies))], static fn (string $name): bool => $name !== '');
        foreach (self::AUTHORIZATION as $name) {
            $authorization = $authorization || (is_scalar($server[$name] ?? '') && (string) ($server[$name] ?? '') !== '');
        }
        return new self(array_values(array_unique($names)), $authorization);
    }
}
