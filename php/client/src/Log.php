<?php

/**
 * The log for failures that do not break a page.
 *
 * It is PHP's error log, unless the application passes a PSR-3 logger or a function. Only failures
 * are logged.
 */

declare(strict_types=1);

namespace Pagewell;

/**
 * Writes warnings for the operator.
 *
 * @internal
 */
final class Log
{
    /**
     * @param \Psr\Log\LoggerInterface|\Closure(string): void|null $to null means error_log()
     */
    public function __construct(private readonly \Psr\Log\LoggerInterface|\Closure|null $to = null)
    {
    }

    /** Logs one warning, on one line. If the application's logger throws, PHP's error log is used. */
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
