<?php

/**
 * Runs a script in a PHP process of its own as Pagewell's php-fpm would, and receives what it reports.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class CaptureListener
{
    private const TOKEN = '00112233445566778899aabbccddeeff';

    /** The output of the last script. */
    public static string $output = '';

    /**
     * @param string                $code     PHP that runs with the library loaded
     * @param array<string, string> $settings of PHP
     * @return array{string, list<string>} why the list is incomplete, and the statements
     */
    public static function run(string $code, string $database = 'paper', array $settings = []): array
    {
        $path = sys_get_temp_dir() . '/pagewell-capture-' . bin2hex(random_bytes(6));
        $server = stream_socket_server("unix://$path") ?: throw new \RuntimeException("no socket at $path");
        $autoload = var_export(realpath(__DIR__ . '/../../client/autoload.php'), true);
        $parameters = var_export(['PAGEWELL_CAPTURE' => $path, 'PAGEWELL_CAPTURE_TOKEN' => self::TOKEN, 'PAGEWELL_CAPTURE_DATABASE' => $database], true);
        $options = array_map(static fn (string $name, string $value): string => "-d$name=$value", array_keys($settings), $settings);
        $log = tempnam(sys_get_temp_dir(), 'pagewell-capture-log-');
        $streams = [['pipe', 'r'], ['file', $log, 'w'], ['file', $log, 'w']];
        $process = proc_open([PHP_BINARY, ...$options], $streams, $pipes) ?: throw new \RuntimeException('PHP does not start');
        fwrite($pipes[0], "<?php\n\$_SERVER = $parameters + \$_SERVER;\nrequire $autoload;\n$code");
        fclose($pipes[0]);
        // The process connects before it ends, so the connection waits here afterwards. Its report fits the buffer.
        proc_close($process);
        $client = @stream_socket_accept($server, 0);
        $report = $client === false ? '' : (string) stream_get_contents($client);
        unlink($path);
        self::$output = $output = (string) file_get_contents($log);
        unlink($log);
        if ($report === '') {
            throw new \RuntimeException("no report: $output");
        }
        return self::parse($report, $output);
    }

    /** @return array{string, list<string>} */
    private static function parse(string $report, string $output): array
    {
        [$reason, $statements, $kinds, $at] = ['', [], '', strlen("pagewell-capture 1\n")];
        while ($at < strlen($report)) {
            $length = unpack('N', $report, $at + 1)[1];
            $content = substr($report, $at + 5, $length);
            $kinds .= $report[$at];
            match ($report[$at]) {
                'I' => $reason = $content,
                'H' => $reason = "hidden: $content",
                'S' => $statements[] = $content,
                'T' => $content === self::TOKEN || throw new \RuntimeException("the token $content"),
                'V', 'D', 'E' => null,
            };
            $at += 5 + $length;
        }
        if (preg_match('/^TV(?:I|H|S*D)E$/D', $kinds) !== 1) {
            throw new \RuntimeException("a report of $kinds: $output");
        }
        return [$reason, $statements];
    }
}
