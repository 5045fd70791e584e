<?php

/**
 * The WordPress plugin's client of the control interface, where something answers that is slow.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Glue;

use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressControlTest extends TestCase
{
    /** @dataProvider slowServers */
    #[DataProvider('slowServers')]
    public function testACallHasOneDeadlineForEverything(string $serves): void
    {
        $listens = '$s = stream_socket_server("tcp://127.0.0.1:0"); echo stream_socket_get_name($s, false), "\n"; $c = stream_socket_accept($s, 20); stream_set_blocking($c, false); ';
        $server = proc_open([PHP_BINARY, '-r', $listens . $serves], [0 => ['pipe', 'r'], 1 => ['pipe', 'w']], $pipes);
        self::assertIsResource($server);
        try {
            $plugin = __DIR__ . '/../../../wordpress/pagewell/src';
            $calls = "define('ABSPATH', '/'); function is_multisite() { return false; } define('PAGEWELL_ADMIN', '" . trim((string) fgets($pipes[1])) . "'); spl_autoload_register(static fn (string \$class) => require '$plugin/' . strtr(substr(\$class, 19), '\\\\', '/') . '.php');"
                . ' echo Pagewell\WordPress\Tell\Control::invalidate(array_fill(0, 1000, str_repeat("x", 8000)));';
            [$code, $printed] = RealPagewell::command($calls, []);
            self::assertSame(0, $code);
            self::assertStringEndsWith('did not answer within 3 seconds', $printed);
        } finally {
            fclose($pipes[0]);
            proc_close($server);
        }
    }

    /** @return iterable<string, array{string}> each ends when its standard input does */
    public static function slowServers(): iterable
    {
        $until = '[$ready, $none] = [[STDIN], []]; if (stream_select($ready, $none, $none, 0, 200_000) === 1) { exit; } ';
        yield 'one that reads nothing' => ["while (true) { $until }"];
        yield 'one that reads all, and answers byte by byte' => ["while (true) { $until fread(\$c, 10_000_000); @fwrite(\$c, 'H'); }"];
    }
}
