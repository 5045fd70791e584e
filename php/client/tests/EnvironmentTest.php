<?php

/**
 * Where variables of the environment are read, and when a wrong value is refused.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\ChangesBy;
use Pagewell\Environment;
use Pagewell\InvalidControl;
use Pagewell\Outgoing;
use Pagewell\RecordingWire;
use Pagewell\SocketControl;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\transaction;

final class EnvironmentTest extends TestCase
{
    /** @var list<string> */
    private array $logged = [];

    protected function setUp(): void
    {
        Outgoing::configure(log: function (string $text): void {
            $this->logged[] = $text;
        });
    }

    protected function tearDown(): void
    {
        foreach (['CHANGES', 'ADMIN', 'SITE'] as $name) {
            putenv("PAGEWELL_$name");
            unset($_SERVER["PAGEWELL_$name"], $_ENV["PAGEWELL_$name"], $_SERVER["HTTP_PAGEWELL_$name"]);
        }
        Outgoing::configure();
        Outgoing::begin();
    }

    public function testTheFirstSourceThatHasAValueCounts(): void
    {
        self::assertNull(Environment::value('SITE'));
        $_ENV['PAGEWELL_SITE'] = 'env.test';
        self::assertSame('env.test', Environment::value('SITE'));
        $_SERVER['PAGEWELL_SITE'] = 'server.test';
        self::assertSame('server.test', Environment::value('SITE'));
        putenv('PAGEWELL_SITE=process.test');
        self::assertSame('process.test', Environment::value('SITE'));
        putenv('PAGEWELL_SITE=');
        $_SERVER['PAGEWELL_SITE'] = '';
        self::assertSame('env.test', SocketControl::fromEnvironment()?->site, 'what is empty is not set');
    }

    public function testAFieldOfTheRequestIsNoVariable(): void
    {
        $_SERVER['HTTP_PAGEWELL_CHANGES'] = 'control';
        self::assertSame(ChangesBy::Response, ChangesBy::fromEnvironment());
    }

    /** @dataProvider words */
    public function testTheEnvironmentSaysWhoHears(string $word, ?ChangesBy $expected): void
    {
        $_ENV['PAGEWELL_CHANGES'] = $word;
        try {
            self::assertSame($expected, ChangesBy::fromEnvironment());
        } catch (InvalidControl) {
            self::assertNull($expected);
        }
    }

    /** @return iterable<array{string, ?ChangesBy}> */
    public static function words(): iterable
    {
        yield from [['', ChangesBy::Response], ['response', ChangesBy::Response], ['control', ChangesBy::Control], ['Control', null], ['contol', null]];
    }

    /** @dataProvider wrongValues */
    public function testAWrongValueIsRefusedWhereAWriteBegins(string $name, string $value, string $allowed): void
    {
        $_SERVER["PAGEWELL_$name"] = $value;
        Outgoing::begin(new RecordingWire('GET'));
        $this->expectException(InvalidControl::class);
        $this->expectExceptionMessage("PAGEWELL_$name is '$value': write $allowed");
        Outgoing::begin(new RecordingWire('POST'));
    }

    /** @return iterable<array{string, string, string}> */
    public static function wrongValues(): iterable
    {
        yield ['CHANGES', 'contol', 'response or control.'];
        yield ['ADMIN', 'localhost', 'an address (127.0.0.1:8081), a socket (unix:/run/pagewell/admin.sock) or off.'];
        yield ['ADMIN', 'http://127.0.0.1:8081', 'an address'];
        yield ['SITE', 'https://example.org/', 'the host alone, as in example.org.'];
    }

    public function testAfterTheWriteAWrongWordIsLoggedAndBothAreTold(): void
    {
        $wire = RecordingWire::install('POST');
        $_ENV['PAGEWELL_CHANGES'] = 'contol';
        transaction()->begin();
        changed('news', 4);
        changed('news', 5);
        transaction()->commit();
        $wire->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4", "news:5"'], $wire->lines());
        self::assertSame(['news', 'news:4', 'news:5'], $wire->control->tags());
        self::assertSame(["pagewell: PAGEWELL_CHANGES is 'contol': write response or control. Until then changes are sent on the response and to the control interface."], $this->logged);
    }

    public function testAfterTheWriteTheAnswerCarriesWhatNobodyElseCouldBeTold(): void
    {
        Outgoing::begin($wire = new RecordingWire('POST'), control: false);
        $_ENV['PAGEWELL_CHANGES'] = 'control';
        changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $wire->lines());
        self::assertCount(1, $this->logged);
        self::assertStringContainsString('PAGEWELL_ADMIN=off', $this->logged[0]);
    }
}
