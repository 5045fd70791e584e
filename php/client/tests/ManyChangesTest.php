<?php

/**
 * More changes than a header section can hold: what takes their place, and what it costs.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\CollectingChannel;
use Pagewell\Core\Changes;
use Pagewell\Core\Declaration;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationHeader;
use Pagewell\Core\Tag;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\transaction;

final class ManyChangesTest extends TestCase
{
    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        RequestScope::begin();
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
    #[DataProvider('bounds')]
    public function testHoweverMuchHasChangedItIsBoundedAndReachesItsPages(int $kinds, int $bytes, int $raw): void
    {
        mt_srand($kinds + $bytes);
        $write = new Changes();
        $pages = [];
        for ($n = 0; $n < 3000; $n++) {
            [$kind, $id] = ['kind' . mt_rand(1, $kinds), mt_rand(1, 9999) . str_repeat('"', mt_rand(0, $bytes))];
            if (mt_rand(1, 100) <= $raw) {
                $pages[] = (new Declaration())->usesTags("node:$n");
                $write->changedTags("node:$n");
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
        $channel = RecordingChannel::install('POST');
        $written = 0;
        for ($id = 1; $id <= 1000; $id++) {
            changed('kind' . $id % 10, $id);
            $written += count(array_diff($channel->lines(), $before ?? []));
            $before = $channel->lines();
            self::assertStringContainsString('"kind' . $id % 10 . ":$id\"", implode("\n", $before));
            self::assertLessThan(100, count($before));
        }
        self::assertLessThan(1500, $written, 'a line or so with each change');
        $channel->send();
        $together = new Changes();
        for ($id = 1; $id <= 1000; $id++) {
            $together->changed('kind' . $id % 10, $id);
        }
        self::assertSame($together->lines(), $channel->lines());
    }

    public function testThousandsOfChangesFitIntoAHeaderSection(): void
    {
        $channel = RecordingChannel::install('POST');
        for ($id = 1; $id <= 3000; $id++) {
            changed('news', $id);
            changed('comments', str_pad((string) $id, 600, 'x'), news: $id);
            RequestScope::current()->changedTags('node:' . $id % 1000);
            self::assertLessThan(72 * 1024, array_sum(array_map('strlen', $channel->lines())));
        }
        $channel->send();
        $line = implode(', ', $channel->lines());
        foreach (['"news"', '"news:*"', '"comments"', '"comments:*"', '"node:0"', '"node:999"'] as $tag) {
            self::assertStringContainsString($tag, $line);
        }
    }

    public function testWhatIsSaidAlreadyIsNotWrittenAgain(): void
    {
        $channel = RecordingChannel::install('POST');
        $known = array_map(static fn (int $id): string => "node:$id", range(1, 1000));
        for ($id = 1001; $id <= 1100; $id++) {
            RequestScope::current()->changedTags("node:$id", ...$known);
            self::assertStringContainsString("\"node:$id\"", implode("\n", $channel->lines()));
            self::assertLessThan(32 * 1024, array_sum(array_map('strlen', $channel->lines())));
        }
    }

    /** @dataProvider rests */
    #[DataProvider('rests')]
    public function testAnAnswerThatSaysLessThanHasChangedIsMissed(bool $missed, ?array $left): void
    {
        $channel = new RecordingChannel('POST');
        $carried = new InvalidationHeader($channel);
        for ($id = 1; $id <= 100; $id++) {
            $carried->add((new Changes())->changed('news', "\"$id\\"));
        }
        self::assertGreaterThan(1, count($channel->lines()));
        $left === null || $channel->set($left, replace: 'Cache-Group-Invalidation');
        self::assertFalse($carried->isMissed(), 'not yet sent');
        $channel->send();
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
        $channel = RecordingChannel::install('POST');
        RequestScope::current()->changedTags(...array_map(static fn (int $id): string => "node:$id", range(1, 5000)));
        self::assertSame(['Cache-Group-Invalidation: *'], $channel->lines());
        changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: *'], $channel->lines());
        $channel->send();
        self::assertSame(['Cache-Group-Invalidation: *'], $channel->lines());
    }

    public function testALostResponseThatSaidEverythingIsToldAsEverything(): void
    {
        $client = new RecordingClient();
        $channel = CollectingChannel::begin('POST', $client);
        for ($id = 1; $id <= 5000; $id++) {
            RequestScope::current()->changedTags("node:$id");
        }
        $channel->lose();
        RequestScope::current()->end();
        self::assertEquals([new Invalidation(all: true)], $client->calls());
    }

    public function testThousandsOfTagsAreToldOneByOne(): void
    {
        $channel = RecordingChannel::install('GET');
        $tags = array_map(static fn (int $id): string => "node:$id", range(1, 12_000));
        RequestScope::current()->changedTags(...$tags);
        $channel->send();
        self::assertSame($tags, $channel->client->tags());
    }

    public function testWhatIsTooMuchToBeHeldIsEverything(): void
    {
        $channel = RecordingChannel::install(null);
        transaction()->begin();
        for ($id = 0; $id < 4500; $id++) {
            RequestScope::current()->changedTags(str_pad("node:$id", 1000, 'x'));
        }
        transaction()->commit();
        $channel->end();
        self::assertEquals([new Invalidation(all: true)], $channel->client->calls());
    }

    public function testATagOfThatNameIsNotEverything(): void
    {
        $channel = RecordingChannel::install('POST');
        RequestScope::current()->changedTags('*');
        self::assertSame(['Cache-Group-Invalidation: "*"'], $channel->lines());
        RequestScope::current()->invalidate(new Invalidation(['*']));
        self::assertEquals([new Invalidation(['*'])], $channel->client->calls());
    }
}
