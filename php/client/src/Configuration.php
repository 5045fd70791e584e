<?php

/**
 * The configuration that an application sets for the whole process. Everything else is read from
 * the environment.
 *
 *     Configuration::set(new SocketClient('unix:/run/pagewell/admin.sock'), log: $logger)
 *
 * A configuration that would lose changes is refused when the framework boots, when a command
 * begins, and when a request begins that may write: never after the write.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Declaration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\FileOutbox;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\Outbox;
use Pagewell\Core\SocketClient;

/** The configuration of the process. */
final class Configuration
{
    /** The message for two settings that contradict each other. */
    public const WITHOUT_CONTROL = 'Changes are to be sent to the control interface (PAGEWELL_CHANGES=control), which is switched off (PAGEWELL_ADMIN=off).';

    /** Safe methods, RFC 9110 section 9.2.1. */
    private const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

    private static InvalidationClient|false|null $client = null;

    private static ?Log $log = null;

    private static ?ChangeDelivery $way = null;

    private static ?Outbox $outbox = null;

    /** @var list<string>|null */
    private static ?array $sharedCookies = null;

    private function __construct()
    {
    }

    /**
     * Sets what the environment and PHP's log do not suffice for. Arguments that are not named keep their values.
     *
     * @param InvalidationClient|false|null               $client        called if no response can carry a change; false: such a change is refused. Default: PAGEWELL_ADMIN
     * @param \Psr\Log\LoggerInterface|\Closure(string): void|null $log receives failures. Default: PHP's log
     * @param ChangeDelivery|null                         $changes       whether responses carry changes. Default: PAGEWELL_CHANGES
     * @param list<string>|null                           $sharedCookies names of cookies that make no page personal. Default: PAGEWELL_SHARED_COOKIES
     * @param Outbox|null                                 $outbox        keeps changes that could not be sent. Default: the file in PAGEWELL_OUTBOX, if there is one
     *
     * @throws InvalidConfiguration a name of a cookie is invalid
     */
    public static function set(InvalidationClient|false|null $client = null, \Psr\Log\LoggerInterface|\Closure|null $log = null, ?ChangeDelivery $changes = null, ?array $sharedCookies = null, ?Outbox $outbox = null): void
    {
        self::$sharedCookies = $sharedCookies === null ? self::$sharedCookies : Environment::cookieNames($sharedCookies);
        self::$log = $log === null ? self::$log : new Log($log);
        self::$client = $client ?? self::$client;
        self::$way = $changes ?? self::$way;
        self::$outbox = $outbox ?? self::$outbox;
    }

    /** Forgets what set() was given, for example between two tests. */
    public static function reset(): void
    {
        self::$client = self::$log = self::$way = self::$outbox = self::$sharedCookies = null;
    }

    /**
     * Passes on the settings of a framework, and refuses wrong ones. The variables PAGEWELL_* have
     * precedence.
     *
     * @param string               $file     where they stand, for the message: `config/pagewell.php`
     * @param array<string, mixed> $settings by the names of the variables, in lower case without the prefix: `admin`, `token_file`
     *
     * @throws InvalidConfiguration a setting is unknown or has a wrong value, or two contradict each other
     */
    public static function ofFramework(string $file, array $settings): void
    {
        Environment::supply($file, $settings);
        self::validate();
    }

    /**
     * Returns the way for changes that a response could carry.
     *
     * @throws InvalidConfiguration the environment names neither
     *
     * @internal
     */
    public static function way(): ChangeDelivery
    {
        return self::$way ?? ChangeDelivery::fromEnvironment();
    }

    /**
     * Returns the log for failures.
     *
     * @internal
     */
    public static function log(): Log
    {
        return self::$log ?? new Log();
    }

    /**
     * Returns the TTL of pages that do not limit their own, in seconds. A wrong value counts as none.
     *
     * @internal
     */
    public static function lifetimeSeconds(): int
    {
        $said = Environment::value('LIFETIME');
        return $said !== null && Environment::isLifetime($said) ? (int) $said : Declaration::LIFETIME_SECONDS;
    }

    /**
     * Returns the outbox; null if there is none.
     *
     * @internal
     */
    public static function outbox(): ?Outbox
    {
        $file = Environment::value('OUTBOX');
        return self::$outbox ?? ($file === null ? null : new FileOutbox($file));
    }

    /**
     * The control interface.
     *
     * @param InvalidationClient|false|null $own the one of the request; null: as configured
     *
     * @return InvalidationClient|null null if it is switched off
     *
     * @internal
     */
    public static function client(InvalidationClient|false|null $own): ?InvalidationClient
    {
        $client = $own ?? self::$client ?? self::clientOfEnvironment();
        return $client === false ? null : $client;
    }

    /**
     * Returns the names of cookies that the site adds to those that make no page personal; none if
     * the environment has a wrong value, so that no page is shared because of it.
     *
     * @return list<string> patterns
     *
     * @internal
     */
    public static function sharedCookies(): array
    {
        try {
            return self::$sharedCookies ?? Environment::sharedCookies();
        } catch (InvalidConfiguration) {
            return [];
        }
    }

    /**
     * Whether a request of this method may write; null stands for a command.
     *
     * @internal
     */
    public static function isWrite(?string $method): bool
    {
        return $method !== null && !in_array($method, self::SAFE, true);
    }

    /**
     * Refuses values that would lose changes, when a command or a request begins that may write.
     * Pages do not fail because of them.
     *
     * @param InvalidationClient|false|null $own as of client()
     *
     * @throws InvalidConfiguration a value of the environment is not allowed, or two settings contradict each other
     *
     * @internal
     */
    public static function check(?string $method, InvalidationClient|false|null $own = null): void
    {
        if ($method === null || self::isWrite($method)) {
            self::validate($own);
        }
    }

    private static function clientOfEnvironment(): ?SocketClient
    {
        $address = Environment::value('ADMIN') ?? SocketClient::ADDRESS;
        return $address === 'off' ? null : new SocketClient($address, Environment::value('TOKEN_FILE'), Environment::value('SITE'));
    }

    /** @throws InvalidConfiguration as check() */
    private static function validate(InvalidationClient|false|null $own = null): void
    {
        Environment::check();
        if (self::way() === ChangeDelivery::Control && self::client($own) === null) {
            throw new InvalidConfiguration(self::WITHOUT_CONTROL);
        }
    }
}
