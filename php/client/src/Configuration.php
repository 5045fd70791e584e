<?php

/**
 * The configuration that an application sets for the whole process. Everything else is read from
 * the environment.
 *
 *     RequestScope::configure(new SocketClient('unix:/run/pagewell/admin.sock'), log: $logger)
 *
 * A configuration that would lose changes is refused when a request begins that may write, and
 * never after the write.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Exception\InvalidConfiguration;

/**
 * The configuration of the process.
 *
 * @internal
 */
final class Configuration
{
    /** The message for two settings that contradict each other. */
    public const WITHOUT_CONTROL = 'Changes are to be sent to the control interface (PAGEWELL_CHANGES=control), which is switched off (PAGEWELL_ADMIN=off).';

    /** Safe methods, RFC 9110 section 9.2.1. */
    private const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

    private static InvalidationClient|false|null $client = null;

    private static ?Log $log = null;

    private static ?ChangeDelivery $way = null;

    private function __construct()
    {
    }

    /**
     * @param InvalidationClient|false|null $client       false: off; null: from the environment
     * @param list<string>|null  $sharedCookies as of SharedCookies::configure()
     */
    public static function set(InvalidationClient|false|null $client, Log $log, ?ChangeDelivery $way, ?array $sharedCookies): void
    {
        SharedCookies::configure($sharedCookies);
        [self::$client, self::$log, self::$way] = [$client, $log, $way];
    }

    /**
     * Returns the way for changes that a response could carry.
     *
     * @throws InvalidConfiguration the environment names neither
     */
    public static function way(): ChangeDelivery
    {
        return self::$way ?? ChangeDelivery::fromEnvironment();
    }

    /** Returns the log for failures. */
    public static function log(): Log
    {
        return self::$log ?? new Log();
    }

    /**
     * The control interface.
     *
     * @param InvalidationClient|false|null $own the one of the request; null: as configured
     *
     * @return InvalidationClient|null null if it is switched off
     */
    public static function client(InvalidationClient|false|null $own): ?InvalidationClient
    {
        $client = $own ?? self::$client ?? SocketClient::fromEnvironment();
        return $client === false ? null : $client;
    }

    /** Whether a request of this method may write; null stands for a command. */
    public static function isWrite(?string $method): bool
    {
        return $method !== null && !in_array($method, self::SAFE, true);
    }

    /**
     * Refuses values that would lose changes, when a request begins that may write. Pages do not
     * fail because of them.
     *
     * @param InvalidationClient|false|null $own as of client()
     *
     * @throws InvalidConfiguration a value of the environment is not allowed, or two settings contradict each other
     */
    public static function check(?string $method, InvalidationClient|false|null $own = null): void
    {
        if (self::isWrite($method)) {
            Environment::check();
            if (self::way() === ChangeDelivery::Control && self::client($own) === null) {
                throw new InvalidConfiguration(self::WITHOUT_CONTROL);
            }
        }
    }
}
