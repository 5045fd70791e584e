<?php

/**
 * A whole application of Laravel: the group `cached`, models with the trait, commands, the facade,
 * the helpers for tests, and a worker that answers many requests.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Contracts\Console\Kernel as ConsoleContract;
use Illuminate\Queue\WorkerOptions;
use Pagewell\Configuration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\SocketClient;
use Pagewell\Laravel\Facades\PageCache;
use Pagewell\Laravel\Testing\InteractsWithPageCache;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use Pagewell\Tests\Support\DiscardingClient;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

final class LaravelApplicationTest extends TestCase
{
    use InteractsWithPageCache;

    private LaravelApplication $site;

    private RecordingClient $calls;

    /** @var list<\Closure> */
    private array $atEnd = [];

    protected function setUp(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
        require_once __DIR__ . '/LaravelApplication.php';
        $this->site = new LaravelApplication();
        $this->calls = $this->fakePageCache();
        RequestScope::begin();
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        foreach ($this->atEnd as $end) {
            $end();
        }
        isset($this->site) && $this->site->stop();
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    /** As Laravel's TestCase has it. */
    private function beforeApplicationDestroyed(\Closure $end): void
    {
        $this->atEnd[] = $end;
    }

    public function testAnOrdinaryPageIsCachedInTheGroup(): void
    {
        $response = $this->site->get('/news/4');
        self::assertSame('News: four', trim((string) $response->getContent()));
        $this->assertPageCached($response);
        $this->assertPageDependsOn($response, 'news', 4);
        self::assertFalse($response->headers->has('Set-Cookie'));
        $this->assertPageNotCached($this->site->get('/member/4'));
        $this->assertPageNotCached($this->site->get('/news/6'));
    }

    public function testTheHelpersFail(): void
    {
        $response = $this->site->get('/news/4');
        foreach ([fn () => $this->assertPageDependsOn($response, 'news', 5), fn () => $this->assertPageNotCached($response), fn () => $this->assertPageCached($this->site->get('/member/4')), fn () => $this->assertChanged($response, 'news'), fn () => $this->assertChanged($this->calls, 'news', 4)] as $assertion) {
            try {
                $assertion();
            } catch (AssertionFailedError) {
                continue;
            }
            self::fail('an assertion holds that must not');
        }
    }

    public function testRowsThatAreReadCountOnPagesThatDeclareTheirLists(): void
    {
        Tag::query()->create(['name' => 'harbour']);
        $this->assertPageDependsOn($front = $this->site->get('/front'), 'tags', 1);
        $this->assertPageDependsOn($front, 'news');
        $this->assertPageNotCached($this->site->get('/undeclared'));
        // A page that reads none: nothing is left of the request before.
        self::assertSame('"news:4", "news:*"', $this->site->get('/news/4')->headers->get('Cache-Groups'));
        Tag::query()->insert(array_fill(0, 300, ['name' => 'many']));
        $this->assertPageDependsOn($front = $this->site->get('/front'), 'tags');
        $this->assertPageCached($front);
    }

    public function testAWrite(): void
    {
        $this->assertChanged($this->site->post('/news/4'), 'news', 4);
    }

    public function testTheFacade(): void
    {
        $channel = RecordingChannel::install('POST');
        PageCache::changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
        RecordingChannel::install('GET');
        PageCache::uses('news', 4);
        self::assertSame(['news:4', 'news:*'], PageCache::tags());
        self::assertNull(PageCache::refusal());
    }

    public function testAJobOfAQueueSendsItsChanges(): void
    {
        RequestScope::begin(new RecordingChannel(null), $this->calls);
        $this->site->app->make('queue')->push(new LaravelJob());
        $this->assertChanged($this->calls, 'news', 4);
    }

    public function testAWorkerSendsTheChangesOfEachJobWhenItEnds(): void
    {
        RequestScope::begin(new RecordingChannel(null), $this->calls);
        $worker = $this->site->app->make('queue.worker');
        foreach ([[4, false, ['news', 'news:4']], [0, false, []], [5, true, ['news', 'news:5']]] as [$id, $fails, $tags]) {
            $this->site->app->make('queue')->connection('database')->push(new LaravelJob($id, $fails));
            $before = count($this->calls->calls());
            $worker->runNextJob('database', 'default', new WorkerOptions());
            self::assertSame($tags, array_merge(...array_map(static fn ($call): array => $call->tags, array_slice($this->calls->calls(), $before))));
        }
    }

    /**
     * @testWith ["pagewell:invalidate", {"kind": "news", "ids": ["4", "7"]}, 0, "0 pages purged.", ["news", "news:4", "news:7"]]
     *           ["pagewell:invalidate", {"kind": "news"}, 0, "0 pages purged.", ["news", "news:*"]]
     *           ["pagewell:invalidate", {"--tag": ["node:4"]}, 0, "0 pages purged.", ["node:4"]]
     *           ["pagewell:invalidate", {"kind": "news:4"}, 2, "A kind has no colon. Write the kind and its ids (news 4), or --tag=news:4 for a tag as it stands.", []]
     *           ["pagewell:invalidate", {"kind": ""}, 2, "A kind of data needs a name; it was empty.", []]
     *           ["pagewell:invalidate", {}, 2, "Nothing is named to purge: write a kind and ids (news 4), --tag, --url or --all.", []]
     *           ["pagewell:explain", {"url": "/news/4"}, 1, "The configured client cannot explain pages: it is no ExplanationClient.", []]
     *
     * @param array<string, mixed> $arguments
     * @param list<string>         $tags
     */
    #[TestWith(['pagewell:invalidate', ['kind' => 'news', 'ids' => ['4', '7']], 0, '0 pages purged.', ['news', 'news:4', 'news:7']])]
    #[TestWith(['pagewell:invalidate', ['kind' => 'news'], 0, '0 pages purged.', ['news', 'news:*']])]
    #[TestWith(['pagewell:invalidate', ['--tag' => ['node:4']], 0, '0 pages purged.', ['node:4']])]
    #[TestWith(['pagewell:invalidate', ['kind' => 'news:4'], 2, 'A kind has no colon. Write the kind and its ids (news 4), or --tag=news:4 for a tag as it stands.', []])]
    #[TestWith(['pagewell:invalidate', ['kind' => ''], 2, 'A kind of data needs a name; it was empty.', []])]
    #[TestWith(['pagewell:invalidate', [], 2, 'Nothing is named to purge: write a kind and ids (news 4), --tag, --url or --all.', []])]
    #[TestWith(['pagewell:explain', ['url' => '/news/4'], 1, 'The configured client cannot explain pages: it is no ExplanationClient.', []])]
    public function testItsCommands(string $command, array $arguments, int $status, string $said, array $tags): void
    {
        $console = $this->site->app->make(ConsoleContract::class);
        self::assertSame($status, $console->call($command, $arguments));
        self::assertSame($said, trim($console->output()));
        self::assertSame($tags, $this->calls->tags());
    }

    public function testOtherWaysToPurgeByCommand(): void
    {
        $console = $this->site->app->make(ConsoleContract::class);
        $console->call('pagewell:invalidate', ['--url' => ['/about'], '--soft' => true]);
        $console->call('pagewell:invalidate', ['--all' => true]);
        self::assertSame(['{"urls":["/about"],"soft":true}', '{"all":true}'], array_map(static fn ($call): string => $call->json(), $this->calls->calls()));
        $this->calls->fail(new PagewellUnreachable('Pagewell is <away>.'));
        self::assertSame(1, $console->call('pagewell:invalidate', ['--all' => true]));
        self::assertSame('Pagewell is <away>. It is unknown whether pages were purged: run the command again.', trim($console->output()));
    }

    public function testThePageIsExplainedByARealPagewell(): void
    {
        $pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        try {
            $pagewell->ask('POST', '/setup');
            $pagewell->ask('POST', '/write/4');
            $pagewell->ask('GET', '/news/4');
            Configuration::set(new SocketClient($pagewell->admin(), timeoutSeconds: 60));
            $console = $this->site->app->make(ConsoleContract::class);
            $url = $pagewell->address() . '/news/4';
            self::assertSame(0, $console->call('pagewell:explain', ['url' => $url]));
            self::assertStringContainsString("$url\n  hit          It is answered from the cache.", $text = $console->output());
            self::assertStringContainsString('  depends on   news:4, news:*', $text);
            self::assertSame(0, $console->call('pagewell:explain', ['url' => $url, '--cookie' => ['PHPSESSID=1']]));
            self::assertStringNotContainsString('  hit ', $console->output());
            self::assertSame(0, $console->call('pagewell:invalidate', ['kind' => 'news', 'ids' => ['4']]));
            self::assertSame('1 page purged.', trim($console->output()));
        } finally {
            $pagewell->stop();
        }
        self::assertSame(1, $console->call('pagewell:explain', ['url' => '/news/4']));
        self::assertStringContainsString('Pagewell is not at', $console->output());
    }

    /** As Octane does it: one process, and an event after each request. */
    public function testAWorkerThatAnswersAThousandRequestsKeepsNothingOfThem(): void
    {
        Configuration::set(new DiscardingClient());
        $right = 0;
        $ask = function (int $rounds) use (&$right): int {
            for ($n = 0; $n < $rounds; $n++) {
                $right += (int) ($this->site->get('/news/4')->headers->get('Cache-Groups') === '"news:4", "news:*"');
                $right += (int) ($this->site->post('/news/5')->headers->get('Cache-Group-Invalidation') === '"news", "news:5"');
                Article::withoutEvents(static fn () => Article::query()->find(5)->update(['title' => "title $n"]));
                $this->site->app->make('events')->dispatch('Laravel\Octane\Events\RequestTerminated');
                // Often, so that PHP's table of objects does not grow with the framework's own garbage.
                $n % 100 === 99 && gc_collect_cycles();
            }
            return memory_get_usage();
        };
        $before = $ask(500);
        self::assertLessThan(16 * 1024, $ask(500) - $before);
        self::assertSame(2000, $right);
    }
}
