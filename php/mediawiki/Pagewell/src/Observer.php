<?php

/**
 * Calls the handlers of MediaWiki's hooks, so that none of them can end a request.
 *
 *     a handler that reads fails       the page is not stored; the log has a line
 *     a handler of a change fails      every page is purged; the log has a line
 *
 * MediaWiki's classes differ between its versions, and other extensions call hooks with arguments of their own.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/**
 * Wraps an object with handlers; extension.json names its factories.
 *
 * @internal
 */
final class Observer
{
    /** MediaWiki ends a request that takes too long by an exception of this name, which may come at any place. */
    private const TIMEOUT = 'Wikimedia\RequestTimeout\TimeoutException';

    private function __construct(private readonly object $handlers, private readonly bool $isWriting)
    {
    }

    public static function ofReads(): self
    {
        return new self(new ReadHooks(), false);
    }

    public static function ofApi(): self
    {
        return new self(new ApiReads(), false);
    }

    public static function ofParser(): self
    {
        return new self(new ParserCacheCheck(), false);
    }

    public static function ofFiles(): self
    {
        return new self(new FileEvents(), true);
    }

    public static function ofPages(): self
    {
        return new self(new PageEvents(), true);
    }

    public static function ofSite(): self
    {
        return new self(new SiteEvents(), true);
    }

    /**
     * Calls a handler. It may change no argument.
     *
     * @param array<mixed> $arguments
     */
    public function __call(string $handler, array $arguments): mixed
    {
        return self::watch($handler, $this->isWriting, fn (): mixed => $this->handlers->$handler(...$arguments));
    }

    /** Calls a function; returns null where it fails. */
    public static function watch(string $name, bool $isWriting, \Closure $function): mixed
    {
        try {
            return $function();
        } catch (\Throwable $fault) {
            if (is_a($fault, self::TIMEOUT)) {
                throw $fault;
            }
            error_log("pagewell: $name failed; " . ($isWriting ? 'every page is purged' : 'the page is not cached') . ": {$fault->getMessage()} in {$fault->getFile()}:{$fault->getLine()}");
            Page::refuse(Refusal::Unobserved);
            $isWriting && self::purgeEverything();
            return null;
        }
    }

    private static function purgeEverything(): void
    {
        try {
            ChangeQueue::addEverything();
        } catch (\Throwable $fault) {
            error_log("pagewell: a change could not be sent; run: pagewell purge --all: {$fault->getMessage()}");
        }
    }
}
