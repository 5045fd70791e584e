<?php

/**
 * Tests that the vectors do not contain: limits, exceptions, and that a change invalidates exactly
 * the right pages.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Core;

use Pagewell\Core\Changes;
use Pagewell\Core\Credentials;
use Pagewell\Core\Declaration;
use Pagewell\Core\Exception\InvalidLifetime;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Refusal;
use Pagewell\Core\Response;
use Pagewell\Core\Tag;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class DeclarationTest extends TestCase
{
    /** @return iterable<string, array{Declaration, Changes, bool}> page, write, do they meet */
    public static function meetings(): iterable
    {
        $list = (new Declaration())->uses('news');
        $news = (new Declaration())->uses('news', 4);
        $other = (new Declaration())->uses('news', 44);
        $comments = (new Declaration())->uses('comments');
        $publish = (new Changes())->changed('news', 4);
        $import = (new Changes())->changed('news');
        $comment = (new Changes())->changed('comments', 17, news: 4);

        yield 'an edit drops the lists' => [$list, $publish, true];
        yield 'an edit drops its page' => [$news, $publish, true];
        yield 'an edit leaves the page of another' => [$other, $publish, false];
        yield 'an edit leaves lists of another kind' => [$comments, $publish, false];
        yield 'an unknown change drops the lists' => [$list, $import, true];
        yield 'an unknown change drops every page of the kind' => [$other, $import, true];
        yield 'an unknown change leaves other kinds' => [$comments, $import, false];
        yield 'a comment leaves the lists of news' => [$list, $comment, false];
        yield 'a comment drops the page of its news' => [$news, $comment, true];
        yield 'a comment leaves the page of another news' => [$other, $comment, false];
        yield 'a comment drops the lists of comments' => [$comments, $comment, true];
    }

    /** @dataProvider meetings */
    #[DataProvider('meetings')]
    public function testAPageAndAChangeMeet(Declaration $page, Changes $write, bool $meet): void
    {
        self::assertSame($meet, array_intersect($page->tags(), $write->tags()) !== []);
    }

    public function testTooManyTagsAreRefusedAndNotCut(): void
    {
        $page = (new Declaration())->uses('news', ...range(1, Declaration::TAGS_MAX - 1));
        self::assertNull($page->refusal(new Response()));
        $page->uses('news', Declaration::TAGS_MAX);
        self::assertSame(Refusal::TooManyTags, $page->refusal(new Response()));
        self::assertSame(['Pagewell-Cache-Control: no-store'], $page->lines(new Response()));
        $page->uses('news', ...range(2000, 9000));
        self::assertCount(Declaration::TAGS_MAX + 1, $page->tags(), 'what is collected is bounded');
    }

    public function testMoreThanFitsOfASetIsTheKindAsAWhole(): void
    {
        $page = (new Declaration())->usesList('news', range(1, 5000), 60);
        self::assertSame(['news'], $page->tags());
        self::assertNull($page->refusal(new Response()));
    }

    public function testTooManyBytesAreRefused(): void
    {
        $page = new Declaration();
        for ($id = 0; $id < 70; $id++) {
            $page->uses('news', str_repeat('x', 1000) . $id);
        }
        self::assertSame(Refusal::TooManyTags, $page->refusal(new Response()));
    }

    public function testLongListsTakeSeveralLinesThatAreOneList(): void
    {
        $page = (new Declaration())->uses('article-of-the-archive', ...range(100_000, 100_900));
        $lines = array_filter($page->lines(new Response()), static fn (string $line): bool => str_starts_with($line, 'Cache-Groups: '));
        self::assertGreaterThan(1, count($lines));
        $tags = [];
        foreach ($lines as $line) {
            self::assertLessThan(8000, strlen($line));
            array_push($tags, ...explode(', ', str_replace('"', '', substr($line, strlen('Cache-Groups: ')))));
        }
        self::assertSame($page->tags(), $tags);
    }

    public function testALongIdIsHashedOnBothSides(): void
    {
        $word = str_repeat('ä', 500);
        $tag = Tag::one('search', $word);
        self::assertSame('search:%sha256-' . hash('sha256', $word), $tag);
        self::assertContains($tag, (new Declaration())->uses('search', $word)->tags());
        self::assertContains($tag, (new Changes())->changed('search', $word)->tags());
        self::assertSame(Tag::BYTES_MAX, strlen(Tag::one('a', str_repeat('x', Tag::BYTES_MAX - 2))));
    }

    public function testManyChangesWidenAndLoseNone(): void
    {
        $write = new Changes();
        foreach (range(1, Changes::IDS_MAX) as $id) {
            $write->changed('news', $id);
        }
        self::assertContains('news:' . Changes::IDS_MAX, $write->tags());
        $write->changed('news', 100_000);
        self::assertSame(['news', 'news:*'], $write->tags());
        $write->changed('news', 100_001);
        self::assertSame(['news', 'news:*'], $write->tags());
        $page = (new Declaration())->uses('news', 3);
        self::assertNotSame([], array_intersect($page->tags(), $write->tags()));
    }

    public function testRepeatingAChangeDoesNotWidenIt(): void
    {
        $write = new Changes();
        foreach (range(1, Changes::IDS_MAX) as $id) {
            $write->changed('news', $id);
        }
        $write->changed('news', 7);
        self::assertNotContains('news:*', $write->tags());
    }

    /** @return iterable<string, array{callable(): mixed}> */
    public static function invalidTags(): iterable
    {
        yield 'a page with an empty kind' => [static fn () => (new Declaration())->uses('')];
        yield 'a page with an empty id' => [static fn () => (new Declaration())->uses('news', 4, '')];
        yield 'a page with a named id' => [static fn () => (new Declaration())->uses('comments', ...['news' => 4])];
        yield 'a kind too long' => [static fn () => (new Declaration())->uses(str_repeat('k', Tag::KIND_BYTES_MAX + 1))];
        yield 'a change with an empty kind' => [static fn () => (new Changes())->changed('')];
        yield 'a change with an id of nothing' => [static fn () => (new Changes())->changed('comments', 17, 4)];
        yield 'a change without a kind' => [static fn () => (new Changes())->changed(news: 4)];
        yield 'a change of nothing' => [static fn () => (new Changes())->changed()];
    }

    public function testAnIdThatTheDataDoesNotHaveIsUnknown(): void
    {
        self::assertSame(['comments', 'comments:17', 'news:*'], (new Changes())->changed('comments', 17, news: null)->tags());
        self::assertSame(['comments', 'comments:*', 'news:*'], (new Changes())->changed('comments', '', news: '')->tags());
        self::assertSame(['news', 'news:*'], (new Changes())->changed('news', '')->tags());
    }

    public function testAColonInAKindIsEncodedSoThatItIsNoId(): void
    {
        self::assertSame(['news%3A4'], (new Declaration())->uses('news:4')->tags());
    }

    public function testAnIdWithANameSaysHowToWriteIt(): void
    {
        $this->expectExceptionMessage("uses('news', id: …): ids have no names. Write uses('news', 4).");
        (new Declaration())->uses('news', ...['id' => 4]);
    }

    /** @dataProvider ownFields */
    #[DataProvider('ownFields')]
    public function testAPageThatIsNotOfferedLosesTheLifetimeThatTheApplicationGaveIt(Declaration $page, Response $response): void
    {
        self::assertContains('Pagewell-Cache-Control: no-store', $page->lines($response));
    }

    /** @return iterable<string, array{Declaration, Response}> */
    public static function ownFields(): iterable
    {
        $own = ['Pagewell-Cache-Control: max-age=3600'];
        $many = (new Declaration())->uses('news', ...range(1, Declaration::TAGS_MAX + 1));
        yield 'too many tags' => [$many, new Response(lines: $own)];
        yield 'a fatal error' => [(new Declaration())->uses('news'), new Response(lines: $own, failed: true)];
        yield 'no lifetime' => [(new Declaration())->uses('news')->freshFor(0), new Response(lines: $own)];
        yield 'a session' => [(new Declaration())->uses('news'), new Response(lines: $own, session: true)];
        yield 'the cookie of a visitor' => [(new Declaration())->uses('news'), new Response(lines: $own, credentials: Credentials::of('login=ada'))];
    }

    public function testAParentMayBeCalledAsTheFirstParametersAre(): void
    {
        self::assertSame(['comments', 'comments:17', 'id:4', 'kind:5'], (new Changes())->changed('comments', 17, id: 4, kind: 5)->tags());
        self::assertSame(['comments', 'comments:*', 'id:4'], (new Changes())->changed('comments', id: 4)->tags());
        self::assertSame(['comments', 'comments:17', 'news:4'], (new Changes())->changed(kind: 'comments', id: 17, news: 4)->tags());
    }

    /** @dataProvider invalidTags */
    #[DataProvider('invalidTags')]
    public function testWhatCannotBeATagIsRefused(callable $call): void
    {
        $this->expectException(InvalidTag::class);
        $call();
    }

    public function testARefusedCallDeclaresNothing(): void
    {
        $page = new Declaration();
        $write = new Changes();
        try {
            $page->uses('news', 4, '');
            self::fail('an empty id was taken');
        } catch (InvalidTag) {
            self::assertSame([], $page->tags());
        }
        try {
            $write->changed('comments', 17, 4);
            self::fail('an id without its kind was taken');
        } catch (InvalidTag) {
            self::assertSame([], $write->tags());
        }
    }

    public function testANegativeLifetimeIsRefused(): void
    {
        $this->expectException(InvalidLifetime::class);
        (new Declaration())->freshFor(-1);
    }

    public function testAFatalErrorUnderWayIsAFailure(): void
    {
        $page = (new Declaration())->uses('news', 4);
        self::assertSame(Refusal::Failed, $page->refusal(new Response(failed: true)));
    }

    public function testAKindMadeOfDigitsStaysAString(): void
    {
        self::assertSame(['2011'], (new Declaration())->uses('2011')->tags());
        self::assertSame(['2011', '2011:1'], (new Changes())->changed('2011', 1)->tags());
    }
}
