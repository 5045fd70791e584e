<?php

/**
 * The variables PAGEWELL_*: where they are read, and whether their values are right.
 *
 *     1. getenv()    the process, php-fpm's env[…], FastCGI parameters, putenv()
 *     2. $_SERVER    the same, and what a Dotenv library has read from .env
 *     3. $_ENV       what a Dotenv library has read from .env
 *     4. supply()    the configuration of a framework, `admin` for PAGEWELL_ADMIN
 *
 * The first value that is not empty counts, so the operator's settings precede the application's
 * files. Only these exact names are read. A request field becomes HTTP_… in FastCGI and CGI (RFC
 * 3875 section 4.1.18), so clients cannot set them.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Declaration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\SharedCookies;
use Pagewell\Core\SocketClient;

/**
 * Reads the configuration of the library.
 *
 * @internal
 */
final class Environment
{
    private const PREFIX = 'PAGEWELL_';

    /** All variables, without their prefix. */
    private const NAMES = ['ADMIN', 'TOKEN_FILE', 'SITE', 'CHANGES', 'SHARED_COOKIES', 'LIFETIME', 'OUTBOX'];

    /** @var array<string, string> settings of a framework, by name without prefix */
    private static array $supplied = [];

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
        $full = self::PREFIX . $name;
        foreach ([getenv($full), $_SERVER[$full] ?? '', $_ENV[$full] ?? '', self::$supplied[$name] ?? ''] as $value) {
            if (is_scalar($value) && (string) $value !== '') {
                return (string) $value;
            }
        }
        return null;
    }

    /**
     * Sets the configuration of a framework, in place of an earlier one.
     *
     * @param string               $file     where it stands, for the message
     * @param array<string, mixed> $settings text, a number, a list of texts, or null if a setting is not set
     *
     * @throws InvalidConfiguration a setting is unknown, or its value has another type
     */
    public static function supply(string $file, array $settings): void
    {
        $supplied = [];
        foreach ($settings as $key => $value) {
            $name = strtoupper((string) $key);
            if (!in_array($name, self::NAMES, true) || $name === (string) $key) {
                throw new InvalidConfiguration("$file has '$key': the settings are " . strtolower(implode(', ', self::NAMES)) . '.');
            }
            $value = is_array($value) && array_filter($value, is_string(...)) === $value ? implode(',', $value) : $value;
            if ($value !== null && !is_string($value) && !is_int($value)) {
                throw new InvalidConfiguration("$file: '$key' is " . get_debug_type($value) . ': write a text.');
            }
            $supplied[$name] = (string) $value;
        }
        self::$supplied = $supplied;
    }

    /**
     * Returns the names of cookies in PAGEWELL_SHARED_COOKIES.
     *
     * @return list<string>
     *
     * @throws InvalidConfiguration one of them is invalid
     */
    public static function sharedCookies(): array
    {
        return self::cookieNames(preg_split('/[\s,]+/', self::value('SHARED_COOKIES') ?? '', -1, PREG_SPLIT_NO_EMPTY) ?: []);
    }

    /**
     * Returns these names of cookies.
     *
     * @param list<string> $names
     *
     * @return list<string>
     *
     * @throws InvalidConfiguration one of them is invalid
     */
    public static function cookieNames(array $names): array
    {
        foreach ($names as $name) {
            if (!SharedCookies::isName($name)) {
                throw new InvalidConfiguration("PAGEWELL_SHARED_COOKIES has '$name' in it: write names of cookies, separated by commas, as in currency,theme_*.");
            }
        }
        return array_values($names);
    }

    /** Whether this is a TTL in seconds, from 1 to a year. */
    public static function isLifetime(string $value): bool
    {
        return preg_match('/^[1-9][0-9]{0,8}$/D', $value) === 1 && (int) $value <= Declaration::LIFETIME_SECONDS_MAX;
    }

    /**
     * Refuses wrong values, before anything is written.
     *
     * @throws InvalidConfiguration names the variable, its value and what is allowed
     */
    public static function check(): void
    {
        ChangeDelivery::fromEnvironment();
        self::sharedCookies();
        $admin = self::value('ADMIN');
        if ($admin !== null && $admin !== 'off' && !SocketClient::isAddress($admin)) {
            throw new InvalidConfiguration("PAGEWELL_ADMIN is '$admin': write an address (127.0.0.1:8081), a socket (unix:/run/pagewell/admin.sock) or off.");
        }
        $site = self::value('SITE');
        if ($site !== null && preg_match('~^[^\s/?#@]+$~D', $site) !== 1) {
            throw new InvalidConfiguration("PAGEWELL_SITE is '$site': write the host alone, as in example.org.");
        }
        $token = self::value('TOKEN_FILE');
        // Where another user may not look, the file may be there.
        if ($token !== null && !file_exists($token) && (!is_dir(dirname($token)) || is_executable(dirname($token)))) {
            throw new InvalidConfiguration("PAGEWELL_TOKEN_FILE is '$token', which does not exist: write the path of the file with the token.");
        }
        $outbox = self::value('OUTBOX');
        if ($outbox !== null && (!is_dir(dirname($outbox)) || is_dir($outbox) || preg_match('~^(?:/|[A-Za-z]:)~', $outbox) !== 1)) {
            throw new InvalidConfiguration("PAGEWELL_OUTBOX is '$outbox': write the whole path of a file, in a directory that exists.");
        }
        $lifetime = self::value('LIFETIME');
        if ($lifetime !== null && !self::isLifetime($lifetime)) {
            throw new InvalidConfiguration("PAGEWELL_LIFETIME is '$lifetime': write seconds, at most " . Declaration::LIFETIME_SECONDS_MAX . ' (a year).');
        }
    }
}
