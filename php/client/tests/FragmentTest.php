<?php

/**
 * Fragments: the element, what the response says with it, and which addresses are written.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\CollectingChannel;
use Pagewell\Core\Exception\InvalidFragment;
use Pagewell\Core\Exception\UseAfterHeaders;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\fragment;
use function Pagewell\uses;

final class FragmentTest extends TestCase
{
    private const UNDERSTOOD = 'pagewell="ESI/1.0"';

    private const SAID = 'Surrogate-Control: content="ESI/1.0"';

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testAnElementIsWrittenWhereItIsUnderstoodAndTheResponseSaysSo(): void
    {
        $channel = RecordingChannel::install(capability: self::UNDERSTOOD);
        $never = static fn () => self::fail('it was rendered');
        self::assertSame('<esi:include src="/box"/>', fragment('/box', $never));
        self::assertSame('<esi:include src="/a?b=1&amp;c=2" alt="/d" onerror="continue"/>', fragment('/a?b=1&c=2', $never, '/d', continue: true));
        self::assertSame([self::SAID], $channel->lines());
        $channel->send();
        self::assertSame([self::SAID], $channel->lines());
    }

    /** @dataProvider notUnderstood */
    #[DataProvider('notUnderstood')]
    public function testWhereItIsNotTheFragmentIsRenderedInPlace(?string $method, string $capability): void
    {
        $channel = RecordingChannel::install($method, capability: $capability);
        self::assertSame('in place', fragment('/box', static fn (): string => 'in place'));
        $channel->send();
        self::assertSame([], $channel->lines());
    }

    /** @return iterable<array{?string, string}> */
    public static function notUnderstood(): iterable
    {
        yield from [['GET', ''], [null, ''], ['GET', 'pagewell="Surrogate/1.0"'], ['GET', 'ESI/1.0'], ['GET', 'a="XESI/1.0"'], ['GET', 'a="ESI/1.01"']];
    }

    public function testWhatIsPrintedCountsAsWellAsWhatIsReturned(): void
    {
        RecordingChannel::install();
        $level = ob_get_level();
        $printing = static function (): int {
            echo 'printed';
            ob_start();
            echo ', and left in a buffer';
            return 1;
        };
        self::assertSame('printed, and left in a buffer', fragment('/box', $printing));
        $view = new class () {
            public function __toString(): string
            {
                return 'a view';
            }
        };
        self::assertSame('a view', fragment('/box', static fn () => $view));
        self::assertSame($level, ob_get_level());
    }

    public function testAFaultInPlaceIsThePagesAndLeavesNothing(): void
    {
        RecordingChannel::install();
        $level = ob_get_level();
        try {
            fragment('/box', static function (): never {
                echo 'half';
                throw new \DomainException('no names');
            }, continue: true);
        } catch (\DomainException) {
            self::assertSame($level, ob_get_level());
            return;
        }
        self::fail('it was swallowed');
    }

    /** @dataProvider addresses */
    #[DataProvider('addresses')]
    public function testNothingInAnAddressEndsItsAttribute(string $src, string $written): void
    {
        RecordingChannel::install(capability: self::UNDERSTOOD);
        self::assertSame("<esi:include src=\"$written\"/>", fragment($src, static fn () => self::fail('it was rendered')));
    }

    /** @return iterable<array{string, string}> */
    public static function addresses(): iterable
    {
        yield ["/box?q=\"/>\r\n<esi:include src='/admin'/>", '/box?q=%22/%3E%0D%0A%3Cesi:include%20src=&apos;/admin&apos;/%3E'];
        yield ["/box?q=\xff\x00\\`Malm\u{f6}", '/box?q=%FF%00%5C%60Malm%C3%B6'];
        yield ['/box?q=%22&amp;r=100%#top', '/box?q=%22&amp;amp;r=100%25%23top'];
        yield ['/a/.../b..?c=/../d', '/a/.../b..?c=/../d'];
    }

    /** @dataProvider addressesNotWritten */
    #[DataProvider('addressesNotWritten')]
    public function testAnAddressThatCannotBeWrittenSafelyIsRenderedInPlace(string $src): void
    {
        $channel = RecordingChannel::install(capability: self::UNDERSTOOD);
        self::assertSame('in place', fragment($src, static fn (): string => 'in place'));
        self::assertSame('in place', fragment('/box', static fn (): string => 'in place', alt: $src));
        $channel->send();
        self::assertSame([], $channel->lines());
    }

    /** @return iterable<array{string}> */
    public static function addressesNotWritten(): iterable
    {
        yield from [['/box/../admin'], ['/box/%2E%2e/admin'], ['/box/.'], ['/box?q=' . str_repeat('"', 2000)], ['/' . str_repeat('&', 1_000_000)]];
    }

    /** @dataProvider noPaths */
    #[DataProvider('noPaths')]
    public function testWhatIsNoPathIsRefusedWithAndWithoutPagewell(string $src): void
    {
        foreach ([self::UNDERSTOOD, ''] as $capability) {
            RecordingChannel::install(capability: $capability);
            try {
                fragment($src, static fn (): string => 'in place');
                self::fail('it was taken');
            } catch (InvalidFragment $fault) {
                self::assertLessThan(2000, strlen($fault->getMessage()));
            }
        }
    }

    /** @return iterable<array{string}> */
    public static function noPaths(): iterable
    {
        yield from [[''], ['box'], ['//evil.example/'], ['/\\evil.example/'], ['https://evil.example/'], ["\n/box"], [str_repeat("\xff", 1_000_000)]];
    }

    public function testAfterTheHeaderSectionItIsRefusedWithAndWithoutPagewell(): void
    {
        foreach ([self::UNDERSTOOD, ''] as $capability) {
            RecordingChannel::install(capability: $capability)->send();
            try {
                fragment('/box', static fn () => self::fail('it was rendered'));
                self::fail('it was taken');
            } catch (UseAfterHeaders $fault) {
                self::assertStringContainsString('fragment()', $fault->getMessage());
            }
        }
    }

    /** @dataProvider values */
    #[DataProvider('values')]
    public function testItIsAddedToWhatTheResponseSays(string $said, string $expected): void
    {
        $channel = RecordingChannel::install(capability: self::UNDERSTOOD);
        fragment('/box', static fn (): string => '');
        $channel->set(["Surrogate-Control: $said"], replace: 'surrogate-control');
        $channel->send();
        self::assertSame(["Surrogate-Control: $expected"], $channel->lines());
    }

    /** @return iterable<array{string, string}> */
    public static function values(): iterable
    {
        yield ['max-age=60', 'max-age=60, content="ESI/1.0"'];
        yield ['max-age=60, content="X/2 ESI/1.0"', 'max-age=60, content="X/2 ESI/1.0"'];
        yield ['content="ESI/1.0";elsewhere', 'content="ESI/1.0";elsewhere, content="ESI/1.0"'];
        yield ['content="ESI/1.00"', 'content="ESI/1.00", content="ESI/1.0"'];
    }

    public function testWhatIsMadeInPlaceBelongsToThePage(): void
    {
        RecordingChannel::install();
        fragment('/box', static fn () => uses('names'));
        self::assertSame(['names'], RequestScope::current()->tags());
        RecordingChannel::install(capability: self::UNDERSTOOD);
        fragment('/box', static fn () => uses('names'));
        self::assertSame([], RequestScope::current()->tags());
    }

    public function testOneRequestOfAProcessSaysNothingOfTheNext(): void
    {
        $channel = CollectingChannel::begin('GET', false, capability: self::UNDERSTOOD);
        fragment('/box', static fn (): string => '');
        self::assertSame(['Surrogate-Control: max-age=5, content="ESI/1.0"'], $channel->finish(200, ['surrogate-control: max-age=5']));
        $channel = CollectingChannel::begin('GET', false);
        self::assertSame('in place', fragment('/box', static fn (): string => 'in place'));
        self::assertSame(['X-Pagewell-Refusal: nothing-declared'], $channel->finish(200, []));
    }
}
