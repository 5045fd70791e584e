<?php

/**
 * The WordPress plugin's client of the control interface: the constants of wp-config.php, right and
 * wrong ones, and something that answers slowly.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BuiltPlugin;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class WordPressControlTest extends TestCase
{
    /** @dataProvider slowServers */
    #[DataProvider('slowServers')]
    public function testACallHasOneDeadlineForEverything(string $serves): void
    {
        $listens = '$s = stream_socket_server("tcp://127.0.0.1:0"); echo stream_socket_get_name($s, false), "\n"; $c = stream_socket_accept($s, 60); stream_set_blocking($c, false); ';
        $server = proc_open([PHP_BINARY, '-r', $listens . $serves], [0 => ['pipe', 'r'], 1 => ['pipe', 'w']], $pipes);
        self::assertIsResource($server);
        try {
            $printed = self::call("define('PAGEWELL_ADMIN', '" . trim((string) fgets($pipes[1])) . "');", 'invalidate(array_fill(0, 1000, str_repeat("x", 8000)))');
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

    /** @dataProvider mistakes */
    #[DataProvider('mistakes')]
    public function testAWrongConstantIsAFailureWithAReason(string $constants, string $failure): void
    {
        self::assertStringContainsString($failure, self::call($constants, "invalidate(['post:1'])"));
    }

    /** @return iterable<string, array{string, string}> */
    public static function mistakes(): iterable
    {
        $write = 'write an address (127.0.0.1:8081), a socket (unix:/run/pagewell/admin.sock) or off';
        yield 'no port' => ["define('PAGEWELL_ADMIN', 'localhost');", "PAGEWELL_ADMIN is 'localhost': $write"];
        yield 'nothing' => ["define('PAGEWELL_ADMIN', '');", "PAGEWELL_ADMIN is '': $write"];
        yield 'a port alone' => ["define('PAGEWELL_ADMIN', 8081);", 'PAGEWELL_ADMIN is no text, but of the type int'];
        yield 'a list' => ["define('PAGEWELL_SITE', ['example.org']);", 'PAGEWELL_SITE is no text, but of the type array'];
        yield 'an object' => ["define('PAGEWELL_TOKEN_FILE', new stdClass());", 'PAGEWELL_TOKEN_FILE is no text, but of the type stdClass'];
        yield 'a token in lines' => ['define("PAGEWELL_TOKEN", "secret\r\nHost: elsewhere");', 'PAGEWELL_TOKEN is no token'];
        yield 'a file that is not there' => ["define('PAGEWELL_TOKEN_FILE', '/nowhere/token');", '/nowhere/token cannot be read'];
        yield 'switched off' => ["define('PAGEWELL_ADMIN', 'off'); define('PAGEWELL_SITE', 4);", 'The control interface is switched off (PAGEWELL_ADMIN=off)'];
    }

    /** @dataProvider tokens */
    #[DataProvider('tokens')]
    public function testTheTokenIsSent(string $constants, string $sent): void
    {
        $server = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($server);
        file_put_contents($file = sys_get_temp_dir() . '/pagewell-token-' . bin2hex(random_bytes(6)), "of-the-file\n");
        try {
            $constants = "define('PAGEWELL_ADMIN', '" . stream_socket_get_name($server, false) . "'); " . strtr($constants, ['a file' => $file]);
            $calling = proc_open([PHP_BINARY, '-r', self::script($constants, "explain('/', 60)")], [1 => ['pipe', 'w']], $pipes);
            self::assertIsResource($calling);
            $call = stream_socket_accept($server, 60);
            self::assertIsResource($call);
            self::assertStringContainsString("\r\nAuthorization: Bearer $sent\r\n", (string) fread($call, 8192));
            // The call ends without an answer.
            fclose($call);
            proc_close($calling);
        } finally {
            unlink($file);
        }
    }

    /** @return iterable<string, array{string, string}> */
    public static function tokens(): iterable
    {
        yield 'in wp-config.php' => ["define('PAGEWELL_TOKEN', 'of-the-constant ');", 'of-the-constant'];
        yield 'in a file' => ["define('PAGEWELL_TOKEN_FILE', 'a file');", 'of-the-file'];
        yield 'in both' => ["define('PAGEWELL_TOKEN_FILE', '/nowhere'); define('PAGEWELL_TOKEN', 'of-the-constant');", 'of-the-constant'];
    }

    /** Calls the client without WordPress; returns the failure that it reports. */
    private static function call(string $constants, string $call): string
    {
        [$code, $printed] = RealPagewell::command(self::script($constants, $call), []);
        self::assertSame(0, $code);
        return $printed;
    }

    /** A script that does so, and prints the failure. */
    private static function script(string $constants, string $call): string
    {
        $plugin = BuiltPlugin::path('wordpress') . '/src';
        $load = "spl_autoload_register(static fn (string \$class) => require '$plugin/' . strtr(substr(\$class, 19), '\\\\', '/') . '.php');";
        return "define('ABSPATH', '/'); function is_multisite() { return false; } $constants $load echo Pagewell\\WordPress\\Purge\\ControlClient::$call;";
    }
}
