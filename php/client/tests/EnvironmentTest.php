<?php

/**
 * Where variables of the environment are read, and when a wrong value is refused.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\ChangeDelivery;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Environment;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\transaction;
use function Pagewell\uses;

final class EnvironmentTest extends TestCase
{
    /** @var list<string> */
    private array $logged = [];

    protected function setUp(): void
    {
        Configuration::set(log: function (string $text): void {
            $this->logged[] = $text;
        });
    }

    protected function tearDown(): void
    {
        foreach (['CHANGES', 'ADMIN', 'SITE', 'TOKEN_FILE', 'LIFETIME'] as $name) {
            putenv("PAGEWELL_$name");
            unset($_SERVER["PAGEWELL_$name"], $_ENV["PAGEWELL_$name"], $_SERVER["HTTP_PAGEWELL_$name"]);
        }
        Configuration::reset();
        Configuration::ofFramework('', []);
        RequestScope::begin();
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
        self::assertSame('env.test', Configuration::client(null)?->site, 'what is empty is not set');
    }

    public function testAFieldOfTheRequestIsNoVariable(): void
    {
        $_SERVER['HTTP_PAGEWELL_CHANGES'] = 'control';
        self::assertSame(ChangeDelivery::Response, ChangeDelivery::fromEnvironment());
    }

    /** @dataProvider words */
    #[DataProvider('words')]
    public function testTheEnvironmentSaysWhoHears(string $word, ?ChangeDelivery $expected): void
    {
        $_ENV['PAGEWELL_CHANGES'] = $word;
        try {
            self::assertSame($expected, ChangeDelivery::fromEnvironment());
        } catch (InvalidConfiguration) {
            self::assertNull($expected);
        }
    }

    /** @return iterable<array{string, ?ChangeDelivery}> */
    public static function words(): iterable
    {
        yield from [['', ChangeDelivery::Response], ['response', ChangeDelivery::Response], ['control', ChangeDelivery::Control], ['Control', null], ['contol', null]];
    }

    /** @dataProvider wrongValues */
    #[DataProvider('wrongValues')]
    public function testAWrongValueIsRefusedWhereAWriteBegins(string $name, string $value, string $allowed): void
    {
        $_SERVER["PAGEWELL_$name"] = $value;
        RequestScope::begin(new RecordingChannel('GET'));
        $this->expectException(InvalidConfiguration::class);
        $this->expectExceptionMessage("PAGEWELL_$name is '$value': write $allowed");
        RequestScope::begin(new RecordingChannel('POST'));
    }

    /** @return iterable<array{string, string, string}> */
    public static function wrongValues(): iterable
    {
        yield ['CHANGES', 'contol', 'response or control.'];
        yield ['ADMIN', 'localhost', 'an address (127.0.0.1:8081), a socket (unix:/run/pagewell/admin.sock) or off.'];
        yield ['ADMIN', 'http://127.0.0.1:8081', 'an address'];
        yield ['SITE', 'https://example.org/', 'the host alone, as in example.org.'];
        yield ['LIFETIME', '0', 'seconds, at most 31536000 (a year).'];
        yield ['LIFETIME', '1h', 'seconds'];
        yield ['LIFETIME', '31536001', 'seconds'];
    }

    public function testAMistypedTokenFileIsRefusedToo(): void
    {
        $_SERVER['PAGEWELL_TOKEN_FILE'] = __FILE__;
        RequestScope::begin(new RecordingChannel('POST'));
        foreach ([__FILE__ . '.none', '/nowhere/at/all'] as $file) {
            $_SERVER['PAGEWELL_TOKEN_FILE'] = $file;
            try {
                RequestScope::begin(new RecordingChannel('POST'));
                self::fail("$file was accepted");
            } catch (InvalidConfiguration $fault) {
                self::assertStringContainsString("PAGEWELL_TOKEN_FILE is '$file', which does not exist", $fault->getMessage());
            }
        }
    }

    public function testACommandIsRefusedWhereItBegins(): void
    {
        $_SERVER['PAGEWELL_ADMIN'] = 'localhost';
        $this->expectException(InvalidConfiguration::class);
        RequestScope::begin(new RecordingChannel(null));
    }

    public function testTheSettingsOfAFrameworkCountAfterTheEnvironment(): void
    {
        Configuration::ofFramework('config/pagewell.php', ['site' => 'framework.test', 'changes' => 'control', 'token_file' => null]);
        self::assertSame('framework.test', Configuration::client(null)?->site);
        self::assertSame(ChangeDelivery::Control, Configuration::way());
        $_ENV['PAGEWELL_SITE'] = 'env.test';
        self::assertSame('env.test', Configuration::client(null)?->site);
        $this->expectException(InvalidConfiguration::class);
        $this->expectExceptionMessage('PAGEWELL_CHANGES=control');
        Configuration::ofFramework('config/pagewell.php', ['changes' => 'control', 'admin' => 'off']);
    }

    public function testThePagesLifetimeIsThatOfTheEnvironmentAndNoPageFailsByIt(): void
    {
        foreach (['600' => 600, '' => 86_400, 'never' => 86_400] as $said => $expected) {
            $_SERVER['PAGEWELL_LIFETIME'] = (string) $said;
            $channel = RecordingChannel::install();
            uses('news');
            $channel->send();
            self::assertContains("Pagewell-Cache-Control: max-age=$expected", $channel->lines());
        }
    }

    public function testAfterTheWriteAWrongWordIsLoggedAndBothAreTold(): void
    {
        $channel = RecordingChannel::install('POST');
        $_ENV['PAGEWELL_CHANGES'] = 'contol';
        transaction()->begin();
        changed('news', 4);
        changed('news', 5);
        transaction()->commit();
        $channel->send();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4", "news:5"'], $channel->lines());
        self::assertSame(['news', 'news:4', 'news:5'], $channel->client->tags());
        self::assertSame(["pagewell: PAGEWELL_CHANGES is 'contol': write response or control. Until then changes are sent on the response and to the control interface."], $this->logged);
    }

    public function testAfterTheWriteTheAnswerCarriesWhatNobodyElseCouldBeTold(): void
    {
        RequestScope::begin($channel = new RecordingChannel('POST'), client: false);
        $_ENV['PAGEWELL_CHANGES'] = 'control';
        changed('news', 4);
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $channel->lines());
        self::assertCount(1, $this->logged);
        self::assertStringContainsString('PAGEWELL_ADMIN=off', $this->logged[0]);
    }
}
