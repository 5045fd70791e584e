<?php

/**
 * More changes than a header section can hold: what takes their place, and what it costs.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\Carried;
use Pagewell\Changes;
use Pagewell\Declaration;
use Pagewell\Invalidation;
use Pagewell\Outgoing;
use Pagewell\RecordingControl;
use Pagewell\RecordingWire;
use Pagewell\ResponseWire;
use Pagewell\Tag;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\transaction;

final class ManyChangesTest extends TestCase
{
    protected function tearDown(): void
    {
        Outgoing::begin(control: false);
        Outgoing::begin();
    }

    public function testTheKindsThatTakeMostGiveWayFirst(): void
    {
        $write = new Changes();
        foreach (range(100, 299) as $id) {
            $write->changed('long', str_repeat('x', 400) . $id)->changed('short', $id);
        }
        self::assertSame(['long', 'short', 'long:*', 'short:100'], array_slice($write->tags(), 0, 4));
        self::assertCount(203, $write->tags());
    }

    /** @dataProvider bounds */
    public function testHoweverMuchHasChangedItIsBoundedAndReachesItsPages(int $kinds, int $bytes, int $raw): void
    {
        mt_srand($kinds + $bytes);
        $write = new Changes();
        $pages = [];
        for ($n = 0; $n < 3000; $n++) {
            [$kind, $id] = ['kind' . mt_rand(1, $kinds), mt_rand(1, 9999) . str_repeat('"', mt_rand(0, $bytes))];
            if (mt_rand(1, 100) <= $raw) {
                $pages[] = (new Declaration())->tagged("node:$n");
                $write->tagged("node:$n");
            } else {
                $pages[] = (new Declaration())->uses($kind, $id);
                $pages[] = (new Declaration())->uses($kind);
                $write->changed($kind, $id);
            }
            self::assertLessThanOrEqual(Changes::BYTES_MAX, $write->bytes());
            self::assertLessThanOrEqual(4096, $write->count());
        }
        self::assertCount($write->count(), $write->tags());
        self::assertSame(array_sum(array_map(static fn (string $tag): int => max(16, Tag::bytes($tag)), $write->tags())), $write->bytes());
        $told = array_flip($write->tags());
        foreach ($write->isEverything() ? [] : $pages as $page) {
            self::assertNotSame([], array_intersect_key(array_flip($page->tags()), $told));
        }
        self::assertSame($kinds === 3000, $write->isEverything());
        self::assertFalse($write->isEmpty());
    }

    /** @return iterable<string, array{int, int, int}> */
    public static function bounds(): iterable
    {
        yield 'few kinds, short ids' => [3, 0, 0];
        yield 'many kinds, short ids' => [500, 0, 0];
        yield 'many kinds, long ids' => [500, 400, 0];
        yield 'more kinds than fit' => [3000, 100, 0];
        yield 'tags of the application beside' => [50, 300, 30];
    }

    public function testManyChangesAreOnTheWireAtAnyTimeAndTogetherInTheEnd(): void
    {
        $wire = RecordingWire::install('POST');
        $written = 0;
        for ($id = 1; $id <= 1000; $id++) {
            changed('kind' . $id % 10, $id);
            $written += count(array_diff($wire->lines(), $before ?? []));
            $before = $wire->lines();
            self::assertStringContainsString("\"kind" . $id % 10 . ":$id\"", implode("\n", $before));
            self::assertLessThan(100, count($before));
        }
        self::assertLessThan(1500, $written, 'a line or so with each change');
        $wire->send();
        $together = new Changes();
        for ($id = 1; $id <= 1000; $id++) {
            $together->changed('kind' . $id % 10, $id);
        }
        self::assertSame($together->lines(), $wire->lines());
    }

    public function testThousandsOfChangesFitIntoAHeaderSection(): void
    {
        $wire = RecordingWire::install('POST');
        for ($id = 1; $id <= 3000; $id++) {
            changed('news', $id);
            changed('comments', str_pad((string) $id, 600, 'x'), news: $id);
            Outgoing::current()->changedTagged("node:" . $id % 1000);
            self::assertLessThan(72 * 1024, array_sum(array_map('strlen', $wire->lines())));
        }
        $wire->send();
        $line = implode(', ', $wire->lines());
        foreach (['"news"', '"news:*"', '"comments"', '"comments:*"', '"node:0"', '"node:999"'] as $tag) {
            self::assertStringContainsString($tag, $line);
        }
    }

    public function testWhatIsSaidAlreadyIsNotWrittenAgain(): void
    {
        $wire = RecordingWire::install('POST');
        $known = array_map(static fn (int $id): string => "node:$id", range(1, 1000));
        for ($id = 1001; $id <= 1100; $id++) {
            Outgoing::current()->changedTagged("node:$id", ...$known);
            self::assertStringContainsString("\"node:$id\"", implode("\n", $wire->lines()));
            self::assertLessThan(32 * 1024, array_sum(array_map('strlen', $wire->lines())));
        }
    }

    /** @dataProvider rests */
    public function testAnAnswerThatSaysLessThanHasChangedIsMissed(bool $missed, ?array $left): void
    {
        $wire = new RecordingWire('POST');
        $carried = new Carried($wire);
        for ($id = 1; $id <= 100; $id++) {
            $carried->add((new Changes())->changed('news', "\"$id\\"));
        }
        self::assertGreaterThan(1, count($wire->lines()));
        $left === null || $wire->set($left, replace: 'Cache-Group-Invalidation');
        self::assertFalse($carried->isMissed(), 'not yet sent');
        $wire->send();
        self::assertSame($missed, $carried->isMissed());
    }

    /** @return iterable<string, array{bool, list<string>|null}> */
    public static function rests(): iterable
    {
        yield 'all of it' => [false, null];
        yield 'none' => [true, []];
        yield 'some lines' => [true, ['Cache-Group-Invalidation: "news", "news:1"']];
        yield 'everything' => [false, ['Cache-Group-Invalidation: *']];
    }

    public function testWhatCannotBeNamedIsEverything(): void
    {
        $wire = RecordingWire::install('POST');
        Outgoing::current()->changedTagged(...array_map(static fn (int $id): string => "node:$id", range(1, 5000)));
        self::assertSame(['Cache-Group-Invalidation: *'], $wire->lines());
        changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: *'], $wire->lines());
        $wire->send();
        self::assertSame(['Cache-Group-Invalidation: *'], $wire->lines());
    }

    public function testALostResponseThatSaidEverythingIsToldAsEverything(): void
    {
        $control = new RecordingControl();
        $wire = ResponseWire::begin('POST', $control);
        for ($id = 1; $id <= 5000; $id++) {
            Outgoing::current()->changedTagged("node:$id");
        }
        $wire->lose();
        Outgoing::current()->end();
        self::assertEquals([new Invalidation(all: true)], $control->calls());
    }

    public function testThousandsOfTagsAreToldOneByOne(): void
    {
        $wire = RecordingWire::install('GET');
        $tags = array_map(static fn (int $id): string => "node:$id", range(1, 12_000));
        Outgoing::current()->changedTagged(...$tags);
        $wire->send();
        self::assertSame($tags, $wire->control->tags());
    }

    public function testWhatIsTooMuchToBeHeldIsEverything(): void
    {
        $wire = RecordingWire::install(null);
        transaction()->begin();
        for ($id = 0; $id < 4500; $id++) {
            Outgoing::current()->changedTagged(str_pad("node:$id", 1000, 'x'));
        }
        transaction()->commit();
        $wire->end();
        self::assertEquals([new Invalidation(all: true)], $wire->control->calls());
    }

    public function testATagOfThatNameIsNotEverything(): void
    {
        $wire = RecordingWire::install('POST');
        Outgoing::current()->changedTagged('*');
        self::assertSame(['Cache-Group-Invalidation: "*"'], $wire->lines());
        Outgoing::current()->invalidate(new Invalidation(['*']));
        self::assertEquals([new Invalidation(['*'])], $wire->control->calls());
    }
}
