<?php

/**
 * Pages of a wiki that any reader may get: nothing of the reader for whom a page was made is on it, and pages with the
 * time of their render say so (crates/server/audit/src/comparison.rs).
 */

declare(strict_types=1);

namespace Pagewell\Tests\MediaWiki;

use Pagewell\Tests\Support\RealMediaWiki;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class MediaWikiReadersTest extends TestCase
{
    private static ?RealMediaWiki $wiki = null;

    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$wiki = RealMediaWiki::start();
        self::$pagewell = self::$wiki->behind();
        self::$wiki->set("\$wgMainCacheType = CACHE_DB; \$wgPagewellAdmin = '" . self::$pagewell->admin() . "';");
        self::$wiki->edit('Ferry', 'A ferry. [[Category:Ships]]');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$wiki?->stop();
        self::$pagewell = self::$wiki = null;
    }

    public function testAPageWithTheAddressOfItsVisitorIsNotStored(): void
    {
        foreach ([1, 2] as $time) {
            [, $fields, $content] = self::ask('/index.php?title=Special:Version');
            self::assertStringContainsString('visited from 127.0.0.1', $content);
            self::assertSame(['unknown-dependencies'], $fields['x-pagewell-refusal'] ?? [], "request $time");
        }
    }

    /** Each parse has another report, and a text is parsed again without a change that a reader sees. */
    public function testAPageForAllReadersHasNoReportOfItsParse(): void
    {
        $content = self::stored('/index.php?title=Ferry');
        self::assertStringContainsString('wgBackendResponseTime', $content);
        self::assertStringNotContainsString('wgPageParseReport', $content);
    }

    /** MediaWiki's object cache may have an old list of the wiki's own styles for some milliseconds after a change. */
    public function testAPageWithAnOldListOfStylesIsNotStored(): void
    {
        // A list is in use when no change of the last seconds is known.
        self::$wiki->command(<<<'PHP'
            $cache = MediaWiki\MediaWikiServices::getInstance()->getMainWANObjectCache();
            $before = microtime(true) - 60;
            $cache->setMockTime($before);
            $cache->touchCheckKey($cache->makeGlobalKey('resourceloader-titleinfo', wfGetDB(DB_REPLICA)->getDomainID()));
            PHP);
        self::stored('/index.php?title=Ferry&action=info');
        $row = "['page_namespace' => 8, 'page_title' => 'Common.css', 'page_is_redirect' => 0, 'page_is_new' => 1, 'page_random' => 0.5, "
            . "'page_touched' => '20260101000000', 'page_latest' => 1, 'page_len' => 5, 'page_content_model' => 'css']";
        self::$wiki->command("wfGetDB(DB_PRIMARY)->insert('page', $row, 'test');");
        self::assertSame(['outdated-value'], self::ask('/index.php?title=Category:Ships')[1]['x-pagewell-refusal'] ?? []);
        self::$wiki->command("wfGetDB(DB_PRIMARY)->delete('page', ['page_namespace' => 8, 'page_title' => 'Common.css'], 'test');");
        self::stored('/index.php?title=Category:Ships');
    }

    public function testAFeedIsStoredOnceItsDifferencesComeFromTheCache(): void
    {
        self::$wiki->edit('Ferry', 'A late ferry. [[Category:Ships]]');
        $feed = '/index.php?title=Ferry&action=history&feed=atom';
        self::assertSame(['outdated-value'], self::ask($feed)[1]['x-pagewell-refusal'] ?? []);
        $content = self::stored($feed);
        $withoutTime = static fn (string $feed): string => (string) preg_replace('~<updated>[^<]*</updated>~', '', $feed, 1);
        self::assertSame($withoutTime(self::$wiki->plain($feed, 'Via: 1.1 pagewell')[0]), $withoutTime($content));
    }

    /** @dataProvider ages */
    #[DataProvider('ages')]
    public function testAPageWithTheTimeOfItsRenderSaysSo(string $path, bool $hasTime): void
    {
        $tags = explode(' ', implode(' ', self::$wiki->plain($path, 'Via: 1.1 pagewell')[1]['surrogate-key'] ?? []));
        self::assertContains('site', $tags);
        self::assertSame($hasTime, in_array('ages', $tags, true));
    }

    /** @return iterable<string, array{string, bool}> */
    public static function ages(): iterable
    {
        yield 'recent changes' => ['/index.php?title=Special:RecentChanges', true];
        yield 'changes of linked pages' => ['/index.php?title=Special:RecentChangesLinked/Ferry', true];
        yield 'a feed of a page' => ['/index.php?title=Ferry&action=history&feed=atom', true];
        yield 'a page' => ['/index.php?title=Ferry', false];
        yield 'a list without it' => ['/index.php?title=Special:AllPages', false];
    }

    /** Asks for a page that has to be stored, and returns its content. One whose content comes late says nothing of it; then it comes from memory. */
    private static function stored(string $path): string
    {
        [, $fields, $content] = self::ask($path);
        $how = $fields['cache-status'][0];
        self::assertTrue(str_contains($how, 'stored') || (str_contains($how, 'in-progress') && str_contains(self::ask($path)[1]['cache-status'][0], 'hit')), $how);
        return $content;
    }

    /** @return array{int, array<string, list<string>>, string} status, fields, content */
    private static function ask(string $path): array
    {
        return self::$pagewell->ask('GET', $path, '', 'Host: ' . RealMediaWiki::HOST);
    }
}
