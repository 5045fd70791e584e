<?php

/**
 * PHP's own web server in front of a site, as another web server is: it passes on the fields of the request. One
 * request; the port is the system's choice.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class PlainServer
{
    /**
     * @param array<string, string> $environment
     * @param string ...$lines fields of the request
     *
     * @return array{string, array<string, list<string>>, int} the content, fields by lower-case name, the size of the header section
     */
    public static function ask(string $directory, array $environment, string $method, string $path, string ...$lines): array
    {
        $process = proc_open([PHP_BINARY, '-d', 'error_log=/dev/null', '-d', 'output_buffering=0', '-S', '127.0.0.1:0', '-t', $directory], [2 => ['pipe', 'w']], $pipes, null, $environment + getenv());
        do {
            [$ready, $none] = [[$pipes[2]], []];
            $line = stream_select($ready, $none, $none, 60) === 1 ? fgets($pipes[2]) : false;
        } while ($line !== false && preg_match('~\((http://\S+)\) started~', $line, $found) !== 1);
        $options = ['method' => $method, 'content' => '', 'header' => implode("\r\n", $lines), 'timeout' => 60, 'ignore_errors' => true, 'follow_location' => 0];
        $content = (string) file_get_contents(($found[1] ?? '') . $path, false, stream_context_create(['http' => $options]));
        proc_terminate($process);
        proc_close($process);
        $fields = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(':', $line, 2) + ['', ''];
            $fields[strtolower($name)][] = trim($value);
        }
        return [$content, $fields, strlen(implode("\r\n", $http_response_header))];
    }
}
