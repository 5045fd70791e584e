<?php

/**
 * Commands that a test runs, and whose failure ends it.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

trait Execution
{
    /**
     * @param list<string>          $command
     * @param array<string, string> $environment
     */
    private static function execute(array $command, ?string $directory = null, array $environment = []): string
    {
        $faults = tmpfile();
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => $faults], $pipes, $directory, $environment + getenv());
        $printed = is_resource($process) ? (string) stream_get_contents($pipes[1]) : '';
        if (!is_resource($process) || proc_close($process) !== 0) {
            rewind($faults);
            throw new \RuntimeException("{$command[0]}: $printed" . stream_get_contents($faults));
        }
        return $printed;
    }
}
