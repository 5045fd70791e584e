<?php

/**
 * The attribute of FOSHttpCacheBundle with tags that are empty or unknown: no write fails after it was done, and
 * no change is lost.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\RequestScope;
use Pagewell\Symfony\FosHttpCache\Tag;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingClient;
use Pagewell\Tests\Support\ExpressionLanguage;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\HttpKernel\KernelEvents;

final class SymfonyTagsTest extends TestCase
{
    private RecordingClient $client;

    /** @var list<string> */
    private array $log = [];

    protected function setUp(): void
    {
        foreach (['HttpKernel', 'DependencyInjection', 'ExpressionLanguage'] as $component) {
            if (stream_resolve_include_path("Symfony/Component/$component/autoload.php") === false) {
                self::markTestSkipped("Symfony/Component/$component/autoload.php is not installed");
            }
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once 'Symfony/Component/DependencyInjection/autoload.php';
        ExpressionLanguage::load();
        Configuration::set($this->client = new RecordingClient(), function (string $line): void {
            $this->log[] = $line;
        });
        UnknownTags::$written = 0;
    }

    protected function tearDown(): void
    {
        putenv('PAGEWELL_CHANGES');
        Configuration::reset();
        RequestScope::begin();
    }

    /** @dataProvider unknown */
    #[DataProvider('unknown')]
    public function testAPageWithAnUnknownTagIsNotCached(mixed $category): void
    {
        $response = $this->ask('GET', 'category', $category);
        self::assertSame([200, null, 'no-store'], [$response->getStatusCode(), $response->headers->get('Cache-Groups'), $response->headers->get('Pagewell-Cache-Control')]);
        self::assertSame(['pagewell: #[Tag(expression: "category")] of ' . UnknownTags::class . '::category gave no tag. The page is not cached.'], $this->log);
        self::assertSame('"sport", "fixed"', $this->ask('GET', 'category', 'sport')->headers->get('Cache-Groups'));
        self::assertCount(1, $this->log);
    }

    /** @dataProvider unknown */
    #[DataProvider('unknown')]
    public function testAWriteOfAnUnknownTagPurgesEveryPage(mixed $category): void
    {
        $response = $this->ask('POST', 'category', $category);
        self::assertSame([200, ['"fixed"', '*']], [$response->getStatusCode(), $response->headers->all('cache-group-invalidation')]);
        self::assertSame([1, []], [UnknownTags::$written, $this->client->calls()]);
        self::assertStringEndsWith('gave no tag. If the write succeeds, every page is purged.', $this->log[0]);
        self::assertFalse($this->ask('POST', 'category', $category, status: 422)->headers->has('Cache-Group-Invalidation'));
        self::assertSame('"sport", "fixed"', $this->ask('POST', 'category', 'sport')->headers->get('Cache-Group-Invalidation'), 'nothing is left of the writes before');
    }

    /** @return iterable<string, array{mixed}> */
    public static function unknown(): iterable
    {
        yield 'empty' => [''];
        yield 'null' => [null];
        yield 'false' => [false];
        yield 'a list' => [['sport']];
        yield 'an object without a text' => [new \stdClass()];
    }

    public function testSuchAWriteUsesTheControlInterfaceIfResponsesDoNotReachPagewell(): void
    {
        putenv('PAGEWELL_CHANGES=control');
        self::assertSame(200, $this->ask('POST', 'category', '')->getStatusCode());
        self::assertContains('{"all":true}', array_map(static fn ($call): string => $call->json(), $this->client->calls()));
        $this->client->fail(new PagewellUnreachable('Pagewell is away.'));
        self::assertSame(200, $this->ask('POST', 'category', '')->getStatusCode(), 'nor does it fail if Pagewell is away');
        self::assertContains('pagewell: Pagewell is away. Send it later: {"all":true}', $this->log);
    }

    public function testAListenerThatFailsAfterTheWriteLosesNoChange(): void
    {
        foreach (['sport', ''] as $category) {
            try {
                $this->ask('POST', 'category', $category, listener: static fn () => throw new \DomainException('late'));
                self::fail('the exception was swallowed');
            } catch (\DomainException) {
                RequestScope::current()->end();
            }
            $calls = array_map(static fn ($call): string => $call->json(), $this->client->calls());
            self::assertContains($category === '' ? '{"all":true}' : '{"tags":["sport","fixed"]}', $calls);
        }
    }

    /** @dataProvider empty */
    #[DataProvider('empty')]
    public function testAnEmptyTagIsAnErrorBeforeAnythingIsWritten(string $action): void
    {
        try {
            $this->ask('POST', $action);
            self::fail('the tag was accepted');
        } catch (InvalidTag $fault) {
            self::assertStringStartsWith('#[Tag] has ', $fault->getMessage());
        }
        self::assertSame(0, UnknownTags::$written);
    }

    /** @return iterable<array{string}> */
    public static function empty(): iterable
    {
        yield ['none'];
        yield ['oneOfThem'];
        yield ['number'];
    }

    public function testTheArrayOfTheBundleIsUnderstood(): void
    {
        self::assertSame('"a", "b", "sport"', $this->ask('GET', 'named', 'sport')->headers->get('Cache-Groups'));
    }

    private function ask(string $method, string $action, mixed $category = null, int $status = 200, ?callable $listener = null): Response
    {
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener());
        $listener === null || $dispatcher->addListener(KernelEvents::RESPONSE, static fn (ResponseEvent $event) => $listener());
        $request = Request::create('/', $method);
        $request->attributes->add(['_controller' => [new UnknownTags(), $action], 'category' => $category, 'status' => $status]);
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}

/** Controllers whose tags are empty, or depend on the request. */
final class UnknownTags
{
    public static int $written = 0;

    #[Tag(expression: 'category'), Tag('fixed')]
    public function category(Request $request): Response
    {
        self::$written++;
        return new Response('page', $request->attributes->getInt('status'));
    }

    #[Tag('')]
    public function none(): Response
    {
        self::$written++;
        return new Response();
    }

    #[Tag(['a', ''])]
    public function oneOfThem(): Response
    {
        return $this->none();
    }

    #[Tag(['a', 4])]
    public function number(): Response
    {
        return $this->none();
    }

    #[Tag(['tags' => ['a', 'b'], 'expression' => 'category'])]
    public function named(): Response
    {
        return new Response();
    }
}
