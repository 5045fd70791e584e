<?php

/**
 * The control interface by socket, where it is not Pagewell that answers, or nobody does.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\ControlAway;
use Pagewell\ControlUnreadable;
use Pagewell\Invalidation;
use Pagewell\InvalidControl;
use Pagewell\Outgoing;
use Pagewell\RecordingWire;
use Pagewell\SocketControl;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\TestCase;

final class SocketControlTest extends TestCase
{
    public function testTheCommandIsForTheSiteThatCouldNotBeTold(): void
    {
        $logged = [];
        Outgoing::configure(log: static function (string $text) use (&$logged): void {
            $logged[] = $text;
        });
        Outgoing::begin(new RecordingWire(null), new SocketControl('127.0.0.1:1', site: 'shop.example'));
        Outgoing::current()->changed('news', 4);
        Outgoing::current()->end();
        self::assertStringEndsWith("When it is back: pagewell invalidate --site 'shop.example' --tag 'news' --tag 'news:4'", $logged[0]);
        Outgoing::configure();
        Outgoing::begin();
    }

    /** @dataProvider addresses */
    public function testAnAddressThatIsNone(string $address): void
    {
        $this->expectException(InvalidControl::class);
        (new SocketControl($address))->invalidate(new Invalidation(['a']));
    }

    /** @return iterable<array{string}> */
    public static function addresses(): iterable
    {
        yield from [[''], ['8081'], ['localhost'], ["127.0.0.1:8081\r\nX: y"], ['http://127.0.0.1:8081'], ['tls://127.0.0.1:1']];
    }

    public function testATokenThatCannotBeRead(): void
    {
        $this->expectException(InvalidControl::class);
        (new SocketControl(tokenFile: '/nowhere/at/all'))->invalidate(new Invalidation(['a']));
    }

    public function testWarningsThatAnApplicationMakesExceptionsOfAreItsOwn(): void
    {
        $strict = 'set_error_handler(static fn (int $level, string $text) => throw new ErrorException($text)); ';
        $library = 'require ' . var_export(__DIR__ . '/bootstrap.php', true) . "; $strict try { Pagewell\\changedNow('news'); } catch (Pagewell\\ControlAway) { echo 'away'; }";
        $more = " try { (new Pagewell\\SocketControl('127.0.0.1:1', '/nowhere'))->invalidate(new Pagewell\\Invalidation(['news'])); } catch (Pagewell\\InvalidControl) { echo ', no token'; } echo \$undefined;";
        self::assertSame('away, no token', $this->printed("$library $more"));
        $plugin = __DIR__ . '/../../wordpress/pagewell/src/Control.php';
        self::assertSame('no connection', $this->printed("define('ABSPATH', '/'); define('PAGEWELL_ADMIN', '127.0.0.1:1'); require '$plugin'; $strict echo substr(Pagewell\\WordPress\\Control::health(), 0, 13); echo \$undefined;"));
    }

    /** What a script prints that ends with an exception of a warning: nobody has taken its handler away. */
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
        $this->expectException(ControlAway::class);
        $this->expectExceptionMessage('did not answer within');
        (new SocketControl((string) stream_socket_get_name($listening, false), timeoutSeconds: 0.05))->invalidate(new Invalidation(['a']));
    }

    /**
     * @dataProvider answers
     *
     * @param class-string<\Throwable> $thrown
     */
    public function testWhatAnswersIsNotPagewell(string $answer, string $thrown): void
    {
        $script = '$s = stream_socket_server("tcp://127.0.0.1:0"); echo stream_socket_get_name($s, false), "\n"; $c = stream_socket_accept($s, 20);'
            . ' while (trim((string) fgets($c)) !== ""); fread($c, 14); fwrite($c, ' . var_export($answer, true) . ');';
        $process = proc_open([PHP_BINARY, '-r', $script], [1 => ['pipe', 'w']], $pipes);
        self::assertIsResource($process);
        try {
            $this->expectException($thrown);
            (new SocketControl(trim((string) fgets($pipes[1])), timeoutSeconds: 20))->invalidate(new Invalidation(['a']));
        } finally {
            proc_close($process);
        }
    }

    /** @return iterable<string, array{string, class-string<\Throwable>}> */
    public static function answers(): iterable
    {
        yield 'nothing' => ['', ControlAway::class];
        yield 'another protocol' => ["SSH-2.0-OpenSSH_9.2p1\r\n", ControlUnreadable::class];
        yield 'a page' => ["HTTP/1.1 200 OK\r\n\r\n<!doctype html>", ControlUnreadable::class];
        yield 'an error page' => ["HTTP/1.1 404 Not Found\r\n\r\n<!doctype html>", ControlUnreadable::class];
        yield 'other JSON' => ["HTTP/1.1 200 OK\r\n\r\n{\"dropped\":\"3\"}", ControlUnreadable::class];
        yield 'no end' => ["HTTP/1.1 200 OK\r\n" . str_repeat("X: y\r\n", 20_000), ControlUnreadable::class];
    }
}
