<?php

/**
 * The MediaWiki extension in Debian's MediaWiki, behind the real binary: which answers of the API are stored. The
 * acceptance tests compare pages after many changes (crates/testing/acceptance/tests/applications/mediawiki.rs).
 */

declare(strict_types=1);

namespace Pagewell\Tests\MediaWiki;

use Pagewell\Tests\Support\RealMediaWiki;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class MediaWikiTest extends TestCase
{
    private static ?RealMediaWiki $wiki = null;

    private static ?RealPagewell $pagewell = null;

    public static function setUpBeforeClass(): void
    {
        self::$wiki = RealMediaWiki::start();
        self::$pagewell = self::$wiki->behind();
        self::$wiki->set(self::settings(self::$pagewell->admin()));
        self::$wiki->edit('Ferry', 'A ferry. [[Gull]] [[Category:Ships]]');
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$wiki?->stop();
        self::$pagewell = self::$wiki = null;
    }

    /** @dataProvider others */
    #[DataProvider('others')]
    public function testAnAnswerWithOtherDataIsNotStored(string $query, string $shown): void
    {
        foreach ([1, 2] as $time) {
            [$status, $fields, $content] = self::api($query);
            self::assertSame(200, $status);
            self::assertStringContainsString($shown, $content);
            self::assertSame(['unknown-dependencies'], $fields['x-pagewell-refusal'] ?? [], "request $time: $content");
        }
    }

    /** @return iterable<string, array{string, string}> */
    public static function others(): iterable
    {
        yield 'the number of a page to come' => ['action=query&pageids=4711', '"missing"'];
        yield 'beside one that is there' => ['action=query&pageids=1|4711&prop=revisions', '"missing"'];
        yield 'the number of a revision to come' => ['action=query&revids=4711', '"badrevids"'];
        yield 'for a generator' => ['action=query&generator=links&pageids=4711', '"batchcomplete"'];
        yield 'spellings that may be written' => ['action=query&titles=Ferry&converttitles=1', '"pageid"'];
        yield 'a text with templates' => ['action=query&titles=Ferry&prop=revisions&rvprop=content&rvexpandtemplates=1', 'A ferry'];
        yield 'messages with templates' => ['action=query&meta=allmessages&ammessages=mainpage&amenableparser=1', 'Main Page'];
        yield 'categories that are hidden' => ['action=query&titles=Ferry&prop=categories&clprop=hidden', 'Category:Ships'];
        yield 'links to other languages, which jobs change' => ['action=query&titles=Ferry&prop=langlinks', '"pageid"'];
        yield 'no user' => ['action=query&list=users&ususers=Nobody', '"missing"'];
    }

    /** @dataProvider changes */
    #[DataProvider('changes')]
    public function testWhatIsMissingIsThereOnceItIsWritten(string $query, string $before, string $title, string $text, string $after): void
    {
        self::api($query);
        [, $fields, $content] = self::api($query);
        self::assertStringContainsString('hit', $fields['cache-status'][0], (string) json_encode($fields));
        self::assertStringContainsString($before, $content);
        self::$wiki->edit($title, $text);
        self::assertStringContainsString($after, self::api($query)[2]);
    }

    /** @return iterable<string, array{string, string, string, string, string}> */
    public static function changes(): iterable
    {
        yield 'a page by its title' => ['action=query&titles=Buoy', '"missing"', 'Buoy', 'A buoy.', '"pageid"'];
        yield 'the links of a page, by a generator' => ['action=query&generator=links&titles=Tug', '"batchcomplete"', 'Tug', '[[Ferry]]', '"title":"Ferry"'];
        yield 'the category of a parsed page' => ['action=parse&page=Ferry&prop=categories', '"missing"', 'Category:Ships', 'Ships.', '"sortkey":"","*":"Ships"}'];
    }

    public function testAnExternalLinkOfATemplateIsThereOnceItsJobHasRun(): void
    {
        self::$wiki->edit('Template:Port', 'A port.');
        self::$wiki->edit('Pilot', '{{Port}}');
        self::$wiki->maintain('runJobs.php', '');
        $query = 'action=query&titles=Pilot&prop=extlinks';
        array_map(self::api(...), [$query, $query]);
        self::$wiki->edit('Template:Port', 'https://port.example/');
        self::assertStringContainsString('hit', self::api($query)[1]['cache-status'][0]);
        self::$wiki->maintain('runJobs.php', '');
        self::assertStringContainsString('port.example', self::api($query)[2]);
    }

    public function testChangesAreSentAgainUntilPagewellAnswers(): void
    {
        self::$wiki->edit('Gull', 'A gull.');
        self::assertStringContainsString('A gull.', self::text('Gull'));
        self::$wiki->set(self::settings('127.0.0.1:1'));
        self::$wiki->edit('Gull', 'An old gull.');
        self::$wiki->edit('Tern', 'A tern.');
        self::assertGreaterThan(1, count(self::$wiki->jobs()));
        $since = min(array_column(self::$wiki->jobs(), 'since'));
        // MediaWiki itself gives up after the third.
        foreach (range(1, 4) as $time) {
            $printed = self::$wiki->maintain('runJobs.php', '', '--nothrottle');
            self::assertStringContainsString('changed names could not be sent since', $printed, 'and it ends');
            self::assertStringNotContainsString('PAGEWELL_ADMIN', $printed, 'the setting has another name here');
            self::assertSame([1, 0], [count(self::$wiki->jobs()), self::$wiki->claimed()], "run $time");
        }
        $job = self::$wiki->jobs()[0];
        self::assertSame($since, $job['since']);
        self::assertStringContainsString('"content:0:Gull"', $job['body']);
        self::assertStringContainsString('"content:0:Tern"', $job['body']);
        self::assertStringContainsString('A gull.', self::text('Gull'), 'it is stored');
        self::$wiki->set(self::settings(self::$pagewell->admin()));
        self::$wiki->maintain('runJobs.php', '', '--nothrottle');
        self::assertStringContainsString('An old gull.', self::text('Gull'));
        self::assertSame([0, 0], [count(self::$wiki->jobs()), self::$wiki->claimed()]);
    }

    public function testBetweenTwoCallsIsAPause(): void
    {
        self::$wiki->set(self::settings('127.0.0.1:1') . ' $wgJobBackoffThrottling["pagewellInvalidate"] = 1 / 3600;');
        self::$wiki->edit('Pier', 'A pier.');
        self::$wiki->forgetPauses();
        $tries = static fn (string ...$options): bool => str_contains(self::$wiki->maintain('runJobs.php', '', '--type=pagewellInvalidate', ...$options), 'could not be sent');
        self::assertSame([true, false, true], [$tries(), $tries(), $tries('--nothrottle')]);
        self::$wiki->set(self::settings(self::$pagewell->admin()));
        self::$wiki->maintain('runJobs.php', '', '--nothrottle');
    }

    public function testTooManyChangesBecomeOneOfEveryPage(): void
    {
        self::$wiki->set(self::settings('127.0.0.1:1'));
        self::$wiki->command('for ( $n = 0; $n < 300; $n++ ) { Pagewell\MediaWiki\InvalidationJob::push( new Pagewell\MediaWiki\Core\Invalidation( [ "$n" . str_repeat( "x", 250 ) ] ) ); }');
        self::assertCount(300, self::$wiki->jobs());
        self::assertStringContainsString('a change of every page could not be sent since', self::$wiki->maintain('runJobs.php', '', '--nothrottle'));
        self::assertSame(['{"all":true}'], array_column(self::$wiki->jobs(), 'body'));
        self::$wiki->edit('Dock', 'A dock.');
        self::$wiki->maintain('runJobs.php', '', '--nothrottle');
        self::assertSame(['{"all":true}'], array_column(self::$wiki->jobs(), 'body'));
        $status = static fn (): string => self::api('action=query&titles=Ferry')[1]['cache-status'][0];
        $status();
        self::assertStringContainsString('hit', $status());
        self::$wiki->set(self::settings(self::$pagewell->admin()));
        self::$wiki->maintain('runJobs.php', '', '--nothrottle');
        self::assertStringNotContainsString('hit', $status());
    }

    /** @dataProvider caches */
    #[DataProvider('caches')]
    public function testTheTreeOfCategoriesIsUpToDate(string $cache, string $of): void
    {
        self::$wiki->set(self::settings(self::$pagewell->admin()) . "wfLoadExtension( 'CategoryTree' ); \$wgMainCacheType = $cache;");
        try {
            self::$wiki->edit("Category:Boats of $of", "[[Category:Ships of $of]]");
            self::$wiki->edit("Category:Ships of $of", 'All ships.');
            foreach (['Tug', 'Barge', 'Raft'] as $number => $title) {
                self::$wiki->edit("$title of $of", "[[Category:Boats of $of]]");
                self::$wiki->maintain('runJobs.php', '', '--nothrottle');
                // The category below has its number of members. Four readers.
                foreach ([false, true, true, true] as $isHit) {
                    [, $fields, $content] = self::$pagewell->ask('GET', "/index.php?title=Category:Ships_of_$of", '', 'Host: ' . RealMediaWiki::HOST);
                    self::assertSame(1, preg_match('/Boats.{0,400}?\b' . ($number + 1) . ' P\b/s', $content), "after $title: " . $fields['cache-status'][0]);
                    self::assertSame($isHit, str_contains($fields['cache-status'][0], 'hit'), $fields['x-pagewell-refusal'][0] ?? $fields['cache-status'][0]);
                }
            }
        } finally {
            self::$wiki->set(self::settings(self::$pagewell->admin()));
            self::$pagewell->control('POST', '/v1/invalidate', '{"all":true}');
        }
    }

    /** @return iterable<string, array{string, string}> */
    public static function caches(): iterable
    {
        yield 'in the database' => ['CACHE_DB', 'Kiel'];
        yield 'in APCu' => ['CACHE_ACCEL', 'Oslo'];
    }

    public function testTheBarForMessagesIsOfItsAddressAlone(): void
    {
        self::$wiki->edit('Ferry', 'A ferry of old. [[Category:Ships]]');
        $ask = static fn (): array => self::$pagewell->ask('GET', '/index.php?title=Ferry', '', 'Host: ' . RealMediaWiki::HOST);
        self::$wiki->edit('User talk:127.0.0.1', 'Read the rules.');
        self::$wiki->command('$user = \MediaWiki\MediaWikiServices::getInstance()->getUserFactory()->newAnonymous( "127.0.0.1" ); \MediaWiki\MediaWikiServices::getInstance()->getTalkPageNotificationManager()->setUserHasNewMessages( $user );');
        [, $fields, $content] = $ask();
        self::assertSame([true, ['visitors-messages']], [str_contains($content, 'usermessage'), $fields['x-pagewell-refusal'] ?? []]);
        self::$wiki->command('$user = \MediaWiki\MediaWikiServices::getInstance()->getUserFactory()->newAnonymous( "127.0.0.1" ); \MediaWiki\MediaWikiServices::getInstance()->getTalkPageNotificationManager()->removeUserHasNewMessages( $user );');
        self::assertStringNotContainsString('usermessage', $ask()[2]);
        self::assertStringContainsString('hit', $ask()[1]['cache-status'][0]);
    }

    public function testAVisitorWhomTheWebServerKnowsGetsAPageOfTheirOwn(): void
    {
        $names = ['HTTP_AUTHORIZATION', 'REDIRECT_HTTP_AUTHORIZATION', 'PHP_AUTH_USER', 'PHP_AUTH_DIGEST', 'REMOTE_USER', 'AUTH_TYPE'];
        $has = '$has = new ReflectionMethod( "Pagewell\MediaWiki\CacheHeaders", "hasAuthorization" ); foreach ( ' . var_export($names, true) . ' as $name ) { foreach ( [ "", "x" ] as $value ) { $_SERVER[$name] = $value; echo $has->invoke( null ) ? "$name " : ""; } $_SERVER[$name] = ""; }';
        self::assertSame(implode(' ', $names) . ' ', self::$wiki->command($has));
    }

    /** @dataProvider mistakes */
    #[DataProvider('mistakes')]
    public function testAWrongSettingIsLogged(string $setting, string $logged): void
    {
        self::$wiki->set(self::settings(self::$pagewell->admin()) . $setting);
        $printed = self::$wiki->command('Pagewell\MediaWiki\ChangeQueue::add( "tides" ); echo "done";');
        self::assertStringContainsString('done', $printed);
        self::assertStringContainsString($logged, $printed);
    }

    /** @return iterable<string, array{string, string}> */
    public static function mistakes(): iterable
    {
        yield 'no port' => ['$wgPagewellAdmin = "localhost";', "\$wgPagewellAdmin is 'localhost': write an address"];
        yield 'a port alone' => ['$wgPagewellAdmin = 8081;', '$wgPagewellAdmin is no text, but of the type int'];
        yield 'a list of sites' => ['$wgPagewellSite = [ "wiki.test" ];', '$wgPagewellSite is no text, but of the type array'];
        yield 'an object' => ['$wgPagewellTokenFile = new stdClass;', '$wgPagewellTokenFile is no text, but of the type stdClass'];
    }

    public function testWithAWrongLifetimeNothingIsStored(): void
    {
        $ask = static fn (string $lifetime): array => [self::$wiki->set(self::settings(self::$pagewell->admin()) . "\$wgPagewellLifetime = $lifetime;"), self::api('action=query&titles=Ferry&' . md5($lifetime))][1];
        foreach (["'1 day'" => 'wrong-setting', '[ 60 ]' => 'wrong-setting', '-1' => 'wrong-setting', '0' => 'zero-lifetime'] as $lifetime => $refusal) {
            [$status, $fields] = $ask((string) $lifetime);
            self::assertSame([200, [$refusal]], [$status, $fields['x-pagewell-refusal']], (string) $lifetime);
        }
        self::assertMatchesRegularExpression('/; ttl=[0-9]{1,2}; stored$/', $ask("'60'")[1]['cache-status'][0]);
        self::$wiki->set(self::settings(self::$pagewell->admin()));
    }

    private static function text(string $title): string
    {
        return self::$pagewell->ask('GET', "/index.php?title=$title&action=raw", '', 'Host: ' . RealMediaWiki::HOST)[2];
    }

    private static function settings(string $admin): string
    {
        return "\$wgPagewellAdmin = '$admin';";
    }

    /** @return array{int, array<string, list<string>>, string} status, fields, content */
    private static function api(string $query): array
    {
        return self::$pagewell->ask('GET', "/api.php?format=json&$query", '', 'Host: ' . RealMediaWiki::HOST);
    }
}
