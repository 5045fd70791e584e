<?php

/**
 * Functions to call when the request or the command ends, in a process that may answer many
 * requests.
 *
 *     the process (or PHP's request) ends     all are called, in the order of registration
 *     RequestScope::begin(), a further request    the same, without those for the previous response
 *
 * One function is registered in PHP for all requests and jobs, because PHP keeps what
 * register_shutdown_function() gets until the process ends. If a function of the application calls
 * exit() there, PHP does not call the later ones. It still destroys objects after that, and this
 * library registers one.
 */

declare(strict_types=1);

namespace Pagewell;

/**
 * The end of the request.
 *
 * @internal
 */
final class RequestEnd
{
    /** @var list<array{callable(): void, bool}> the function, and whether it concerns the response */
    private static array $waiting = [];

    private static bool $registered = false;

    private static ?self $last = null;

    private function __construct()
    {
    }

    /** PHP destroys the remaining objects after all shutdown functions were called or abandoned. */
    public function __destruct()
    {
        self::run();
    }

    /**
     * Registers a function that is called once.
     *
     * @param callable(): void $then
     * @param bool             $toResponse it writes to the response, and is discarded when the next one begins
     */
    public static function call(callable $then, bool $toResponse = false): void
    {
        self::$waiting[] = [$then, $toResponse];
        if (!self::$registered) {
            self::$registered = true;
            self::$last ??= new self();
            register_shutdown_function(static function (): void {
                // If a later shutdown function of the application declares something, it is
                // registered again.
                self::$registered = false;
                self::run();
            });
        }
    }

    /** Ends the previous request, because another one begins in the same process. */
    public static function next(): void
    {
        self::$waiting = array_values(array_filter(self::$waiting, static fn (array $done): bool => !$done[1]));
        self::run();
    }

    private static function run(): void
    {
        while (self::$waiting !== []) {
            try {
                array_shift(self::$waiting)[0]();
            } catch (\Throwable $fault) {
                // The other functions are called anyway.
                Configuration::log()->warn("pagewell: {$fault->getMessage()}", $fault);
            }
        }
    }

    /** The number of registered functions. */
    public static function count(): int
    {
        return count(self::$waiting);
    }
}
