<?php

/**
 * PHP's one place for a function that is called right before the header section is sent.
 *
 *     the library is loaded, a request begins    the place is taken
 *     the application registers its own          PHP drops ours, and calls the application's
 *     the header section is about to be sent     ours is called, if it still has the place
 *
 * header_register_callback() replaces the function that was there, and nobody can ask for it. So the place
 * is taken as the library is loaded, before the application begins, and never again: what the application
 * registers stays. PHP alone holds our object; that it is gone shows that the place is lost.
 */

declare(strict_types=1);

namespace Pagewell;

/** The function that PHP calls before it sends the header section. */
final class HeaderCallback
{
    /** @var \WeakReference<self>|null */
    private static ?\WeakReference $registered = null;

    /** When the request began for which the place was taken, as PHP says it. */
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

    /** Takes the place, once for each request that PHP serves. */
    public static function claim(): void
    {
        $request = $_SERVER['REQUEST_TIME_FLOAT'] ?? self::$request ?? 0.0;
        if ($request === self::$request || headers_sent() || (new PhpWire())->method() === null) {
            return;
        }
        self::$request = $request;
        self::$then = null;
        $callback = new self();
        self::$registered = \WeakReference::create($callback);
        header_register_callback($callback);
    }

    /** Whether PHP will call ours: the application has registered none of its own since. */
    public static function isOurs(): bool
    {
        return self::$registered?->get() !== null;
    }

    /** @param callable(): void $then called once, before the header section is sent */
    public static function call(callable $then): void
    {
        self::$then = $then;
    }

    /** The header section is about to be sent. */
    public static function run(): void
    {
        [$then, self::$then] = [self::$then, null];
        $then !== null && $then();
    }
}
