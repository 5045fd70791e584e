<?php

/**
 * Models of Laravel with the trait InvalidatesPages: which events are which changes.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Pagewell\Configuration;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use Pagewell\Testing\ResponseTags;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class LaravelModelsTest extends TestCase
{
    private LaravelApplication $site;

    protected function setUp(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
        require_once __DIR__ . '/LaravelApplication.php';
        $this->site = new LaravelApplication();
        Configuration::set(new RecordingClient());
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        isset($this->site) && $this->site->stop();
        Configuration::reset();
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    /**
     * @dataProvider writes
     *
     * @param \Closure(): mixed $prepare
     * @param \Closure(): mixed $write
     * @param list<string>      $tags
     */
    #[DataProvider('writes')]
    public function testAModelSaysWhatHappensToIt(\Closure $prepare, \Closure $write, array $tags): void
    {
        RecordingChannel::install('POST');
        $prepared = $prepare();
        $channel = RecordingChannel::install('POST');
        $write($prepared);
        $found = ResponseTags::of(array_map(static fn (string $line): string => explode(': ', $line, 2)[1], $channel->lines()));
        sort($found);
        self::assertSame($tags, $found);
    }

    /** @return iterable<string, array{\Closure, \Closure, list<string>}> */
    public static function writes(): iterable
    {
        $comment = static fn () => Comment::query()->create(['news_id' => 4, 'text' => 'First!']);
        $nothing = static fn () => null;
        $one = ['comments', 'comments:1', 'news', 'news:4'];
        // A comment touches its news, which then counts as saved.
        yield 'created, with its parent' => [$nothing, $comment, $one];
        yield 'updated' => [$comment, static fn (Comment $made) => $made->update(['text' => 'Second!']), $one];
        yield 'moved: both parents' => [$comment, static fn (Comment $made) => $made->update(['news_id' => 5]), ['comments', 'comments:1', 'news', 'news:4', 'news:5']];
        yield 'moved to nobody' => [$comment, static fn (Comment $made) => $made->setTouchedRelations([])->update(['news_id' => null]), ['comments', 'comments:1', 'news:4']];
        yield 'deleted' => [$comment, static fn (Comment $made) => $made->setTouchedRelations([])->delete(), ['comments', 'comments:1', 'news:4']];
        yield 'of a tag, by its type' => [$nothing, static fn () => Comment::query()->create(['owner_type' => Tag::class, 'owner_id' => 9]), ['comments', 'comments:1', 'tags:9']];
        yield 'trashed' => [$nothing, static fn () => Article::query()->find(4)->delete(), ['news', 'news:4']];
        yield 'restored' => [static fn () => tap(Article::query()->find(4))->delete(), static fn (Article $made) => $made->restore(), ['news', 'news:4']];
        yield 'a column that no page shows' => [static fn () => Article::query()->find(4), static fn (Article $made) => $made->update(['views' => 9]), []];
        yield 'a counter that no page shows' => [static fn () => Article::query()->find(4), static fn (Article $made) => $made->increment('views'), []];
        yield 'that counter by a query' => [$nothing, static fn () => Article::query()->where('title', 'four')->increment('views'), []];
        yield 'that counter with a title' => [$nothing, static fn () => Article::query()->whereKey(4)->increment('views', 1, ['title' => 'five']), ['news', 'news:4']];
        yield 'a counter of another model' => [$comment, static fn (Comment $made) => $made->increment('owner_id'), ['comments', 'comments:1', 'news:4']];
        yield 'that counter, and then touched by a comment' => [$nothing, static fn () => (new Comment(['text' => 'First!']))->news()->associate(tap(Article::query()->find(4))->increment('views'))->save(), $one];
        yield 'nothing written' => [static fn () => Article::query()->find(4), static fn (Article $made) => $made->fill(['title' => 'unsaved']), []];
        yield 'said by hand, with the model in place of its id' => [static fn () => Article::query()->find(4), static fn (Article $made) => \Pagewell\changed('stories', $made, shelves: $made), ['shelves:4', 'stories', 'stories:4']];
        $tag = static fn () => [Article::query()->find(4), Tag::query()->create(['name' => 'harbour'])];
        $pivot = ['news:4', 'news_tag', 'news_tag:*', 'tags:1'];
        yield 'attached' => [$tag, static fn (array $made) => $made[0]->tags()->attach($made[1]->id), $pivot];
        yield 'detached' => [static fn () => tap($tag(), static fn (array $made) => $made[0]->tags()->attach(1)), static fn (array $made) => $made[0]->tags()->detach(1), $pivot];
        yield 'synchronised' => [static fn () => tap($tag(), static fn (array $made) => $made[0]->tags()->attach(1)), static fn (array $made) => $made[0]->tags()->sync([]), $pivot];
    }

    public function testAMistakenParentIsNamed(): void
    {
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage("pagewellParents() names 'tags'");
        (new class (['title' => 'wrong']) extends Article {
            public function pagewellParents(): array
            {
                return ['tags'];
            }
        })->save();
    }
}
