<?php

/**
 * The calls of the control interface and their times: with a recorded interface.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\ChangeDelivery;
use Pagewell\Configuration;
use Pagewell\Core\Changes;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Invalidation;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\changedNow;
use function Pagewell\changedSoftly;
use function Pagewell\flush;
use function Pagewell\invalidate;
use function Pagewell\transaction;

final class InvalidationClientTest extends TestCase
{
    /** @var list<string> */
    private array $logged = [];

    protected function setUp(): void
    {
        $this->logged = [];
        Configuration::set(log: function (string $text): void {
            $this->logged[] = $text;
        });
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        Configuration::set(log: static fn () => null);
        RequestScope::begin(client: false);
        Configuration::reset();
        RequestScope::begin();
    }

    /** @dataProvider vectors */
    #[DataProvider('vectors')]
    public function testACallIsExactlyThis(array $vector): void
    {
        $invalidation = new Invalidation(...$vector['invalidation']);
        self::assertSame($vector['bodies'], array_map(static fn (Invalidation $call): string => $call->json(), $invalidation->batches()));
    }

    /** @return iterable<string, array{array<string, mixed>}> */
    public static function vectors(): iterable
    {
        $text = file_get_contents(__DIR__ . '/../../../contract/php-control.json');
        foreach (json_decode((string) $text, true, 32, JSON_THROW_ON_ERROR)['vectors'] as $vector) {
            yield $vector['name'] => [$vector];
        }
    }

    public function testBatchesAreBounded(): void
    {
        $batches = (new Invalidation(array_fill(0, 12_000, 'a'), array_fill(0, 5_001, '/'), all: true))->batches();
        self::assertSame([5000, 5000, 2000], array_map(static fn (Invalidation $call): int => count($call->tags), $batches));
        self::assertSame([5000, 1, 0], array_map(static fn (Invalidation $call): int => count($call->urls), $batches));
        self::assertSame([true, false, false], array_map(static fn (Invalidation $call): bool => $call->all, $batches));
    }

    public function testBytesThatAreNoTextAreRefused(): void
    {
        $this->expectException(InvalidTag::class);
        (new Invalidation(["\xff"]))->json();
    }

    public function testEverythingIsToldOnceAtTheEnd(): void
    {
        $channel = RecordingChannel::install(null);
        changed('news', 4);
        changed('news', 5);
        self::assertSame([], $channel->client->calls());
        $channel->end();
        self::assertEquals([new Invalidation(['news', 'news:4', 'news:5'])], $channel->client->calls());
        changed('news', 6);
        $channel->end();
        self::assertEquals(new Invalidation(['news', 'news:6']), $channel->client->calls()[1]);
    }

    public function testTheNextRequestOfAProcessTellsWhatTheOneBeforeLeft(): void
    {
        $channel = RecordingChannel::install('GET');
        changed('news', 4);
        RecordingChannel::install('GET');
        self::assertSame(['news', 'news:4'], $channel->client->tags());
    }

    public function testAJobThatIsDoneTellsWhatItLeft(): void
    {
        $channel = RecordingChannel::install(null);
        changed('news', 4);
        flush();
        self::assertCount(1, $channel->client->calls());
        flush();
        $channel->end();
        self::assertCount(1, $channel->client->calls());
    }

    public function testSoftChangesAreToldApart(): void
    {
        $channel = RecordingChannel::install('POST');
        changedSoftly('views', 4);
        changed('news', 4);
        $channel->end();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
        self::assertEquals([new Invalidation(['views', 'views:4'], soft: true)], $channel->client->calls());
    }

    public function testASoftChangeIsAHardOneWhereThereIsNoControlInterface(): void
    {
        $channel = new RecordingChannel('POST');
        RequestScope::begin($channel, client: false);
        changedSoftly('views', 4);
        self::assertSame(['Cache-Group-Invalidation: "views", "views:4"'], $channel->lines());
    }

    public function testManyChangesAreToldOnTheWayAndWidenedInTheEnd(): void
    {
        $channel = RecordingChannel::install(null);
        for ($id = 0; $id < 2 * Changes::IDS_MAX_BY_CONTROL; $id++) {
            changed('news', $id);
        }
        self::assertNotSame([], $channel->client->calls());
        foreach ($channel->client->calls() as $call) {
            self::assertLessThanOrEqual(Invalidation::TAGS_MAX, count($call->tags));
        }
        $channel->end();
        self::assertCount(2 * Changes::IDS_MAX_BY_CONTROL + 1, $channel->client->tags());
    }

    public function testWhilePagewellIsAwayChangesStayAndAreWidened(): void
    {
        $channel = RecordingChannel::install(null);
        $channel->client->fail(new PagewellUnreachable('It is away.'));
        for ($id = 0; $id < 3 * Changes::IDS_MAX_BY_CONTROL; $id++) {
            changed('news', $id);
        }
        self::assertSame(['pagewell: It is away. Tried again later.'], $this->logged);
        $channel->client->fail(null);
        $channel->end();
        $calls = $channel->client->calls();
        self::assertSame(['news', 'news:*'], end($calls)->tags);
        self::assertCount(1, $this->logged);
    }

    public function testWhatCannotBeToldIsLoggedWithTheCommandToRun(): void
    {
        $channel = RecordingChannel::install(null);
        $channel->client->fail(new PagewellUnreachable('It is away.'));
        changed('news', 4);
        $channel->end();
        self::assertSame(["pagewell: It is away. Old pages may be served until they are purged: pagewell purge --tag 'news' --tag 'news:4'"], $this->logged);
    }

    public function testALogThatFailsBreaksNothing(): void
    {
        Configuration::set(log: static fn (string $text) => throw new \RuntimeException('no log'));
        $before = ini_set('error_log', '/dev/null');
        $channel = RecordingChannel::install(null);
        $channel->client->fail(new PagewellUnreachable('It is away.'));
        changed('news', 4);
        $channel->end();
        ini_set('error_log', (string) $before);
        self::assertCount(1, $channel->client->calls());
    }

    public function testAChangeOnAGetIsToldBeforeTheHeaderSection(): void
    {
        $channel = RecordingChannel::install('GET');
        changed('news', 4);
        $channel->send();
        self::assertEquals([new Invalidation(['news', 'news:4'])], $channel->client->calls());
    }

    public function testByControlNoAnswerCarriesAChange(): void
    {
        Configuration::set(changes: ChangeDelivery::Control);
        $channel = RecordingChannel::install('POST');
        transaction()->begin();
        changed('news', 4);
        changed('news', 5);
        transaction()->commit();
        self::assertSame([], $channel->client->calls());
        $channel->send();
        self::assertEquals([new Invalidation(['news', 'news:4', 'news:5'])], $channel->client->calls());
        self::assertSame([], $channel->lines());
        changed('news', 6);
        $channel->end();
        self::assertEquals(new Invalidation(['news', 'news:6']), $channel->client->calls()[1]);
    }

    public function testByControlWithoutOneIsRefusedBeforeTheWrite(): void
    {
        Configuration::set(changes: ChangeDelivery::Control);
        $this->expectException(InvalidConfiguration::class);
        $this->expectExceptionMessage('PAGEWELL_CHANGES=control');
        RequestScope::begin(new RecordingChannel('POST'), client: false);
    }

    public function testWhoAsksAtOnceGetsTheException(): void
    {
        $channel = RecordingChannel::install('GET');
        self::assertSame(0, changedNow('news', 4));
        self::assertSame(0, invalidate(urls: ['/news/4/'], soft: true));
        self::assertSame(0, invalidate());
        self::assertEquals([new Invalidation(['news', 'news:4']), new Invalidation(urls: ['/news/4/'], soft: true)], $channel->client->calls());
        $channel->client->fail(new PagewellUnreachable('It is away.'));
        $this->expectException(PagewellUnreachable::class);
        changedNow('news', 4);
    }

    public function testSwitchedOffIsAnExceptionForWhoeverAsksAtOnce(): void
    {
        RequestScope::begin(new RecordingChannel(), client: false);
        $this->expectException(InvalidConfiguration::class);
        invalidate(all: true);
    }
}
