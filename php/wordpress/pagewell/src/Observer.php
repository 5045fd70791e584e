<?php

/**
 * Hooks that only look at what WordPress does, and never change what a visitor gets.
 *
 * WordPress and other plugins call hooks at any time and with any arguments, also before WordPress is ready. A
 * function that fails here must not end the page that it looks at. So each is called through this class: a failure
 * makes the page unstorable, because its dependencies are incomplete, and the log has a line.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

use Pagewell\WordPress\Core\Refusal;

/**
 * Calls functions that observe.
 *
 * @internal
 */
final class Observer
{
    /** @var array<string, true> hooks whose functions have failed */
    private static array $failed = [];

    /** The exception of another plugin's code that one of our functions has called. */
    private static ?\Throwable $passing = null;

    /** Returns a function for a hook. Where the given one fails, it returns its first argument. */
    public static function of(string $hook, callable $function): \Closure
    {
        return static function (mixed ...$given) use ($hook, $function): mixed {
            try {
                return $function(...$given);
            } catch (\Throwable $fault) {
                if ($fault === self::$passing) {
                    throw $fault;
                }
                self::fail($hook, $fault);
                return $given[0] ?? null;
            }
        };
    }

    /**
     * Calls code of the site from a function that observes, as WordPress would call it: what it throws is its own
     * affair.
     */
    public static function pass(\Closure $code): mixed
    {
        try {
            return $code();
        } catch (\Throwable $fault) {
            self::$passing = $fault;
            throw $fault;
        }
    }

    /** Whether a function has failed in this request. */
    public static function hasFailed(): bool
    {
        return self::$failed !== [];
    }

    /** The page is not stored. At once, because it may never reach the decision (CacheHeaders). */
    private static function fail(string $hook, \Throwable $fault): void
    {
        if (!headers_sent()) {
            header('Pagewell-Cache-Control: no-store');
            header('X-Pagewell-Refusal: ' . Refusal::Unobserved->value);
        }
        if (!isset(self::$failed[$hook])) {
            self::$failed[$hook] = true;
            error_log("pagewell: a function for the hook $hook failed; the page is not cached: {$fault->getMessage()} in {$fault->getFile()}:{$fault->getLine()}");
        }
    }
}
