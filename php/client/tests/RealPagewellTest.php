<?php

/**
 * The library behind the real binary and a real php-fpm: what is written is what is shown, by
 * whichever way the change takes; and nothing breaks when Pagewell is away.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Invalidation;
use Pagewell\Core\SocketClient;
use Pagewell\Core\Tag;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

final class RealPagewellTest extends TestCase
{
    private static RealPagewell $pagewell;

    public static function setUpBeforeClass(): void
    {
        self::$pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        self::assertSame(200, self::$pagewell->ask('POST', '/setup')[0]);
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell->stop();
    }

    protected function setUp(): void
    {
        foreach ([4, 5] as $id) {
            self::$pagewell->ask('POST', "/write/$id", "title=first+$id");
            self::assertSame("first $id", $this->page($id));
        }
        self::$pagewell->ask('GET', '/list');
        $this->assertHits(true, '/news/4', '/news/5', '/list');
    }

    public function testWhatIsBrokenOrCannotBeNamedIsNotKeptWhateverItsLifetime(): void
    {
        foreach (['whole', 'zero', 'many', 'fatal'] as $how) {
            self::$pagewell->ask('GET', "/lifetime/4?$how");
            self::assertSame($how === 'whole', self::$pagewell->hits("/lifetime/4?$how"), $how);
        }
    }

    /** @testWith ["Cookie: member=eyJhbGciOi"]
     *           ["Cookie: _ga=1; member=eyJhbGciOi"]
     *           ["Authorization: Bearer eyJhbGciOi"]
     */
    #[TestWith(['Cookie: member=eyJhbGciOi'])]
    #[TestWith(['Cookie: _ga=1; member=eyJhbGciOi'])]
    #[TestWith(['Authorization: Bearer eyJhbGciOi'])]
    public function testAPageMadeForSomebodyIsNobodyElses(string $field): void
    {
        $page = '/news/4?made-for=' . rawurlencode($field);
        [, $fields] = self::$pagewell->ask('GET', $page, '', $field);
        self::assertSame(['private, no-cache'], $fields['cache-control']);
        $this->assertHits(false, $page);
        $this->assertHits(true, $page);
    }

    public function testAPageOfAnApplicationWithItsOwnHeaderCallbackIsKept(): void
    {
        self::assertSame(['yes'], self::$pagewell->ask('GET', '/own-callback/4')[1]['x-own']);
        $this->assertHits(true, '/own-callback/4');
        self::$pagewell->ask('POST', '/write/4', 'title=second');
        $this->assertHits(false, '/own-callback/4');
    }

    public function testTheAnswerToAPostCarriesIt(): void
    {
        self::$pagewell->ask('POST', '/write/4', 'title=second');
        self::assertSame('second', $this->page(4));
        $this->assertHits(true, '/news/5');
        $this->assertHits(false, '/list');
    }

    public function testAWriteThatCannotNameAllItHasChangedDropsEveryPage(): void
    {
        self::assertSame(200, self::$pagewell->ask('POST', '/write-much/4')[0]);
        self::assertSame('written with much else', $this->page(4));
        $this->assertHits(false, '/news/5', '/list');
    }

    public function testAWriteOnAGetIsToldByTheControlInterface(): void
    {
        self::assertSame(200, self::$pagewell->ask('GET', '/write-on-get/4')[0]);
        self::assertSame('written on a GET', $this->page(4));
        $this->assertHits(true, '/news/5');
    }

    public function testASoftChangeIsSeenWhereNothingStaleIsAllowed(): void
    {
        self::$pagewell->ask('POST', '/write-softly/4');
        self::assertSame('written softly', $this->page(4));
        $this->assertHits(true, '/news/5');
    }

    public function testAWriteAfterTheHeadersIsToldBeforeTheAnswerEnds(): void
    {
        self::assertSame('begun', self::$pagewell->ask('POST', '/write-after-headers/4')[2]);
        self::assertSame('written after the headers', $this->page(4));
    }

    public function testAPageMadeBeforeTheCommitIsDroppedByIt(): void
    {
        self::assertSame('first 4', self::$pagewell->ask('POST', '/commit/4')[2]);
        self::assertSame('commit in a transaction', $this->page(4));
    }

    public function testARollbackDropsNothing(): void
    {
        self::$pagewell->ask('POST', '/rollback/4');
        $this->assertHits(true, '/news/5', '/list');
        self::assertSame('first 4', $this->page(4));
    }

    public function testATransactionLeftOpenLosesNoChange(): void
    {
        self::$pagewell->ask('POST', '/forgotten/4');
        $this->assertHits(false, '/news/4', '/list');
        self::assertSame('first 4', $this->page(4));
    }

    public function testChangedNowSaysHowManyPagesWent(): void
    {
        self::assertSame('2', self::$pagewell->ask('GET', '/now/4')[2]);
        self::assertSame('written now', $this->page(4));
    }

    public function testACommandTellsWhenItEnds(): void
    {
        [$code, , $logged] = $this->command("Pagewell\\changed('news', 4); Pagewell\\changed('comments', news: 5); exit(3);", self::$pagewell->admin());
        self::assertSame([3, ''], [$code, $logged]);
        $this->assertHits(false, '/news/4', '/news/5');
    }

    public function testACommandThatDiesTellsAllTheSame(): void
    {
        [$code, , $logged] = $this->command("Pagewell\\changed('news', 4); no_such_function();", self::$pagewell->admin());
        self::assertSame(255, $code);
        self::assertStringContainsString('no_such_function', $logged);
        $this->assertHits(false, '/news/4');
    }

    public function testACommandThatIsLeftWhileItEndsTellsAllTheSame(): void
    {
        $script = "register_shutdown_function(static fn () => exit(3)); Pagewell\\changed('news', 4);";
        self::assertSame(3, $this->command($script, self::$pagewell->admin())[0]);
        $this->assertHits(false, '/news/4');
    }

    public function testACommandGoesOnWhenPagewellIsAwayAndSaysSo(): void
    {
        [$code, $written, $logged] = $this->command("Pagewell\\changed('news', 4); echo 'done';", 'unix:/nowhere/at/all.sock');
        self::assertSame([0, 'done'], [$code, $written]);
        self::assertStringContainsString('Pagewell is not at unix:/nowhere/at/all.sock', $logged);
        self::assertStringContainsString("pagewell purge --tag 'news' --tag 'news:4'", $logged);
        $this->assertHits(true, '/news/4');
    }

    public function testWhatCouldNotBeSentWaitsInTheOutbox(): void
    {
        putenv('PAGEWELL_OUTBOX=' . self::$pagewell->directory . '/outbox');
        self::assertStringContainsString('Changes wait in the outbox.', $this->command("Pagewell\\changed('news', 4);", 'unix:/nowhere/at/all.sock')[2]);
        self::assertSame([0, '', ''], $this->command('Pagewell\flush();', self::$pagewell->admin()));
        putenv('PAGEWELL_OUTBOX');
        $this->assertHits(false, '/news/4');
    }

    public function testAPageIsUnbrokenWhenTheControlInterfaceIsAway(): void
    {
        [$status, , $content] = self::$pagewell->ask('GET', '/away/4');
        self::assertSame([200, 'unbroken'], [$status, $content]);
    }

    public function testALongImportTellsInSeveralCalls(): void
    {
        $before = $this->client()->invalidate(new Invalidation(['nothing']))->number;
        $script = "foreach (range(1, 7) as \$kind) { foreach (range(1, 2000) as \$id) { Pagewell\\changed(\$kind < 7 ? \"k\$kind\" : 'news', \$id); } }";
        self::assertSame([0, '', ''], $this->command($script, self::$pagewell->admin()));
        $this->assertHits(false, '/news/4', '/news/5', '/list');
        $after = $this->client()->invalidate(new Invalidation(['nothing']))->number;
        self::assertGreaterThan($before + 3, $after, 'at least three calls');
        self::assertLessThan($before + 20, $after, 'and not one for each');
    }

    public function testAddressesTagsAndEverything(): void
    {
        self::assertSame(1, $this->client()->invalidate(new Invalidation(urls: ['/news/4', 'https://example.org/nothing']))->pages);
        $this->assertHits(true, '/news/5');
        self::assertSame(1, $this->client()->invalidate(new Invalidation([Tag::one('news', 5)]))->pages);
        self::assertGreaterThanOrEqual(1, $this->client()->invalidate(new Invalidation(all: true))->pages);
        $this->assertHits(false, '/list');
    }

    public function testManyTagsInOneInvalidation(): void
    {
        $tags = array_map(static fn (int $id): string => Tag::one('news', str_repeat('ä', 150) . $id), range(1, 12_000));
        self::assertSame(1, $this->client()->invalidate(new Invalidation([...$tags, 'news:4']))->pages);
    }

    public function testWhatPagewellRefusesIsSaidByItsName(): void
    {
        try {
            $this->client()->invalidate(new Invalidation(['news'], site: 'elsewhere.example'));
            self::fail('a site that is not served was taken');
        } catch (InvalidationRefused $refused) {
            self::assertSame(['site-unknown', 404], [$refused->reason, $refused->status]);
        }
    }

    public function testAwayIsAnExceptionForWhoeverAsksAtOnce(): void
    {
        $this->expectException(PagewellUnreachable::class);
        (new SocketClient('unix:/nowhere/at/all.sock'))->invalidate(new Invalidation(['news']));
    }

    private function page(int $id): string
    {
        return self::$pagewell->ask('GET', "/news/$id")[2];
    }

    private function assertHits(bool $expected, string ...$paths): void
    {
        foreach ($paths as $path) {
            self::assertSame($expected, self::$pagewell->hits($path), $path);
        }
    }

    private function client(): SocketClient
    {
        return new SocketClient(self::$pagewell->admin(), timeoutSeconds: 60);
    }

    /** @return array{int, string, string} */
    private function command(string $script, string $admin): array
    {
        return RealPagewell::command('require ' . var_export(__DIR__ . '/../../tests/bootstrap.php', true) . "; $script", ['PAGEWELL_ADMIN' => $admin]);
    }
}
