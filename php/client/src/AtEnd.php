<?php

/**
 * What is to be done when the request or the command ends, in a process that may answer many.
 *
 *     the process (or PHP's request) ends     everything is done, in the order in which it was said
 *     Outgoing::begin(), a further request    the same, but for what concerns the response before it
 *
 * PHP is asked once, however many requests and jobs there are: what register_shutdown_function() is
 * given it keeps until the process ends. A function of the application's that calls exit() there keeps
 * PHP from calling those behind it; objects are still taken down after that, and one of ours is.
 */

declare(strict_types=1);

namespace Pagewell;

/** The end of the request. */
final class AtEnd
{
    /** @var list<array{callable(): void, bool}> what, and whether it concerns the response */
    private static array $waiting = [];

    private static bool $registered = false;

    private static ?self $last = null;

    private function __construct()
    {
    }

    /** PHP takes down what is left, when all functions for the end were called or given up. */
    public function __destruct()
    {
        self::run();
    }

    /**
     * Has a function called once.
     *
     * @param callable(): void $then
     * @param bool             $toResponse it writes to the response, and is forgotten when the next one begins
     */
    public static function call(callable $then, bool $toResponse = false): void
    {
        self::$waiting[] = [$then, $toResponse];
        if (!self::$registered) {
            self::$registered = true;
            self::$last ??= new self();
            register_shutdown_function(static function (): void {
                // Who says something in a function of his own that PHP calls later is asked for again.
                self::$registered = false;
                self::run();
            });
        }
    }

    /** Another request begins. */
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
                // What else waits is done all the same.
                Configuration::log()->warn("pagewell: {$fault->getMessage()}", $fault);
            }
        }
    }

    /** How much there is to be done. */
    public static function count(): int
    {
        return count(self::$waiting);
    }
}
