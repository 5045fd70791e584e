<?php

/**
 * The control interface by socket, where it is not Pagewell that answers, or nobody does.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Exception\UnreadableResponse;
use Pagewell\Core\Invalidation;
use Pagewell\Core\SocketClient;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Tests\Support\BuiltPlugin;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class SocketClientTest extends TestCase
{
    public function testTheCommandIsForTheSiteThatCouldNotBeTold(): void
    {
        $logged = [];
        Configuration::set(log: static function (string $text) use (&$logged): void {
            $logged[] = $text;
        });
        RequestScope::begin(new RecordingChannel(null), new SocketClient('127.0.0.1:1', site: 'shop.example'));
        RequestScope::current()->changed('news', 4);
        RequestScope::current()->end();
        self::assertStringEndsWith("Old pages may be served until they are purged: pagewell purge --site 'shop.example' --tag 'news' --tag 'news:4'", $logged[0]);
        Configuration::reset();
        RequestScope::begin();
    }

    /** @dataProvider addresses */
    #[DataProvider('addresses')]
    public function testAnAddressThatIsNone(string $address): void
    {
        $this->expectException(InvalidConfiguration::class);
        (new SocketClient($address))->invalidate(new Invalidation(['a']));
    }

    /** @return iterable<array{string}> */
    public static function addresses(): iterable
    {
        yield from [[''], ['8081'], ['localhost'], ["127.0.0.1:8081\r\nX: y"], ['http://127.0.0.1:8081'], ['tls://127.0.0.1:1']];
    }

    public function testATokenThatCannotBeRead(): void
    {
        $this->expectException(InvalidConfiguration::class);
        (new SocketClient(tokenFile: '/nowhere/at/all'))->invalidate(new Invalidation(['a']));
    }

    public function testWarningsThatAnApplicationMakesExceptionsOfAreItsOwn(): void
    {
        $strict = 'set_error_handler(static fn (int $level, string $text) => throw new ErrorException($text)); ';
        $library = 'require ' . var_export(__DIR__ . '/../../tests/bootstrap.php', true) . "; $strict try { Pagewell\\changedNow('news'); } catch (Pagewell\\Core\\Exception\\PagewellUnreachable) { echo 'away'; }";
        $more = " try { (new Pagewell\\Core\\SocketClient('127.0.0.1:1', '/nowhere'))->invalidate(new Pagewell\\Core\\Invalidation(['news'])); } catch (Pagewell\\Core\\Exception\\InvalidConfiguration) { echo ', no token'; } echo \$undefined;";
        self::assertSame('away, no token', $this->printed("$library $more"));
        $plugin = BuiltPlugin::path('wordpress') . '/src';
        $load = "spl_autoload_register(static fn (string \$class) => require '$plugin/' . strtr(substr(\$class, 19), '\\\\', '/') . '.php');";
        self::assertSame('Pagewell is not', $this->printed("define('ABSPATH', '/'); define('PAGEWELL_ADMIN', '127.0.0.1:1'); $load $strict echo substr(Pagewell\\WordPress\\Purge\\ControlClient::health(), 0, 15); echo \$undefined;"));
    }

    /** Returns the output of a script that ends with an exception of a warning: nobody has taken its handler away. */
    private function printed(string $script): string
    {
        [$code, $printed, $logged] = RealPagewell::command($script, ['PAGEWELL_ADMIN' => '127.0.0.1:1']);
        self::assertSame(255, $code, $logged);
        self::assertStringContainsString('Undefined variable $undefined', $logged);
        return $printed;
    }

    public function testOneThatTakesTheCallAndNeverAnswers(): void
    {
        $listening = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($listening);
        $this->expectException(PagewellUnreachable::class);
        $this->expectExceptionMessage('did not answer within');
        (new SocketClient((string) stream_socket_get_name($listening, false), timeoutSeconds: 0.05))->invalidate(new Invalidation(['a']));
    }

    /**
     * @dataProvider answers
     *
     * @param class-string<\Throwable> $thrown
     */
    #[DataProvider('answers')]
    public function testWhatAnswersIsNotPagewell(string $answer, string $thrown): void
    {
        $script = '$s = stream_socket_server("tcp://127.0.0.1:0"); echo stream_socket_get_name($s, false), "\n"; $c = stream_socket_accept($s, 60);'
            . ' while (trim((string) fgets($c)) !== ""); fread($c, 14); fwrite($c, ' . var_export($answer, true) . ');';
        $process = proc_open([PHP_BINARY, '-r', $script], [1 => ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        try {
            $this->expectException($thrown);
            (new SocketClient(trim((string) fgets($pipes[1])), timeoutSeconds: 60))->invalidate(new Invalidation(['a']));
        } finally {
            proc_close($process);
        }
    }

    /** @return iterable<string, array{string, class-string<\Throwable>}> */
    public static function answers(): iterable
    {
        yield 'nothing' => ['', PagewellUnreachable::class];
        yield 'another protocol' => ["SSH-2.0-OpenSSH_9.2p1\r\n", UnreadableResponse::class];
        yield 'a page' => ["HTTP/1.1 200 OK\r\n\r\n<!doctype html>", UnreadableResponse::class];
        yield 'an error page' => ["HTTP/1.1 404 Not Found\r\n\r\n<!doctype html>", UnreadableResponse::class];
        yield 'other JSON' => ["HTTP/1.1 200 OK\r\n\r\n{\"dropped\":\"3\"}", UnreadableResponse::class];
        yield 'no end' => ["HTTP/1.1 200 OK\r\n" . str_repeat("X: y\r\n", 20_000), UnreadableResponse::class];
    }
}
