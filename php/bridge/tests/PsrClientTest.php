<?php

/**
 * The control interface by a PSR-18 client: the messages are those of nyholm/psr7, and Pagewell is real.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Bridge;

use Nyholm\Psr7\Factory\Psr17Factory;
use Nyholm\Psr7\Response;
use Pagewell\Bridge\Psr18\HttpClient;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Exception\UnreadableResponse;
use Pagewell\Core\Invalidation;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseInterface;

use function Pagewell\changed;

final class PsrClientTest extends TestCase
{
    protected function setUp(): void
    {
        foreach (['Nyholm/Psr7/autoload.php', 'Psr/Http/Client/autoload.php'] as $autoload) {
            if (stream_resolve_include_path($autoload) === false) {
                self::markTestSkipped("$autoload is not installed");
            }
            require_once $autoload;
        }
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        RequestScope::begin();
    }

    public function testPagesArePurgedAndExplained(): void
    {
        $pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        try {
            $pagewell->ask('POST', '/setup');
            $pagewell->ask('POST', '/write/4');
            $pagewell->ask('GET', '/news/4');
            $client = self::client(self::by(substr($pagewell->admin(), 5)));
            self::assertTrue($client->explain($pagewell->address() . '/news/4')->isHit());
            self::assertSame(1, $client->invalidate(new Invalidation(['news:4']))->pages);
            self::assertFalse($client->explain($pagewell->address() . '/news/4')->isHit());
            $this->expectException(InvalidationRefused::class);
            self::client(self::by(substr($pagewell->admin(), 5)), site: 'elsewhere.test')->invalidate(new Invalidation(['news:4']));
        } finally {
            $pagewell->stop();
        }
    }

    public function testTheRequest(): void
    {
        $token = (string) tempnam(sys_get_temp_dir(), 'pagewell-token');
        file_put_contents($token, "secret\n");
        $sent = null;
        $client = self::client(static function (RequestInterface $request) use (&$sent): ResponseInterface {
            $sent = $request;
            return new Response(200, [], '{"dropped":3,"number":9}');
        }, 'https://cache.example/pagewell/', $token, 'shop.example');
        try {
            self::assertSame(3, $client->invalidate(new Invalidation(['a']))->pages);
        } finally {
            unlink($token);
        }
        self::assertSame(['POST', 'https://cache.example/pagewell/v1/invalidate', 'Bearer secret', 'application/json'], [$sent->getMethod(), (string) $sent->getUri(), $sent->getHeaderLine('Authorization'), $sent->getHeaderLine('Content-Type')]);
        self::assertSame('{"tags":["a"],"site":"shop.example"}', (string) $sent->getBody());
    }

    /**
     * @dataProvider answers
     *
     * @param class-string<\Throwable> $exception
     */
    #[DataProvider('answers')]
    public function testWhatElseAnswers(\Closure $send, string $exception, string $message): void
    {
        $this->expectException($exception);
        $this->expectExceptionMessage($message);
        self::client($send)->invalidate(new Invalidation(['a']));
    }

    /** @return iterable<string, array{\Closure, class-string<\Throwable>, string}> */
    public static function answers(): iterable
    {
        yield 'nobody' => [static fn () => throw new class ('Connection refused') extends \Exception implements ClientExceptionInterface {
        }, PagewellUnreachable::class, 'Pagewell is not at http://127.0.0.1:8081: Connection refused'];
        yield 'a page' => [static fn () => new Response(200, [], '<!doctype html>'), UnreadableResponse::class, 'Status 200. PAGEWELL_ADMIN names the address of another program'];
        yield 'a redirect' => [static fn () => new Response(302, ['Location' => '/']), UnreadableResponse::class, 'Status 302. '];
        yield 'without end' => [static fn () => new Response(200, [], str_repeat('[', 3_000_000)), UnreadableResponse::class, 'another program'];
        yield 'Pagewell, about the token' => [static fn () => new Response(401, [], '{"error":"token","explanation":"It is wrong."}'), InvalidationRefused::class, 'token'];
    }

    public function testAChangeIsSentByItAndTheCommandNamesItsSite(): void
    {
        $logged = [];
        Configuration::set(self::client(static fn () => throw new \RuntimeException('away'), site: 'shop.example'), static function (string $line) use (&$logged): void {
            $logged[] = $line;
        });
        RequestScope::begin($channel = new RecordingChannel(null));
        changed('news', 4);
        $channel->end();
        self::assertCount(1, $logged);
        self::assertStringContainsString("pagewell purge --site 'shop.example' --tag 'news'", $logged[0]);
    }

    public function testTheAddressIsAUrl(): void
    {
        $this->expectException(InvalidConfiguration::class);
        $this->expectExceptionMessage("'127.0.0.1:8081' is not the URL of a control interface");
        self::client(static fn () => new Response(), '127.0.0.1:8081');
    }

    /** @param \Closure(RequestInterface): ResponseInterface $send */
    private static function client(\Closure $send, string $address = 'http://127.0.0.1:8081', ?string $token = null, ?string $site = null): HttpClient
    {
        $http = new class ($send) implements ClientInterface {
            public function __construct(private readonly \Closure $send)
            {
            }

            public function sendRequest(RequestInterface $request): ResponseInterface
            {
                return ($this->send)($request);
            }
        };
        return new HttpClient($http, new Psr17Factory(), new Psr17Factory(), $address, $token, $site);
    }

    /** A client over a Unix socket, as curl's is. */
    private static function by(string $socket): \Closure
    {
        return static function (RequestInterface $request) use ($socket): ResponseInterface {
            $stream = stream_socket_client("unix://$socket", timeout: 60);
            self::assertNotFalse($stream);
            fwrite($stream, "{$request->getMethod()} {$request->getUri()->getPath()} HTTP/1.0\r\nHost: localhost\r\nContent-Type: {$request->getHeaderLine('Content-Type')}\r\nContent-Length: {$request->getBody()->getSize()}\r\n\r\n{$request->getBody()}");
            [$head, $content] = explode("\r\n\r\n", (string) stream_get_contents($stream), 2);
            return new Response((int) explode(' ', $head)[1], [], $content);
        };
    }
}
