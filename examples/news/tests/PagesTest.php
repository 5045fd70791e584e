<?php

/**
 * The pages as text: escaping, the size that benchmarks rely on, and what fills the site.
 */

declare(strict_types=1);

namespace News\Tests;

use News\Fill\Writer;
use News\Libraries\News;
use News\Response;
use News\Template;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\TestCase;

use function Pagewell\uses;

final class PagesTest extends TestCase
{
    private const COLUMNS = ['id', 'topic', 'title', 'summary', 'body', 'author', 'published'];

    protected function setUp(): void
    {
        RecordingChannel::install();
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testThePageOfNewsOneIsAsLongAsBenchmarksExpect(): void
    {
        uses('news', 1);
        $news = array_combine(self::COLUMNS, require __DIR__ . '/../fill/first-news.php');
        $page = Response::page('article', $news['title'], news: $news, comments: [], draft: null);
        self::assertSame(2042, strlen($page->content));
    }

    public function testWhatAReaderWritesIsEscaped(): void
    {
        $evil = '<script>"\'&';
        $news = array_combine(self::COLUMNS, [4, $evil, $evil, $evil, $evil, $evil, '2026-11-20 18:00:00']);
        $comment = ['id' => 7, 'author' => $evil, 'body' => $evil, 'written' => '2026-11-20 18:00:00', 'news_id' => 4, 'title' => $evil];
        $draft = ['author' => $evil, 'body' => $evil, 'fault' => $evil];
        $pages = [
            Response::page('article', $evil, news: $news, comments: [$comment], draft: $draft)->content,
            Response::page('letters', $evil, letters: [$comment])->content,
            Response::page('search', $evil, word: $evil, news: [$news], more: false)->content,
            Template::render('rss', ['news' => [$news], 'origin' => $evil]),
        ];
        foreach ($pages as $page) {
            self::assertStringNotContainsString('<script>', $page);
            self::assertStringNotContainsString('"\'&', $page);
            self::assertStringContainsString('&lt;script&gt;&quot;&#039;&amp;', $page);
        }
    }

    public function testTheFeedIsXml(): void
    {
        $news = array_combine(self::COLUMNS, [4, 'a', '& <b>', 'c', 'd', 'e', '2026-11-20 18:00:00']);
        $feed = simplexml_load_string(Template::render('rss', ['news' => [$news], 'origin' => 'http://news.example']));
        self::assertNotFalse($feed);
        self::assertSame('& <b>', (string) $feed->channel->item->title);
        self::assertSame('http://news.example/news/4/', (string) $feed->channel->item->link);
    }

    public function testTheFootSaysWhatThePageIsMadeFrom(): void
    {
        uses('news', 4);
        self::assertStringContainsString('from <code>news:4</code>', Response::page('random', '', news: [])->content);
        RecordingChannel::install();
        self::assertStringContainsString('for you alone', Response::page('random', '', news: [])->content);
    }

    public function testATemplateThatFailsLeavesNoOutputBehind(): void
    {
        [$level, $failure] = [ob_get_level(), null];
        try {
            Template::render('list', ['news' => [new \stdClass()]]);
        } catch (\Error $failure) {
        }
        self::assertSame('Cannot use object of type stdClass as array', $failure?->getMessage());
        self::assertSame($level, ob_get_level());
    }

    public function testTheSameSeedWritesTheSame(): void
    {
        $first = new Writer(7);
        $texts = [$first->news(), $first->comment(), $first->news()];
        $second = new Writer(7);
        self::assertSame($texts, [$second->news(), $second->comment(), $second->news()]);
    }

    public function testEverythingWrittenFitsItsColumn(): void
    {
        $writer = new Writer(2011);
        for ($n = 0; $n < 300; $n++) {
            $news = $writer->news();
            $text = implode("\n", [...$news, ...$writer->comment()]);
            self::assertDoesNotMatchRegularExpression('/[{}]/', $text, 'a slot was not filled');
            self::assertContains($news['topic'], News::TOPICS);
            self::assertLessThanOrEqual(200, iconv_strlen($news['title']));
            self::assertLessThanOrEqual(500, iconv_strlen($news['summary']));
        }
    }
}
