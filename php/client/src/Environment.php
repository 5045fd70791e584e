<?php

/**
 * The variables PAGEWELL_*: where they are read, and whether their values are right.
 *
 *     1. getenv()    the process, php-fpm's env[…], FastCGI parameters, putenv()
 *     2. $_SERVER    the same, and what a Dotenv library has read from .env
 *     3. $_ENV       what a Dotenv library has read from .env
 *
 * The first value that is not empty counts, so the operator's settings precede the application's
 * files. Only these exact names are read. A request field becomes HTTP_… in FastCGI and CGI (RFC
 * 3875 section 4.1.18), so clients cannot set them.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Exception\InvalidConfiguration;

/**
 * Reads the configuration of the library.
 *
 * @internal
 */
final class Environment
{
    private const PREFIX = 'PAGEWELL_';

    private function __construct()
    {
    }

    /**
     * Returns the value of a variable.
     *
     * @param string $name without its prefix: `CHANGES`
     *
     * @return string|null null if it is not set, or empty
     */
    public static function value(string $name): ?string
    {
        $name = self::PREFIX . $name;
        foreach ([getenv($name), $_SERVER[$name] ?? '', $_ENV[$name] ?? ''] as $value) {
            if (is_scalar($value) && (string) $value !== '') {
                return (string) $value;
            }
        }
        return null;
    }

    /**
     * Refuses wrong values, before anything is written.
     *
     * @throws InvalidConfiguration names the variable, its value and what is allowed
     */
    public static function check(): void
    {
        ChangeDelivery::fromEnvironment();
        SharedCookies::named();
        $admin = self::value('ADMIN');
        if ($admin !== null && $admin !== 'off' && !SocketClient::isAddress($admin)) {
            throw new InvalidConfiguration("PAGEWELL_ADMIN is '$admin': write an address (127.0.0.1:8081), a socket (unix:/run/pagewell/admin.sock) or off.");
        }
        $site = self::value('SITE');
        if ($site !== null && preg_match('~^[^\s/?#@]+$~D', $site) !== 1) {
            throw new InvalidConfiguration("PAGEWELL_SITE is '$site': write the host alone, as in example.org.");
        }
    }
}
