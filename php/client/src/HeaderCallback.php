<?php

/**
 * The only function that PHP calls right before it sends the header section.
 *
 *     the library is loaded, a request begins    ours is registered
 *     the application registers its own          PHP drops ours, and calls the other one
 *     the header section is about to be sent     ours is called, if it is still registered
 *
 * header_register_callback() replaces the earlier function, which cannot be queried. So ours is
 * registered once, when the library is loaded, before the application begins. A function of the
 * application then stays. Only PHP holds our object: if it is destroyed, ours was replaced.
 */

declare(strict_types=1);

namespace Pagewell;

/**
 * The function that PHP calls before it sends the header section.
 *
 * @internal
 */
final class HeaderCallback
{
    /** @var \WeakReference<self>|null */
    private static ?\WeakReference $registered = null;

    /** The start time of the request for which ours was registered, from PHP. */
    private static mixed $request = null;

    /** @var (callable(): void)|null */
    private static $then = null;

    private function __construct()
    {
    }

    /** Called by PHP. */
    public function __invoke(): void
    {
        self::run();
    }

    /** Registers ours, once for each request that PHP serves. */
    public static function claim(): void
    {
        $request = $_SERVER['REQUEST_TIME_FLOAT'] ?? self::$request ?? 0.0;
        if ($request === self::$request || headers_sent() || (new PhpChannel())->method() === null) {
            return;
        }
        self::$request = $request;
        self::$then = null;
        $callback = new self();
        self::$registered = \WeakReference::create($callback);
        header_register_callback($callback);
    }

    /** Whether PHP will call ours, because the application has not registered its own. */
    public static function isOurs(): bool
    {
        return self::$registered?->get() !== null;
    }

    /** @param callable(): void $then called once, before the header section is sent */
    public static function call(callable $then): void
    {
        self::$then = $then;
    }

    /** Runs the function, because the header section is about to be sent. */
    public static function run(): void
    {
        [$then, self::$then] = [self::$then, null];
        $then !== null && $then();
    }
}
