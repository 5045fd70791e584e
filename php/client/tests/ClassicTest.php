<?php

/**
 * The library where nginx reads pages from the memcached port and takes writes straight to PHP: what is
 * written is what is shown, though no answer passes through Pagewell.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\MemcachedPage;
use Pagewell\Tests\Support\RealClassic;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

/**
 * @requires extension memcached
 * @requires extension memcache
 */
#[RequiresPhpExtension('memcached'), RequiresPhpExtension('memcache')]
final class ClassicTest extends TestCase
{
    private static RealClassic $site;

    public static function setUpBeforeClass(): void
    {
        self::$site = RealClassic::start(__DIR__ . '/classic');
        posix_mkfifo(self::$site->directory . '/notes/slow', 0666);
        posix_mkfifo(self::$site->directory . '/notes/work', 0666);
        chmod(self::$site->directory . '/notes/slow', 0666);
        chmod(self::$site->directory . '/notes/work', 0666);
    }

    public static function tearDownAfterClass(): void
    {
        self::$site->stop();
    }

    protected function setUp(): void
    {
        foreach ([4, 5] as $id) {
            self::assertSame(200, self::$site->ask('POST', "/write/$id?title=first+$id")[0]);
            self::assertSame("first $id", $this->page("/news/$id"));
            self::assertTrue($this->isStored("/news/$id"));
        }
    }

    public function testAPageIsInMemoryWithoutItsFirstLine(): void
    {
        [$status, $fields, $content] = self::$site->ask('GET', '/news/4');
        self::assertSame([200, 'text/html', 'first 4'], [$status, $fields['content-type'], $content]);
        self::assertArrayNotHasKey('x-refusal', $fields, 'PHP was not asked');
    }

    public function testAWriteDropsItsPageAndNoOther(): void
    {
        [, $fields] = self::$site->ask('POST', '/write/4?title=second');
        self::assertArrayNotHasKey('cache-group-invalidation', $fields);
        self::assertFalse($this->isStored('/news/4'));
        self::assertTrue($this->isStored('/news/5'));
        self::assertSame('second', $this->page('/news/4'));
    }

    /** @testWith ["flush"]
     *           ["finish"]
     */
    #[TestWith(['flush']), TestWith(['finish'])]
    public function testTheWriterHasHisAnswerOnlyWhenThePagesAreGone(string $by): void
    {
        $writer = self::$site->send('POST', "/write-and-work/4?by=$by");
        self::assertStringContainsString('200', (string) fgets($writer), 'its first line is there, the script still works');
        self::assertSame('written', $this->page('/news/4'));
        self::$site->release('work');
        stream_get_contents($writer);
    }

    public function testARenderThatBeganBeforeTheChangeIsNotStoredAfterIt(): void
    {
        $reader = self::$site->send('GET', '/news/4?as=slow');
        // Opening the pipe waits for its reader, which then has taken its lease and read the row.
        $pipe = fopen(self::$site->directory . '/notes/slow', 'w');
        self::$site->ask('POST', '/write/4?title=second');
        fwrite($pipe, 'go');
        fclose($pipe);
        self::assertStringContainsString('first 4', (string) stream_get_contents($reader));
        self::assertSame('refused', $this->refusal());
        self::assertFalse($this->isStored('/news/4?as=slow'));
    }

    public function testAddressesAreThoseThatNginxLooksUp(): void
    {
        foreach (['/news/5?a=%C3%A4%25&b=c%20d', '/news/5?long=1', '/news/5?old-extension=1'] as $path) {
            $first = $this->page($path);
            self::assertSame('none', $this->refusal(), $path);
            [, $fields, $content] = self::$site->ask('GET', $path);
            self::assertArrayNotHasKey('x-refusal', $fields, $path);
            self::assertSame($first, $content);
        }
        self::$site->ask('POST', '/write/5?title=second');
        self::assertSame('second', $this->page('/news/5?a=%C3%A4%25&b=c%20d'));
    }

    public function testATagMayHaveABlankInIt(): void
    {
        $this->page('/news/4?as=tags');
        self::assertSame('none', $this->refusal());
        self::assertTrue($this->isStored('/news/4?as=tags'));
    }

    public function testTimesArePassedOn(): void
    {
        $this->page('/news/4?as=month');
        $this->page('/news/4?as=minute');
        $month = self::$site->lifetime('/news/4?as=month');
        self::assertGreaterThan(39 * 86_400, $month);
        self::assertLessThanOrEqual(40 * 86_400, $month);
        self::assertSame(60, self::$site->lifetime('/news/4?as=minute'));
        self::assertSame(86_400, self::$site->lifetime('/news/4'));
    }

    /** @dataProvider refusals */
    #[DataProvider('refusals')]
    public function testWhatNginxWouldGiveOutOtherwiseIsNotStored(string $as, string $name, string ...$fields): void
    {
        // As any visitor can say it, and nginx passes it on.
        self::$site->ask('GET', "/news/4?$as", ['Surrogate-Capability: forged="ESI/1.0"', ...$fields]);
        self::assertSame($name, $this->refusal());
        self::assertFalse($this->isStored("/news/4?$as"));
    }

    /** @return iterable<array{0: string, 1: string, 2?: string}> */
    public static function refusals(): iterable
    {
        foreach (['status', 'content-type', 'varies', 'session', 'fragments', 'sent'] as $name) {
            yield $name => ["as=$name", $name];
        }
        yield from ['changes by response' => ['changes=response', 'changes-not-received'], 'misspelt' => ['changes=contol', 'changes-not-received']];
        yield 'an unknown cookie' => ['cookie', 'visitors-cookie', 'Cookie: currency=eur'];
        yield 'key' => [str_repeat('x', 250), 'key'];
    }

    public function testAHeadIsNotStored(): void
    {
        self::$site->ask('HEAD', '/news/4?head');
        self::assertSame('method', $this->refusal());
        self::assertFalse($this->isStored('/news/4?head'));
    }

    public function testWhereThereIsNoLeaseNothingIsStored(): void
    {
        $store = new \Memcached();
        $store->setOption(\Memcached::OPT_PREFIX_KEY, 'site:');
        $store->addServer(self::$site->directory . '/memcached.sock', 0);
        \Pagewell\Configuration::set(changes: \Pagewell\ChangeDelivery::Control);
        \Pagewell\Testing\RecordingChannel::install();
        \Pagewell\uses('news', 4);
        $page = MemcachedPage::begin($store, '/no-lease/');
        self::assertFalse($page->store('a page'));
        self::assertSame(\Pagewell\Core\Refusal::NoLease, $page->refusal());
        self::assertFalse($this->isStored('/no-lease/'));
        \Pagewell\Configuration::reset();
        \Pagewell\RequestScope::begin();
    }

    public function testAWriteThatPagewellDoesNotHearOfIsLogged(): void
    {
        [$status, , $content] = self::$site->ask('POST', '/away/4');
        self::assertSame([200, 'unbroken'], [$status, $content]);
        self::assertStringContainsString("Old pages may be served until they are purged: pagewell purge --tag 'news' --tag 'news:4'", self::$site->log());
    }

    /** The first with the library, the second by hand.
     *
     * @testWith [0]
     *           [1]
     */
    #[TestWith([0]), TestWith([1])]
    public function testTheManualsExamplesStoreWhatAChangeDrops(int $which): void
    {
        $m = new \Memcached();
        $m->addServer(self::$site->directory . '/memcached.sock', 0);
        [$_SERVER['REQUEST_URI'], $before] = ["/manual/$which", $_SERVER['REQUEST_URI'] ?? null];
        \Pagewell\Configuration::set(changes: \Pagewell\ChangeDelivery::Control);
        \Pagewell\Testing\RecordingChannel::install();
        $code = (string) preg_replace('~^\$m = new .*?^}\n~ms', '', RealClassic::examples('php')[$which]);
        ob_start();
        eval('$render = static fn () => str_repeat("page ", 1000);' . str_replace('render()', '$render()', $code));
        self::assertSame(str_repeat('page ', 1000), ob_get_clean());
        self::assertSame(str_repeat('page ', 1000), self::$site->ask('GET', "/manual/$which")[2], 'by nginx');
        (new \Pagewell\Core\SocketClient(self::$site->admin()))->invalidate(new \Pagewell\Core\Invalidation(['news:4']));
        self::assertFalse($this->isStored("/manual/$which"));
        $_SERVER['REQUEST_URI'] = $before;
        \Pagewell\Configuration::reset();
        \Pagewell\RequestScope::begin();
    }

    public function testWithoutTheSwitchTheChangeGoesToTheVisitorAlone(): void
    {
        $fields = self::$site->ask('POST', '/write/4?title=second&changes=response')[1];
        self::assertSame('"news", "news:4"', $fields['cache-group-invalidation']);
        self::assertSame('first 4', $this->page('/news/4'), 'which is what the switch is for');
    }

    public function testAWordThatIsNoneIsRefusedBeforeTheWrite(): void
    {
        self::assertSame(500, self::$site->ask('POST', '/write/4?title=second&changes=contol')[0]);
        self::assertStringContainsString("PAGEWELL_CHANGES is 'contol': write response or control.", self::$site->log());
        self::assertSame('first 4', file_get_contents(self::$site->directory . '/notes/news-4'), 'nothing was written');
    }

    public function testWhatDotenvReadsCounts(): void
    {
        [$status, $fields] = self::$site->ask('POST', '/write/4?title=second&changes=unset&dotenv=control');
        self::assertSame(200, $status);
        self::assertArrayNotHasKey('cache-group-invalidation', $fields);
        self::assertSame('second', $this->page('/news/4'));
    }

    public function testNoClientSetsAVariable(): void
    {
        self::assertSame(200, self::$site->ask('POST', '/write/4?title=second', ['PAGEWELL_CHANGES: contol', 'PAGEWELL-CHANGES: contol'])[0]);
        self::assertSame('second', $this->page('/news/4'));
    }

    public function testWhatDotenvReadsAfterTheStartFailsNoWrite(): void
    {
        [$status, $fields] = self::$site->ask('POST', '/write/4?title=second&changes=unset&dotenv=contol');
        self::assertSame([200, '"news", "news:4"'], [$status, $fields['cache-group-invalidation']]);
        self::assertSame('second', $this->page('/news/4'), 'the control interface was called as well');
        self::assertStringContainsString("pagewell: PAGEWELL_CHANGES is 'contol': write response or control. Until then", self::$site->log());
    }

    private function page(string $path): string
    {
        return self::$site->ask('GET', $path)[2];
    }

    private function isStored(string $path): bool
    {
        return str_starts_with(self::$site->say('get ' . MemcachedPage::key($path)), 'VALUE ');
    }

    private function refusal(): string
    {
        return (string) file_get_contents(self::$site->directory . '/notes/refusal');
    }
}
