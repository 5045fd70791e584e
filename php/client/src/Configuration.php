<?php

/**
 * The configuration that an application sets for the whole process. Everything else is read from
 * the environment.
 *
 *     Outgoing::configure(new SocketControl('unix:/run/pagewell/admin.sock'), log: $logger)
 *
 * A configuration that would lose changes is refused when a request begins that may write, and
 * never after the write.
 */

declare(strict_types=1);

namespace Pagewell;

/** The configuration of the process. */
final class Configuration
{
    /** The message for two settings that contradict each other. */
    public const WITHOUT_CONTROL = 'Changes are to be sent to the control interface (PAGEWELL_CHANGES=control), which is switched off (PAGEWELL_ADMIN=off).';

    /** Safe methods, RFC 9110 section 9.2.1. */
    private const SAFE = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

    private static Control|false|null $control = null;

    private static ?Log $log = null;

    private static ?ChangesBy $way = null;

    private function __construct()
    {
    }

    /**
     * @param Control|false|null $control       false: off; null: from the environment
     * @param list<string>|null  $sharedCookies as of SharedCookies::configure()
     */
    public static function set(Control|false|null $control, Log $log, ?ChangesBy $way, ?array $sharedCookies): void
    {
        SharedCookies::configure($sharedCookies);
        [self::$control, self::$log, self::$way] = [$control, $log, $way];
    }

    /**
     * Returns the way for changes that a response could carry.
     *
     * @throws InvalidControl the environment names neither
     */
    public static function way(): ChangesBy
    {
        return self::$way ?? ChangesBy::fromEnvironment();
    }

    /** Returns the log for failures. */
    public static function log(): Log
    {
        return self::$log ?? new Log();
    }

    /**
     * The control interface.
     *
     * @param Control|false|null $own the one of the request; null: as configured
     *
     * @return Control|null null if it is switched off
     */
    public static function control(Control|false|null $own): ?Control
    {
        $control = $own ?? self::$control ?? SocketControl::fromEnvironment();
        return $control === false ? null : $control;
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
     * @param Control|false|null $own as of control()
     *
     * @throws InvalidControl a value of the environment is not allowed, or two settings contradict each other
     */
    public static function check(?string $method, Control|false|null $own = null): void
    {
        if (self::isWrite($method)) {
            Environment::check();
            if (self::way() === ChangesBy::Control && self::control($own) === null) {
                throw new InvalidControl(self::WITHOUT_CONTROL);
            }
        }
    }
}
