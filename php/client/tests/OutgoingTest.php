<?php

/**
 * When the lines go out, and what comes too late.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\ChangeAfterHeaders;
use Pagewell\ChangeOnSafeMethod;
use Pagewell\ChangeOutsideRequest;
use Pagewell\ChangesBy;
use Pagewell\Control;
use Pagewell\Dropped;
use Pagewell\Invalidation;
use Pagewell\NotDeclared;
use Pagewell\Outgoing;
use Pagewell\PagewellException;
use Pagewell\RecordingControl;
use Pagewell\RecordingWire;
use Pagewell\ResponseWire;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\UseAfterHeaders;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\freshFor;
use function Pagewell\uses;

final class OutgoingTest extends TestCase
{
    protected function tearDown(): void
    {
        Outgoing::begin();
    }

    public function testAPageIsDeclaredWhenItsHeadersGoOutAndNotBefore(): void
    {
        $wire = RecordingWire::install();
        uses('news', 4);
        self::assertSame([], $wire->lines());
        $wire->send();
        self::assertSame('Cache-Groups: "news:4", "news:*"', $wire->lines()[0]);
    }

    public function testAChangeIsSetAtOnceAndSentOnce(): void
    {
        $wire = RecordingWire::install('POST');
        changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $wire->lines());
        changed('comments', 17, news: 4);
        $wire->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "comments", "news:4", "comments:17"'], $wire->lines());
    }

    public function testAControlOfTheApplicationsOwnThatFailsInItsOwnWayBreaksNothing(): void
    {
        $logged = [];
        Outgoing::configure(log: static function (string $text) use (&$logged): void {
            $logged[] = $text;
        });
        Outgoing::begin($wire = new RecordingWire(null), new class implements Control {
            public function invalidate(Invalidation $invalidation): Dropped
            {
                throw new \RuntimeException('no route to host');
            }
        });
        changed('news', 4);
        $wire->end();
        Outgoing::configure();
        self::assertSame(["pagewell: no route to host Pages made from what has changed may still be shown. When it is back: pagewell invalidate --tag 'news' --tag 'news:4'"], $logged);
    }

    public function testWhatFailsAtTheEndKeepsNothingElseFromBeingDone(): void
    {
        $script = 'require ' . var_export(__DIR__ . '/bootstrap.php', true) . "; Pagewell\\AtEnd::call(static fn () => throw new RuntimeException('at the end')); Pagewell\\AtEnd::call(static fn () => print 'done');";
        [$code, $printed, $logged] = RealPagewell::command($script, []);
        self::assertSame([0, 'done'], [$code, $printed]);
        self::assertStringContainsString('pagewell: at the end', $logged);
    }

    public function testAChangeWhoseLineWasTakenAwayIsSetAgain(): void
    {
        $wire = RecordingWire::install('POST');
        changed('news', 4);
        $wire->set([], replace: 'Cache-Group-Invalidation');
        $wire->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $wire->lines());
    }

    /** @dataProvider safeMethods */
    public function testAChangeOnASafeMethodIsRefusedWithoutTheControlInterface(string $method): void
    {
        Outgoing::begin(new RecordingWire($method), control: false);
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
        $wire = new RecordingWire('POST');
        $wire->send();
        Outgoing::begin($wire, control: false);
        $this->expectException(ChangeAfterHeaders::class);
        changed('news', 4);
    }

    public function testAChangeOutsideARequestSaysWhatToRunInstead(): void
    {
        Outgoing::begin(new RecordingWire(null), control: false);
        $this->expectException(ChangeOutsideRequest::class);
        $this->expectExceptionMessage("pagewell invalidate --tag 'comments' --tag 'comments:*' --tag 'news:4'");
        changed('comments', news: 4);
    }

    public function testACommandIsOutsideARequest(): void
    {
        Outgoing::begin(control: false);
        $this->expectException(ChangeOutsideRequest::class);
        changed('news', 4);
    }

    public function testAUseAfterTheHeadersIsRefused(): void
    {
        RecordingWire::install()->send();
        $this->expectException(UseAfterHeaders::class);
        uses('news');
    }

    public function testALifetimeAfterTheHeadersIsRefused(): void
    {
        RecordingWire::install()->send();
        $this->expectException(UseAfterHeaders::class);
        freshFor(60);
    }

    public function testARefusedChangeIsNotSent(): void
    {
        $wire = RecordingWire::install('POST');
        changed('news', 4);
        try {
            changed('news', '');
            self::fail('an empty id was taken');
        } catch (PagewellException) {
            $wire->send();
        }
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $wire->lines());
    }

    public function testAFrameworksResponseIsGivenOutWhenTheControlInterfaceHasBeenTold(): void
    {
        Outgoing::configure(changes: ChangesBy::Control);
        $control = new RecordingControl();
        $wire = ResponseWire::begin('POST', $control);
        changed('news', 4);
        self::assertSame([], $wire->finish(303, []));
        self::assertSame(['news', 'news:4'], $control->tags());
        Outgoing::configure();
    }

    public function testTheNextRequestOfTheProcessBeginsWithNothing(): void
    {
        $first = RecordingWire::install();
        uses('news', 4);
        $first->send();
        self::assertSame(NotDeclared::Nothing, Outgoing::current()->refusal());
        $second = RecordingWire::install();
        uses('comments');
        $second->send();
        self::assertSame('Cache-Groups: "comments"', $second->lines()[0]);
    }

    public function testTheReasonCanBeAsked(): void
    {
        RecordingWire::install(session: true);
        uses('news', 4);
        self::assertSame(NotDeclared::Session, Outgoing::current()->refusal());
    }
}
