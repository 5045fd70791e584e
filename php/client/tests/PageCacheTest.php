<?php

/**
 * Pages that must not be cached, and PageCache, which is the functions as an object.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Core\Exception\UseAfterHeaders;
use Pagewell\Core\Invalidation;
use Pagewell\Core\Refusal;
use Pagewell\RequestPageCache;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\freshFor;
use function Pagewell\notCached;
use function Pagewell\uses;
use function Pagewell\usesTags;

final class PageCacheTest extends TestCase
{
    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testAPageThatSaysSoIsNotCachedWhateverElseItSays(): void
    {
        $channel = RecordingChannel::install();
        notCached();
        uses('news', 4);
        self::assertSame(Refusal::NotCached, RequestScope::current()->refusal());
        $channel->send();
        self::assertSame(['Pagewell-Cache-Control: no-store', 'X-Pagewell-Refusal: not-cached'], $channel->lines());
        $this->expectException(UseAfterHeaders::class);
        notCached();
    }

    /** @dataProvider pagesOfASignedInVisitor */
    #[DataProvider('pagesOfASignedInVisitor')]
    public function testAPageOfASignedInVisitorIsNeverOffered(array $own, array $added): void
    {
        $channel = RecordingChannel::install();
        $channel->set($own);
        usesTags('news:4');
        freshFor(60);
        notCached();
        RequestScope::current()->signedIn();
        self::assertSame(Refusal::SignedIn, RequestScope::current()->refusal());
        $channel->send();
        self::assertSame([...$own, ...$added, 'X-Pagewell-Refusal: signed-in'], $channel->lines());
        RequestScope::current()->signedIn(); // Too late to count; it is no error of the framework.
    }

    public function testTheAnswerToALoginFormSaysThatTheVisitorIsSignedIn(): void
    {
        foreach ([true, false] as $isSignedIn) {
            $channel = RecordingChannel::install('POST', 302);
            usesTags('news:4');
            $isSignedIn && RequestScope::current()->signedIn();
            $channel->send();
            self::assertSame($isSignedIn, in_array('X-Pagewell-Refusal: signed-in', $channel->lines(), true));
            self::assertCount($isSignedIn ? 1 : 0, preg_grep('/^X-Pagewell-Refusal/', $channel->lines()));
        }
    }

    /** @return iterable<string, array{list<string>, list<string>}> */
    public static function pagesOfASignedInVisitor(): iterable
    {
        yield 'says nothing itself' => [[], ['Pagewell-Cache-Control: no-store', 'Cache-Control: private, no-cache']];
        yield 'says that it is shared' => [['Cache-Control: public, max-age=600'], ['Pagewell-Cache-Control: no-store']];
        yield 'says it to Pagewell' => [['Pagewell-Cache-Control: max-age=600'], ['Pagewell-Cache-Control: no-store', 'Cache-Control: private, no-cache']];
    }

    public function testTheObjectDoesWhatTheFunctionsDo(): void
    {
        $pages = new RequestPageCache();
        $channel = RecordingChannel::install();
        $pages->uses('news', 4);
        $pages->usesList('comments', [1], 600);
        $pages->usesTags('menu');
        $pages->freshFor(60);
        self::assertSame(['news:4', 'news:*', 'comments:1', 'comments:*', 'menu'], $pages->tags());
        self::assertNull($pages->refusal());
        $pages->changed('news', 4);
        $pages->changedTags('menu');
        $channel->send();
        self::assertContains('Pagewell-Cache-Control: max-age=60', $channel->lines());
        self::assertSame(['menu', 'news', 'news:4'], self::sorted($channel->client->tags()));

        $channel = RecordingChannel::install();
        $pages->notCached();
        self::assertSame(Refusal::NotCached, $pages->refusal());
        $pages->signedIn();
        self::assertSame(Refusal::SignedIn, $pages->refusal());
        $pages->changedSoftly('views', 4);
        self::assertSame(0, $pages->changedNow('news', 5));
        self::assertSame(0, $pages->invalidate(['/about/']));
        self::assertSame(0, $pages->flush());
        self::assertEquals([new Invalidation(['news', 'news:5']), new Invalidation(urls: ['/about/']), new Invalidation(['views', 'views:4'], soft: true)], $channel->client->calls());
    }

    /**
     * @param list<string> $tags
     *
     * @return list<string>
     */
    private static function sorted(array $tags): array
    {
        sort($tags);
        return $tags;
    }
}
