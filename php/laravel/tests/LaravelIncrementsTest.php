<?php

/**
 * Counters of Eloquent's models, which change in the database without an event of a model.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Database\Query\Expression;
use Pagewell\Configuration;
use Pagewell\Laravel\PagewellProvider;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class LaravelIncrementsTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
    }

    protected function setUp(): void
    {
        // Rows are also written while no response is recorded.
        Configuration::set(new RecordingClient());
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
        Configuration::reset();
        RequestScope::begin();
    }

    /**
     * @dataProvider increments
     *
     * @param \Closure(LaravelNews): mixed $write
     * @param list<string>                 $lines
     */
    #[DataProvider('increments')]
    public function testACounterThatIsIncrementedIsAChange(\Closure $write, array $lines): void
    {
        [, $events] = LaravelDatabase::open();
        PagewellProvider::listenToModel($events, LaravelNews::class, 'news');
        $news = LaravelNews::query()->create(['title' => 'first']);
        LaravelNews::query()->create(['title' => 'second']);
        $channel = RecordingChannel::install('POST');
        $write($news);
        self::assertSame($lines, $channel->lines());
    }

    /** @return iterable<string, array{\Closure, list<string>}> */
    public static function increments(): iterable
    {
        $one = ['Cache-Group-Invalidation: "news", "news:1"'];
        $some = ['Cache-Group-Invalidation: "news", "news:*"'];
        yield 'of a model' => [static fn (LaravelNews $news) => $news->increment('views'), $one];
        yield 'of a model, down' => [static fn (LaravelNews $news) => $news->decrement('views', 2, ['title' => 'other']), $one];
        yield 'of a model, quietly' => [static fn (LaravelNews $news) => LaravelNews::withoutEvents(static fn () => $news->increment('views')), $one];
        yield 'by a query for one' => [static fn () => LaravelNews::query()->whereKey(1)->increment('views', 3, ['title' => 'other']), $one];
        yield 'by a query for some' => [static fn () => LaravelNews::query()->where('title', 'first')->decrement('views'), $some];
        yield 'by a query for one of two conditions' => [static fn () => LaravelNews::query()->where('title', 'first')->orWhere('id', 1)->increment('views'), $some];
        yield 'of a model that is not stored: of all' => [static fn () => (new LaravelNews())->increment('views'), $some];
        // As incrementEach() of Laravel 9 does it.
        yield 'of several columns' => [static fn () => LaravelNews::query()->toBase()->update(['views' => new Expression('"views" + 1'), 'likes' => new Expression('"likes" - 2')]), $some];
        yield 'of another table' => [static fn (LaravelNews $news) => $news->getConnection()->table('other')->increment('views'), []];
        yield 'pretended' => [static fn (LaravelNews $news) => $news->getConnection()->pretend(static fn () => LaravelNews::query()->increment('views')), []];
    }

    public function testACounterThatIsIncrementedInATransactionWaitsForItsCommit(): void
    {
        [$connection, $events] = LaravelDatabase::open();
        PagewellProvider::listenToModel($events, LaravelNews::class, 'news');
        $news = LaravelNews::query()->create(['title' => 'first']);
        $channel = RecordingChannel::install('POST');
        $connection->transaction(static function () use ($news, $channel): void {
            $news->increment('views');
            self::assertSame([], $channel->lines());
        });
        self::assertSame(['Cache-Group-Invalidation: "news", "news:1"'], $channel->lines());
    }
}
