<?php

/**
 * A whole application of Symfony: its own security, commands, the profiler's panel, `messenger:consume`, and a
 * worker that answers many requests.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Configuration;
use Pagewell\RequestScope;
use Pagewell\Symfony\Profiler\PageCollector;
use Pagewell\Symfony\Profiler\PageReport;
use Pagewell\Testing\RecordingClient;
use Pagewell\Tests\Support\DiscardingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;

final class SymfonyApplicationTest extends TestCase
{
    private static SymfonyApplication $site;

    private RecordingClient $calls;

    /** @var callable|null PHPUnit's; the framework sets handlers of its own */
    private $handler;

    public static function setUpBeforeClass(): void
    {
        if (!SymfonyBundles::load()) {
            self::markTestSkipped('the bundles of Symfony are not installed');
        }
        self::$site = new SymfonyApplication();
    }

    public static function tearDownAfterClass(): void
    {
        isset(self::$site) && self::$site->stop();
    }

    protected function setUp(): void
    {
        $this->handler = self::exceptionHandler();
        Configuration::set($this->calls = new RecordingClient());
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        for ($n = 0; $n < 10 && self::exceptionHandler() !== $this->handler; $n++) {
            restore_exception_handler();
        }
        Configuration::reset();
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    private static function exceptionHandler(): ?callable
    {
        $handler = set_exception_handler(null);
        restore_exception_handler();
        return $handler;
    }

    public function testAPageIsCachedAndThatOfAMemberIsNot(): void
    {
        $page = $this->get('/news/4');
        self::assertStringContainsString('Hello stranger', (string) $page->getContent());
        self::assertSame('"news:4", "news:*"', $page->headers->get('Cache-Groups'));
        $page = $this->get('/news/4', 'ada:a');
        self::assertStringContainsString('Hello ada', (string) $page->getContent());
        self::assertFalse($page->headers->has('Cache-Groups'));
        self::assertSame('no-store', $page->headers->get('Pagewell-Cache-Control'));
        self::assertSame(401, $this->get('/news/4', 'ada:wrong')->getStatusCode());
        self::assertSame('"news:4", "news:*"', $this->get('/news/4')->headers->get('Cache-Groups'), 'nothing is left of the member');
    }

    public function testAWrite(): void
    {
        $response = self::$site->ask(Request::create('/news/4?do=change', 'POST'));
        self::assertSame('"news", "news:4"', $response->headers->get('Cache-Group-Invalidation'));
    }

    public function testItsCommands(): void
    {
        self::assertSame([0, '0 pages purged.'], $this->command('pagewell:invalidate', ['kind' => 'news', 'ids' => ['4']]));
        self::assertSame(['news', 'news:4'], $this->calls->tags());
        self::assertSame(1, $this->command('pagewell:explain', ['url' => '/news/4'])[0]);
    }

    public function testTheProfilerShowsWhatBecameOfThePage(): void
    {
        [$collector, $panel] = $this->profile(Request::create('/news/4'));
        self::assertTrue($collector->isOffered());
        self::assertSame([['news:4', 'news:*'], 86_400, null], [$collector->tags(), $collector->lifetimeSeconds(), $collector->changes()]);
        self::assertStringContainsString('<code>news:4</code>', $panel);
        self::assertStringContainsString('max-age=86400', $panel);

        [$collector, $panel] = $this->profile(self::request('/news/4', 'ada:a'));
        self::assertSame([false, 'signed-in'], [$collector->isOffered(), $collector->refusal()]);
        self::assertStringContainsString('Not cached: <code>signed-in</code>', $panel);

        [$collector, $panel] = $this->profile(Request::create('/news/4?do=change', 'POST'));
        self::assertSame(['method', '"news", "news:4"'], [$collector->refusal(), $collector->changes()]);
        self::assertStringContainsString('<code>&quot;news&quot;, &quot;news:4&quot;</code>', $panel);

        [$collector, , $toolbar] = $this->profile(Request::create('/template'));
        self::assertSame(['comments'], $collector->tags());
        self::assertStringContainsString('may cache this page', $toolbar);
    }

    public function testTheProfilerShowsAPageThatDeclaresNothing(): void
    {
        [$collector, $panel, $toolbar] = $this->profile(Request::create('/nowhere'));
        self::assertSame([true, 'nothing-declared'], [$collector->isKnown(), $collector->refusal()]);
        self::assertStringContainsString('has declared no data', $panel);
        self::assertStringContainsString('not cached: nothing-declared', $toolbar);
    }

    public function testASubRequestHasNoReport(): void
    {
        $collector = new PageCollector($report = new PageReport());
        $report->remember(Request::create('/'), new \Pagewell\Core\Declaration(), new \Pagewell\Core\Response(), new Response());
        $collector->collect(Request::create('/fragment'), new Response());
        $collector->lateCollect();
        self::assertSame([false, false, []], [$collector->isKnown(), $collector->isOffered(), $collector->tags()]);
    }

    public function testMessagesThatAreConsumedSendTheirChanges(): void
    {
        self::$site->boot();
        $bus = self::$site->getContainer()->get('test.service_container')->get('messenger.default_bus');
        foreach ([4, 5, 6] as $id) {
            $bus->dispatch(new SymfonyMessage($id));
        }
        self::assertSame([], $this->calls->calls());
        [$status, $said] = $this->command('messenger:consume', ['receivers' => ['later'], '--limit' => '3', '--time-limit' => '20', '--no-reset' => true]);
        self::assertSame(0, $status, $said);
        self::assertSame([['news', 'news:4'], ['news', 'news:5'], ['news', 'news:6']], array_map(static fn ($call): array => $call->tags, $this->calls->calls()));
    }

    /** As a worker does it: one kernel, whose services are reset between requests. */
    public function testAWorkerThatAnswersAThousandRequestsKeepsNothingOfThem(): void
    {
        Configuration::set(new DiscardingClient());
        $right = 0;
        $ask = function (int $rounds) use (&$right): int {
            for ($n = 0; $n < $rounds; $n++) {
                $right += (int) ($this->bare(Request::create('/news/4'))->headers->get('Cache-Groups') === '"news:4", "news:*"');
                $right += (int) ($this->bare(self::request('/news/4', 'ada:a'))->headers->get('Cache-Groups') === null);
                $right += (int) ($this->bare(Request::create('/news/5?do=change', 'POST'))->headers->get('Cache-Group-Invalidation') === '"news", "news:5"');
                $right += (int) ($this->bare(Request::create('/news/6?do=change'))->getStatusCode() === 200);
                // Often, so that PHP's table of objects does not grow with the framework's own garbage.
                $n % 25 === 24 && gc_collect_cycles();
            }
            return memory_get_usage();
        };
        $before = $ask(25);
        self::assertLessThan(256 * 1024, $ask(250) - $before);
        self::assertSame(4 * 275, $right);
    }

    /** A request without the profiler, which would store each of them. */
    private function bare(Request $request): Response
    {
        self::$site->boot();
        $container = self::$site->getContainer()->get('test.service_container');
        $container->get('profiler')->disable();
        return self::$site->ask($request);
    }

    private function get(string $path, string $credentials = ''): Response
    {
        return self::$site->ask(self::request($path, $credentials));
    }

    private static function request(string $path, string $credentials): Request
    {
        $fields = $credentials === '' ? [] : ['PHP_AUTH_USER' => strtok($credentials, ':'), 'PHP_AUTH_PW' => strtok(':'), 'HTTP_AUTHORIZATION' => 'Basic ' . base64_encode($credentials)];
        return Request::create($path, 'GET', [], [], [], $fields);
    }

    /** @return array{PageCollector, string, string} what the profiler has of a request, its panel and its toolbar */
    private function profile(Request $request): array
    {
        $token = (string) self::$site->ask($request)->headers->get('X-Debug-Token');
        $profile = self::$site->getContainer()->get('test.service_container')->get('profiler')->loadProfile($token);
        $collector = $profile?->getCollector(PageCollector::NAME);
        self::assertInstanceOf(PageCollector::class, $collector);
        return [$collector, (string) $this->get("/_profiler/$token?panel=pagewell")->getContent(), (string) $this->get("/_wdt/$token")->getContent()];
    }

    /**
     * @param array<string, mixed> $arguments
     *
     * @return array{int, string}
     */
    private function command(string $name, array $arguments): array
    {
        $status = self::$site->console()->run(new ArrayInput(['command' => $name] + $arguments), $output = new BufferedOutput());
        return [$status, trim($output->fetch())];
    }
}
