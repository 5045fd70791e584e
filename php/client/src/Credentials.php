<?php

/**
 * The parts of a request by which an application may know its visitor: cookies, and Authorization.
 *
 * A page that was made with one of these may show what belongs to one visitor, so the library does not
 * offer it to a shared cache. Which cookies are harmless is in SharedCookies.
 */

declare(strict_types=1);

namespace Pagewell;

/** The names of a request's cookies, and whether it has credentials. */
final class Credentials
{
    /** Variables by which a web server says that it knows the visitor. */
    private const AUTHORIZATION = ['HTTP_AUTHORIZATION', 'REDIRECT_HTTP_AUTHORIZATION', 'PHP_AUTH_USER', 'PHP_AUTH_DIGEST', 'REMOTE_USER', 'AUTH_TYPE'];

    /**
     * @param list<string> $cookies       their names, each way in which they can be read
     * @param bool         $authorization whether there is a field Authorization, or the like
     * @param bool         $isKnown       false: nobody has said what the request carries
     */
    public function __construct(
        public readonly array $cookies = [],
        public readonly bool $authorization = false,
        public readonly bool $isKnown = true,
    ) {
    }

    /** Those of the request that PHP itself serves. A worker serves its requests in a way of its own: not known. */
    public static function ofPhp(): self
    {
        if ((new PhpWire())->method() === null) {
            return new self(isKnown: false);
        }
        // Apache keeps Authorization out of the variables; an application reads it among the fields all the same.
        $fields = function_exists('getallheaders') ? array_change_key_case(getallheaders()) : [];
        return self::of((string) ($_SERVER['HTTP_COOKIE'] ?? ''), $_COOKIE, $_SERVER, isset($fields['authorization']));
    }

    /**
     * Those of a request as a framework has it.
     *
     * @param string                   $field         the field Cookie, all lines
     * @param array<int|string, mixed> $cookies       as they were read from it, by name
     * @param array<int|string, mixed> $server        variables, as of $_SERVER
     * @param bool                     $authorization whether there is a field Authorization
     */
    public static function of(string $field, array $cookies = [], array $server = [], bool $authorization = false): self
    {
        // As they were sent, and as they were read: an application may have taken one out, or read its name otherwise.
        $sent = array_map(static fn (string $pair): string => trim(explode('=', $pair, 2)[0]), explode(';', $field));
        $names = array_filter([...$sent, ...array_map(strval(...), array_keys($cookies))], static fn (string $name): bool => $name !== '');
        foreach (self::AUTHORIZATION as $name) {
            $authorization = $authorization || (is_scalar($server[$name] ?? '') && (string) ($server[$name] ?? '') !== '');
        }
        return new self(array_values(array_unique($names)), $authorization);
    }
}
