<?php

/**
 * The PSR-15 middleware, on the PSR-7 messages of nyholm/psr7.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Bridge;

use Nyholm\Psr7\Response;
use Nyholm\Psr7\ServerRequest;
use Pagewell\Bridge\Psr15\PagewellMiddleware;
use Pagewell\Configuration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\InvalidationClient;
use Pagewell\PhpChannel;
use Pagewell\RequestEnd;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingClient;
use Pagewell\Tests\Support\DiscardingClient;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

use function Pagewell\changed;
use function Pagewell\fragment;
use function Pagewell\transaction;
use function Pagewell\uses;

final class PsrMiddlewareTest extends TestCase
{
    private RecordingClient $client;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Nyholm/Psr7/autoload.php') === false) {
            self::markTestSkipped('Nyholm/Psr7/autoload.php is not installed');
        }
        require_once 'Nyholm/Psr7/autoload.php';
        require_once __DIR__ . '/../../tests/stand-ins/psr15.php';
    }

    protected function setUp(): void
    {
        $this->client = new RecordingClient();
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testAPageDeclares(): void
    {
        $response = $this->ask('GET', static function (): Response {
            uses('news', 4);
            return new Response(200, ['ETag' => '"1"'], 'page');
        });
        self::assertSame('"news:4", "news:*"', $response->getHeaderLine('Cache-Groups'));
        self::assertSame('max-age=86400', $response->getHeaderLine('Pagewell-Cache-Control'));
        self::assertSame('no-cache', $response->getHeaderLine('Cache-Control'));
        self::assertSame(['page', '"1"'], [(string) $response->getBody(), $response->getHeaderLine('ETag')]);
    }

    /** @testWith ["Cookie", "_ga=1; member=eyJhbGciOi"]
     *           ["Authorization", "Bearer eyJhbGciOi"]
     */
    #[TestWith(['Cookie', '_ga=1; member=eyJhbGciOi']), TestWith(['Authorization', 'Bearer eyJhbGciOi'])]
    public function testOneMadeForSomebodyDoesNot(string $field, string $value): void
    {
        self::assertFalse($this->ask(new ServerRequest('GET', '/', [$field => $value]), static fn () => [new Response(), uses('news', 4)][0])->hasHeader('Cache-Groups'));
    }

    public function testOneThatSetsACookieDoesNot(): void
    {
        $response = $this->ask('GET', static function (): Response {
            uses('news', 4);
            return new Response(200, ['set-cookie' => 'a=b']);
        });
        self::assertFalse($response->hasHeader('Cache-Groups'));
        self::assertSame('private, no-cache', $response->getHeaderLine('Cache-Control'));
    }

    public function testAFragmentIsAnElementWhereTheRequestSaysThatItIsUnderstood(): void
    {
        $request = (new ServerRequest('GET', '/'))->withHeader('Surrogate-Capability', 'pagewell="ESI/1.0"');
        foreach ([[$request, '<esi:include src="/box"/>', ['max-age=5, content="ESI/1.0"']], [new ServerRequest('GET', '/'), 'in place', ['max-age=5']]] as [$asked, $content, $said]) {
            $response = $this->ask($asked, static fn (): Response => new Response(200, ['surrogate-control' => 'max-age=5'], fragment('/box', static fn (): string => 'in place')));
            self::assertSame([$content, $said], [(string) $response->getBody(), $response->getHeader('Surrogate-Control')]);
        }
    }

    public function testAWriteIsCarried(): void
    {
        $response = $this->ask('POST', static function (): Response {
            changed('news', 4);
            return new Response(303);
        });
        self::assertSame('"news", "news:4"', $response->getHeaderLine('Cache-Group-Invalidation'));
        self::assertSame([], $this->client->calls());
    }

    public function testAWriteOnAGetIsToldBeforeTheResponseIsReturned(): void
    {
        $response = $this->ask('GET', static function (): Response {
            changed('news', 4);
            return new Response();
        });
        self::assertFalse($response->hasHeader('Cache-Group-Invalidation'));
        self::assertSame(['news', 'news:4'], $this->client->tags());
    }

    public function testAWriteThatThenThrowsIsTold(): void
    {
        try {
            $this->ask('POST', static function (): Response {
                changed('news', 4);
                throw new \DomainException('after the write');
            });
            self::fail('the exception was swallowed');
        } catch (\DomainException) {
            RequestScope::current()->end();
            self::assertSame(['news', 'news:4'], $this->client->tags());
        }
    }

    public function testWhatStandsFurtherOutAndThrowsLosesNoChange(): void
    {
        try {
            $this->between(static fn () => throw new \DomainException('after the response'));
            self::fail('the exception was swallowed');
        } catch (\DomainException) {
            self::assertSame(['news', 'news:4'], $this->client->tags());
        }
    }

    public function testAnotherAnswerInItsPlaceSaysTheChange(): void
    {
        $response = $this->between(static fn (): Response => new Response(500));
        self::assertSame([500, ['"news", "news:4"']], [$response->getStatusCode(), $response->getHeader('Cache-Group-Invalidation')]);
        self::assertSame([], $this->client->calls());
    }

    public function testTwoOfThemSayItOnce(): void
    {
        $response = $this->between(static fn (ResponseInterface $response): ResponseInterface => $response);
        self::assertSame(['"news", "news:4"'], $response->getHeader('Cache-Group-Invalidation'));
        self::assertSame([], $this->client->calls());
    }

    public function testWhatIsSaidAfterTheResponseDoesNotWaitForTheNextRequest(): void
    {
        $this->ask('GET', static fn (): Response => new Response());
        changed('news', 4);
        self::assertSame(['news', 'news:4'], $this->client->tags());
        transaction()->begin();
        changed('news', 5);
        self::assertCount(1, $this->client->calls());
        transaction()->commit();
        self::assertCount(2, $this->client->calls());
    }

    public function testAPagewellThatIsAwayThenIsNotAskedEachTime(): void
    {
        $said = [];
        Configuration::set(log: static function (string $text) use (&$said): void {
            $said[] = $text;
        });
        $this->client->fail(new PagewellUnreachable('Pagewell is away.'));
        $this->ask('GET', static fn (): Response => new Response());
        changed('news', 4);
        changed('news', 5);
        self::assertCount(1, $this->client->calls());
        self::assertSame(['pagewell: Pagewell is away. Tried again later.'], $said);
        $this->client->fail(null);
        $this->ask('GET', static fn (): Response => new Response());
        Configuration::reset();
        self::assertContains('news:5', $this->client->tags());
    }

    public function testAWorkerThatAnswersAThousandRequestsKeepsNothingOfThem(): void
    {
        $client = new DiscardingClient();
        $right = 0;
        $ask = function (int $rounds) use ($client, &$right): int {
            for ($n = 0; $n < $rounds; $n++) {
                $right += (int) ($this->ask('GET', static fn (): Response => [new Response(), uses('news', 4)][0], $client)->getHeader('Cache-Groups') === ['"news:4", "news:*"']);
                $right += (int) ($this->ask('POST', static fn (): Response => [new Response(303), changed('news', 4)][0], $client)->getHeader('Cache-Group-Invalidation') === ['"news", "news:4"']);
                $right += (int) ($this->ask('GET', static fn (): Response => [new Response(), changed('news', 4)][0], $client)->hasHeader('Cache-Group-Invalidation') === false);
                self::assertLessThan(3, RequestEnd::count());
                // Often, so that PHP's table of objects does not grow with garbage.
                $n % 50 === 49 && gc_collect_cycles();
            }
            return memory_get_usage();
        };
        $before = $ask(50);
        self::assertLessThan(16 * 1024, $ask(1000) - $before);
        self::assertSame(3 * 1050, $right);
    }

    public function testAWorkerForJobsAsksPhpOnceForItsEnd(): void
    {
        RequestScope::begin(new PhpChannel(), $this->client);
        for ($n = 0; $n < 100; $n++) {
            changed('news', $n);
            RequestScope::current()->end();
        }
        self::assertCount(100, $this->client->calls());
        self::assertSame(1, RequestEnd::count());
    }

    /** A write, with something between the middleware and another one of it. */
    private function between(\Closure $then): ResponseInterface
    {
        $middleware = new PagewellMiddleware($this->client);
        $write = self::application(static function (): Response {
            changed('news', 4);
            return new Response(303);
        });
        return $this->ask('POST', static fn (ServerRequestInterface $request): ResponseInterface => $then($middleware->process($request, $write)));
    }

    private function ask(string|ServerRequest $request, \Closure $answer, ?InvalidationClient $client = null): ResponseInterface
    {
        $request = is_string($request) ? new ServerRequest($request, '/') : $request;
        return (new PagewellMiddleware($client ?? $this->client))->process($request, self::application($answer));
    }

    private static function application(\Closure $answer): RequestHandlerInterface
    {
        return new class ($answer) implements RequestHandlerInterface {
            public function __construct(private readonly \Closure $answer)
            {
            }

            public function handle(ServerRequestInterface $request): ResponseInterface
            {
                return ($this->answer)($request);
            }
        };
    }
}
