<?php

/**
 * Changes that could not be sent wait in the outbox, a file or a table, and are sent later.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\Configuration;
use Pagewell\Exception\InvalidationRefused;
use Pagewell\Exception\InvalidConfiguration;
use Pagewell\Exception\PagewellUnreachable;
use Pagewell\FileOutbox;
use Pagewell\Invalidation;
use Pagewell\InvalidationClient;
use Pagewell\InvalidationResult;
use Pagewell\Outbox;
use Pagewell\RequestScope;
use Pagewell\TableOutbox;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\changedSoftly;
use function Pagewell\flush;
use function Pagewell\uses;

final class OutboxTest extends TestCase
{
    private string $directory;

    private RecordingClient $client;

    /** @var list<string> */
    private array $logged = [];

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-outbox-' . bin2hex(random_bytes(6));
        mkdir($this->directory);
        $this->client = new RecordingClient();
    }

    protected function tearDown(): void
    {
        putenv('PAGEWELL_OUTBOX');
        Configuration::reset();
        Configuration::set(log: static fn () => null);
        RequestScope::begin(client: false);
        Configuration::reset();
        array_map(unlink(...), glob("$this->directory/*") ?: []);
        rmdir($this->directory);
    }

    /** @return iterable<string, array{string}> */
    public static function kinds(): iterable
    {
        yield 'a file' => ['file'];
        yield 'a table' => ['table'];
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
    public function testAboveItsBoundEverySiteHasACallForEverything(string $kind): void
    {
        $outbox = $this->outbox($kind);
        $long = str_repeat('t', 1000);
        foreach (['a.example', 'b.example'] as $site) {
            $kind === 'table'
                ? $outbox->store(...array_fill(0, intdiv(TableOutbox::ROWS_MAX, 2) + 1, new Invalidation(['t'], site: $site)))
                : $outbox->store(new Invalidation(array_map(static fn (int $n): string => "$long$n", range(1, 2100)), site: $site));
        }
        $seen = [];
        $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        self::assertEquals([new Invalidation(all: true, site: 'a.example'), new Invalidation(all: true, site: 'b.example')], $seen);
    }

    public function testATableDoesNotTakeACallThatARollbackWouldRemove(): void
    {
        $pdo = new \PDO('sqlite::memory:');
        ($outbox = new TableOutbox($pdo))->create();
        $pdo->beginTransaction();
        $this->expectExceptionMessage('give TableOutbox a connection of its own');
        $outbox->store(new Invalidation(['news:4']));
    }

    public function testWhoeverMayWriteTheDirectoryMayWriteTheFiles(): void
    {
        chmod($this->directory, 0777);
        $before = umask(0022);
        $this->outbox('file')->store(new Invalidation(['news:4']));
        umask($before);
        foreach (['outbox', 'outbox.lock'] as $file) {
            self::assertSame('0666', substr(sprintf('%o', (int) fileperms("$this->directory/$file")), -4), $file);
        }
        if (posix_geteuid() === 0) {
            chown($this->directory, 'www-data');
            unlink("$this->directory/outbox.lock");
            $this->outbox('file')->store(new Invalidation(['news:5']));
            clearstatcache();
            self::assertSame(fileowner($this->directory), fileowner("$this->directory/outbox.lock"));
        }
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

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testItIsBounded(string $kind): void
    {
        $outbox = $this->outbox($kind);
        $tags = array_fill(0, 5000, str_repeat('x', 1000));
        $outbox->store(...array_fill(0, $kind === 'table' ? TableOutbox::ROWS_MAX : 1, new Invalidation(['news'])));
        $outbox->store(new Invalidation($tags));
        $outbox->store(new Invalidation(['after']));
        $seen = [];
        $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        self::assertEquals([new Invalidation(all: true), new Invalidation(['after'])], $seen);
    }

    public function testALineThatIsDamagedCountsAsEverything(): void
    {
        file_put_contents("$this->directory/outbox", "{\"tags\":[\"a\"]}\n{\"tags\":[\"b\n{\"tags\":[4]}\n{}\n");
        $seen = [];
        (new FileOutbox("$this->directory/outbox"))->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        $all = new Invalidation(all: true);
        self::assertEquals([new Invalidation(['a']), $all, $all, $all], $seen);
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
        self::assertStringContainsString("pagewell invalidate --tag 'news' --tag 'news:4'", $this->logged[1]);
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

    private function outbox(string $kind, int $pauseSeconds = 0): Outbox
    {
        if ($kind === 'file') {
            return new FileOutbox("$this->directory/outbox", $pauseSeconds);
        }
        $outbox = new TableOutbox(new \PDO('sqlite::memory:'), pauseSeconds: $pauseSeconds);
        $outbox->create();
        return $outbox;
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
