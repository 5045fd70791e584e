<?php

/**
 * The calls of the control interface and their times: with a recorded interface.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\Changes;
use Pagewell\ChangesBy;
use Pagewell\ControlAway;
use Pagewell\Invalidation;
use Pagewell\InvalidControl;
use Pagewell\InvalidTag;
use Pagewell\Outgoing;
use Pagewell\RecordingWire;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\changedNow;
use function Pagewell\changedSoftly;
use function Pagewell\invalidate;
use function Pagewell\tell;
use function Pagewell\transaction;

final class ControlTest extends TestCase
{
    /** @var list<string> */
    private array $logged = [];

    protected function setUp(): void
    {
        $this->logged = [];
        Outgoing::configure(log: function (string $text): void {
            $this->logged[] = $text;
        });
    }

    protected function tearDown(): void
    {
        Outgoing::begin(control: false);
        Outgoing::configure();
        Outgoing::begin();
    }

    /** @dataProvider vectors */
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
        $wire = RecordingWire::install(null);
        changed('news', 4);
        changed('news', 5);
        self::assertSame([], $wire->control->calls());
        $wire->end();
        self::assertEquals([new Invalidation(['news', 'news:4', 'news:5'])], $wire->control->calls());
        changed('news', 6);
        $wire->end();
        self::assertEquals(new Invalidation(['news', 'news:6']), $wire->control->calls()[1]);
    }

    public function testTheNextRequestOfAProcessTellsWhatTheOneBeforeLeft(): void
    {
        $wire = RecordingWire::install('GET');
        changed('news', 4);
        RecordingWire::install('GET');
        self::assertSame(['news', 'news:4'], $wire->control->tags());
    }

    public function testAJobThatIsDoneTellsWhatItLeft(): void
    {
        $wire = RecordingWire::install(null);
        changed('news', 4);
        tell();
        self::assertCount(1, $wire->control->calls());
        tell();
        $wire->end();
        self::assertCount(1, $wire->control->calls());
    }

    public function testSoftChangesAreToldApart(): void
    {
        $wire = RecordingWire::install('POST');
        changedSoftly('views', 4);
        changed('news', 4);
        $wire->end();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $wire->lines());
        self::assertEquals([new Invalidation(['views', 'views:4'], soft: true)], $wire->control->calls());
    }

    public function testASoftChangeIsAHardOneWhereThereIsNoControlInterface(): void
    {
        $wire = new RecordingWire('POST');
        Outgoing::begin($wire, control: false);
        changedSoftly('views', 4);
        self::assertSame(['Cache-Group-Invalidation: "views", "views:4"'], $wire->lines());
    }

    public function testManyChangesAreToldOnTheWayAndWidenedInTheEnd(): void
    {
        $wire = RecordingWire::install(null);
        for ($id = 0; $id < 2 * Changes::IDS_MAX_BY_CONTROL; $id++) {
            changed('news', $id);
        }
        self::assertNotSame([], $wire->control->calls());
        foreach ($wire->control->calls() as $call) {
            self::assertLessThanOrEqual(Invalidation::TAGS_MAX, count($call->tags));
        }
        $wire->end();
        self::assertCount(2 * Changes::IDS_MAX_BY_CONTROL + 1, $wire->control->tags());
    }

    public function testWhilePagewellIsAwayChangesStayAndAreWidened(): void
    {
        $wire = RecordingWire::install(null);
        $wire->control->fail(new ControlAway('It is away.'));
        for ($id = 0; $id < 3 * Changes::IDS_MAX_BY_CONTROL; $id++) {
            changed('news', $id);
        }
        self::assertSame(['pagewell: It is away. Tried again later.'], $this->logged);
        $wire->control->fail(null);
        $wire->end();
        $calls = $wire->control->calls();
        self::assertSame(['news', 'news:*'], end($calls)->tags);
        self::assertCount(1, $this->logged);
    }

    public function testWhatCannotBeToldIsLoggedWithTheCommandToRun(): void
    {
        $wire = RecordingWire::install(null);
        $wire->control->fail(new ControlAway('It is away.'));
        changed('news', 4);
        $wire->end();
        self::assertSame(["pagewell: It is away. Pages made from what has changed may still be shown. When it is back: pagewell invalidate --tag 'news' --tag 'news:4'"], $this->logged);
    }

    public function testALogThatFailsBreaksNothing(): void
    {
        Outgoing::configure(log: static fn (string $text) => throw new \RuntimeException('no log'));
        $before = ini_set('error_log', '/dev/null');
        $wire = RecordingWire::install(null);
        $wire->control->fail(new ControlAway('It is away.'));
        changed('news', 4);
        $wire->end();
        ini_set('error_log', (string) $before);
        self::assertCount(1, $wire->control->calls());
    }

    public function testAChangeOnAGetIsToldBeforeTheHeaderSection(): void
    {
        $wire = RecordingWire::install('GET');
        changed('news', 4);
        $wire->send();
        self::assertEquals([new Invalidation(['news', 'news:4'])], $wire->control->calls());
    }

    public function testByControlNoAnswerCarriesAChange(): void
    {
        Outgoing::configure(changes: ChangesBy::Control);
        $wire = RecordingWire::install('POST');
        transaction()->begin();
        changed('news', 4);
        changed('news', 5);
        transaction()->commit();
        self::assertSame([], $wire->control->calls());
        $wire->send();
        self::assertEquals([new Invalidation(['news', 'news:4', 'news:5'])], $wire->control->calls());
        self::assertSame([], $wire->lines());
        changed('news', 6);
        $wire->end();
        self::assertEquals(new Invalidation(['news', 'news:6']), $wire->control->calls()[1]);
    }

    public function testByControlWithoutOneIsRefusedBeforeTheWrite(): void
    {
        Outgoing::configure(changes: ChangesBy::Control);
        $this->expectException(InvalidControl::class);
        $this->expectExceptionMessage('PAGEWELL_CHANGES=control');
        Outgoing::begin(new RecordingWire('POST'), control: false);
    }

    public function testWhoAsksAtOnceGetsTheException(): void
    {
        $wire = RecordingWire::install('GET');
        self::assertSame(0, changedNow('news', 4));
        self::assertSame(0, invalidate(urls: ['/news/4/'], soft: true));
        self::assertSame(0, invalidate());
        self::assertEquals([new Invalidation(['news', 'news:4']), new Invalidation(urls: ['/news/4/'], soft: true)], $wire->control->calls());
        $wire->control->fail(new ControlAway('It is away.'));
        $this->expectException(ControlAway::class);
        changedNow('news', 4);
    }

    public function testSwitchedOffIsAnExceptionForWhoeverAsksAtOnce(): void
    {
        Outgoing::begin(new RecordingWire(), control: false);
        $this->expectException(InvalidControl::class);
        invalidate(all: true);
    }
}
