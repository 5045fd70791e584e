<?php

/**
 * Changes that could not be sent wait in the outbox, a file or a table, and are sent later.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\FileOutbox;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;
use Pagewell\Core\Outbox;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use Pagewell\Tests\Support\HasOutbox;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\changedSoftly;
use function Pagewell\flush;
use function Pagewell\uses;

final class OutboxTest extends TestCase
{
    use HasOutbox;

    private RecordingClient $client;

    /** @var list<string> */
    private array $logged = [];

    protected function setUp(): void
    {
        $this->makeDirectory();
        $this->client = new RecordingClient();
    }

    protected function tearDown(): void
    {
        putenv('PAGEWELL_OUTBOX');
        Configuration::reset();
        Configuration::set(log: static fn () => null);
        RequestScope::begin(client: false);
        Configuration::reset();
        $this->removeDirectory();
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testWhatCouldNotBeSentIsSentLaterInItsOrder(string $kind): void
    {
        $this->uses($this->outbox($kind));
        $this->client->fail(new PagewellUnreachable('It is away.'));
        $this->command(static fn () => [changed('news', 4), changedSoftly('views', 4)]);
        $this->command(static fn () => changed('news', 5));
        self::assertSame('pagewell: It is away. Changes wait in the outbox.', $this->logged[0]);
        $this->client->fail(null);
        $before = count($this->client->calls());
        $this->command(static fn () => changed('news', 6));
        $expected = [['news', 'news:4'], ['views', 'views:4'], ['news', 'news:5'], ['news', 'news:6']];
        $sent = array_slice($this->client->calls(), $before);
        self::assertSame($expected, array_map(static fn (Invalidation $call): array => $call->tags, $sent));
        self::assertSame([false, true, false, false], array_map(static fn (Invalidation $call): bool => $call->soft, $sent));
        $this->command(static fn () => changed('news', 7));
        self::assertCount($before + 5, $this->client->calls(), 'each once');
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testAPageSendsItTooAndWhileItIsAwayThePageIsUnbroken(string $kind): void
    {
        $this->uses($outbox = $this->outbox($kind));
        $outbox->store(new Invalidation(['news:4']));
        $this->client->fail(new PagewellUnreachable('It is away.'));
        self::assertContains('Cache-Control: no-cache', $this->page());
        self::assertTrue($outbox->isDue(), 'it is still there');
        $this->client->fail(null);
        self::assertContains('Cache-Control: no-cache', $this->page());
        self::assertFalse($outbox->isDue());
        self::assertEquals([new Invalidation(['news:4']), new Invalidation(['news:4'])], $this->client->calls());
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testWhatWasSentBeforeAFailureIsNotSentAgain(string $kind): void
    {
        $outbox = $this->outbox($kind);
        $outbox->store(new Invalidation(['a']), new Invalidation(urls: ['/b/'], site: 'example.org'), new Invalidation(['c']));
        $seen = [];
        try {
            $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
                $seen[] = $call;
                count($seen) === 2 && throw new PagewellUnreachable('It is away.');
            });
            self::fail('the failure was swallowed');
        } catch (PagewellUnreachable) {
            $outbox->store(new Invalidation(['d']));
        }
        $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        $b = new Invalidation(urls: ['/b/'], site: 'example.org');
        self::assertEquals([new Invalidation(['a']), $b, $b, new Invalidation(['c']), new Invalidation(['d'])], $seen);
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testACallThatIsNeverAcceptedIsReplacedByEverythingAndHoldsUpNoOther(string $kind): void
    {
        $client = new class () implements InvalidationClient {
            /** @var list<Invalidation> */
            public array $accepted = [];

            public function invalidate(Invalidation $invalidation): InvalidationResult
            {
                $invalidation->site === 'mistyped.example' && throw new InvalidationRefused('site-unknown', 'no site has this host', 404);
                $this->accepted[] = $invalidation;
                return new InvalidationResult(1, count($this->accepted));
            }
        };
        $outbox = $this->outbox($kind);
        $outbox->store(new Invalidation(['news:4'], site: 'mistyped.example'), new Invalidation(['news:5']));
        Configuration::set($client, outbox: $outbox, log: function (string $text): void {
            $this->logged[] = $text;
        });
        RequestScope::begin(new RecordingChannel(null), $client);
        self::assertSame(2, flush());
        self::assertEquals([new Invalidation(all: true), new Invalidation(['news:5'])], $client->accepted);
        self::assertFalse($outbox->isDue());
        self::assertStringContainsString('site-unknown', $this->logged[0]);
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testAfterAFailureItRests(string $kind): void
    {
        $outbox = $this->outbox($kind, pauseSeconds: 1000);
        self::assertFalse($outbox->isDue(), 'nothing waits');
        $outbox->store(new Invalidation(['news:4']));
        $this->uses($outbox);
        $this->page();
        self::assertSame([], $this->client->calls());
        RequestScope::begin(new RecordingChannel(null), $this->client);
        self::assertSame(0, flush());
        self::assertEquals([new Invalidation(['news:4'])], $this->client->calls(), 'flush() does not wait');
    }

    public function testOnlyOneProcessDeliversAtATime(): void
    {
        $outbox = $this->outbox('file');
        $outbox->store(new Invalidation(['a']));
        $calls = 0;
        $outbox->deliver(static function () use ($outbox, &$calls): void {
            $calls++;
            $outbox->deliver(static fn () => self::fail('it was sent twice'));
            $outbox->store(new Invalidation(['b']));
        });
        self::assertSame(1, $calls);
        self::assertSame("{\"tags\":[\"b\"]}\n", file_get_contents("$this->directory/outbox"));
    }

    public function testWithoutAPlaceToWaitTheLogHasTheCommand(): void
    {
        $this->uses(new FileOutbox('/nowhere/at/all/outbox'));
        $this->client->fail(new PagewellUnreachable('It is away.'));
        $this->command(static fn () => changed('news', 4));
        self::assertStringContainsString('/nowhere/at/all/outbox.lock cannot be written', $this->logged[0]);
        self::assertStringContainsString("pagewell purge --tag 'news' --tag 'news:4'", $this->logged[1]);
    }

    public function testTheEnvironmentNamesTheFile(): void
    {
        putenv("PAGEWELL_OUTBOX=$this->directory/outbox");
        Configuration::check('POST');
        self::assertEquals(new FileOutbox("$this->directory/outbox"), Configuration::outbox());
        foreach (['outbox', '/nowhere/at/all/outbox', $this->directory] as $wrong) {
            putenv("PAGEWELL_OUTBOX=$wrong");
            try {
                Configuration::check('POST');
                self::fail("$wrong was accepted");
            } catch (InvalidConfiguration $fault) {
                self::assertStringContainsString("PAGEWELL_OUTBOX is '$wrong': write the whole path of a file", $fault->getMessage());
            }
        }
    }

    private function uses(Outbox $outbox): void
    {
        Configuration::set($this->client, outbox: $outbox, log: function (string $text): void {
            $this->logged[] = $text;
        });
    }

    private function command(callable $does): void
    {
        RequestScope::begin($channel = new RecordingChannel(null), $this->client);
        $does();
        $channel->end();
    }

    /** @return list<string> the lines of a page */
    private function page(): array
    {
        RequestScope::begin($channel = new RecordingChannel('GET'), $this->client);
        uses('menu');
        $channel->send();
        $channel->end();
        return $channel->lines();
    }
}
