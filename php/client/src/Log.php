<?php

/**
 * Where the library says what went wrong without breaking a page.
 *
 * PHP's own error log, until an application gives its PSR-3 logger or a function. Nothing is
 * said while all is well.
 */

declare(strict_types=1);

namespace Pagewell;

/** Says what an operator should know. */
final class Log
{
    /**
     * @param \Psr\Log\LoggerInterface|\Closure(string): void|null $to null means error_log()
     */
    public function __construct(private readonly \Psr\Log\LoggerInterface|\Closure|null $to = null)
    {
    }

    /** Says one thing, on one line. A logger that fails is not heard of again. */
    public function warn(string $text, ?\Throwable $cause = null): void
    {
        try {
            match (true) {
                $this->to === null => error_log($text),
                $this->to instanceof \Closure => ($this->to)($text),
                default => $this->to->warning($text, $cause === null ? [] : ['exception' => $cause]),
            };
        } catch (\Throwable) {
            error_log($text);
        }
    }
}
