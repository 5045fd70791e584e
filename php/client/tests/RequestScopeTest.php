<?php

/**
 * When the lines go out, and what comes too late.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\ChangeDelivery;
use Pagewell\CollectingChannel;
use Pagewell\Configuration;
use Pagewell\Core\Exception\ChangeAfterHeaders;
use Pagewell\Core\Exception\ChangeOnSafeMethod;
use Pagewell\Core\Exception\ChangeOutsideRequest;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\UseAfterHeaders;
use Pagewell\Core\FileOutbox;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;
use Pagewell\Core\Refusal;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\changedSoftly;
use function Pagewell\freshFor;
use function Pagewell\uses;

final class RequestScopeTest extends TestCase
{
    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testAPageIsDeclaredWhenItsHeadersGoOutAndNotBefore(): void
    {
        $channel = RecordingChannel::install();
        uses('news', 4);
        self::assertSame([], $channel->lines());
        $channel->send();
        self::assertSame('Cache-Groups: "news:4", "news:*"', $channel->lines()[0]);
    }

    public function testAChangeIsSetAtOnceAndSentOnce(): void
    {
        $channel = RecordingChannel::install('POST');
        changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
        changed('comments', 17, news: 4);
        $channel->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "comments", "news:4", "comments:17"'], $channel->lines());
    }

    public function testAControlOfTheApplicationsOwnThatFailsInItsOwnWayBreaksNothing(): void
    {
        $logged = [];
        Configuration::set(log: static function (string $text) use (&$logged): void {
            $logged[] = $text;
        });
        RequestScope::begin($channel = new RecordingChannel(null), new class () implements InvalidationClient {
            public function invalidate(Invalidation $invalidation): InvalidationResult
            {
                throw new \RuntimeException('no route to host');
            }
        });
        changed('news', 4);
        $channel->end();
        Configuration::reset();
        self::assertSame(["pagewell: no route to host Old pages may be served until they are purged: pagewell purge --tag 'news' --tag 'news:4'"], $logged);
    }

    public function testWhatFailsAtTheEndKeepsNothingElseFromBeingDone(): void
    {
        $script = 'require ' . var_export(__DIR__ . '/../../tests/bootstrap.php', true) . "; Pagewell\\RequestEnd::call(static fn () => throw new RuntimeException('at the end')); Pagewell\\RequestEnd::call(static fn () => print 'done');";
        [$code, $printed, $logged] = RealPagewell::command($script, []);
        self::assertSame([0, 'done'], [$code, $printed]);
        self::assertStringContainsString('pagewell: at the end', $logged);
    }

    public function testAChangeWhoseLineWasTakenAwayIsSetAgain(): void
    {
        $channel = RecordingChannel::install('POST');
        changed('news', 4);
        $channel->set([], replace: 'Cache-Group-Invalidation');
        $channel->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
    }

    /** @dataProvider safeMethods */
    #[DataProvider('safeMethods')]
    public function testAChangeOnASafeMethodIsRefusedWithoutTheControlInterface(string $method): void
    {
        RequestScope::begin(new RecordingChannel($method), client: false);
        $this->expectException(ChangeOnSafeMethod::class);
        changed('news', 4);
    }

    /** @return iterable<array{string}> */
    public static function safeMethods(): iterable
    {
        yield from [['GET'], ['HEAD'], ['OPTIONS'], ['TRACE']];
    }

    public function testAChangeAfterTheHeadersIsRefusedWithoutTheControlInterface(): void
    {
        $channel = new RecordingChannel('POST');
        $channel->send();
        RequestScope::begin($channel, client: false);
        $this->expectException(ChangeAfterHeaders::class);
        changed('news', 4);
    }

    public function testAChangeOutsideARequestSaysWhatToRunInstead(): void
    {
        RequestScope::begin(new RecordingChannel(null), client: false);
        $this->expectException(ChangeOutsideRequest::class);
        $this->expectExceptionMessage("pagewell purge --tag 'comments' --tag 'comments:*' --tag 'news:4'");
        changed('comments', news: 4);
    }

    public function testACommandIsOutsideARequest(): void
    {
        RequestScope::begin(client: false);
        $this->expectException(ChangeOutsideRequest::class);
        changed('news', 4);
    }

    public function testAUseAfterTheHeadersIsRefused(): void
    {
        RecordingChannel::install()->send();
        $this->expectException(UseAfterHeaders::class);
        uses('news');
    }

    public function testALifetimeAfterTheHeadersIsRefused(): void
    {
        RecordingChannel::install()->send();
        $this->expectException(UseAfterHeaders::class);
        freshFor(60);
    }

    public function testARefusedChangeIsNotSent(): void
    {
        $channel = RecordingChannel::install('POST');
        changed('news', 4);
        try {
            changed('');
            self::fail('an empty kind was taken');
        } catch (PagewellException) {
            $channel->send();
        }
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
    }

    public function testAHardChangeIsOnTheResponseAlsoBesideASoftOne(): void
    {
        $client = new RecordingClient();
        RequestScope::begin($channel = new RecordingChannel('POST'), $client);
        $transaction = RequestScope::current()->transaction();
        $transaction->begin();
        changed('news', 4);
        changedSoftly('views', 4);
        $transaction->commit();
        $channel->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
        self::assertEquals([new Invalidation(['views', 'views:4'], soft: true)], $client->calls());
    }

    public function testWhatIsNotNamedStaysAsItWasSet(): void
    {
        $outbox = new FileOutbox('/nowhere/at/all');
        Configuration::set(outbox: $outbox);
        Configuration::set(sharedCookies: ['currency']);
        self::assertSame($outbox, Configuration::outbox());
        self::assertSame(['currency'], Configuration::sharedCookies());
        Configuration::reset();
        self::assertSame([null, []], [Configuration::outbox(), Configuration::sharedCookies()]);
    }

    public function testAFrameworksResponseIsGivenOutWhenTheControlInterfaceHasBeenTold(): void
    {
        Configuration::set(changes: ChangeDelivery::Control);
        $client = new RecordingClient();
        $channel = CollectingChannel::begin('POST', $client);
        changed('news', 4);
        self::assertSame([], $channel->finish(303, []));
        self::assertSame(['news', 'news:4'], $client->tags());
        Configuration::reset();
    }

    public function testTheNextRequestOfTheProcessBeginsWithNothing(): void
    {
        $first = RecordingChannel::install();
        uses('news', 4);
        $first->send();
        self::assertSame(Refusal::Nothing, RequestScope::current()->refusal());
        $second = RecordingChannel::install();
        uses('comments');
        $second->send();
        self::assertSame('Cache-Groups: "comments"', $second->lines()[0]);
    }

    public function testTheReasonCanBeAsked(): void
    {
        RecordingChannel::install(session: true);
        uses('news', 4);
        self::assertSame(Refusal::Session, RequestScope::current()->refusal());
    }
}
