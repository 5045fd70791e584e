<?php

/**
 * A page that was made with a cookie that may be a login, or with Authorization, is offered to nobody.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\CollectingChannel;
use Pagewell\Configuration;
use Pagewell\Core\Credentials;
use Pagewell\Core\Declaration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Refusal;
use Pagewell\Core\Response;
use Pagewell\Core\SharedCookies;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\uses;

final class CredentialsTest extends TestCase
{
    protected function tearDown(): void
    {
        unset($_ENV['PAGEWELL_SHARED_COOKIES']);
        Configuration::reset();
        RequestScope::begin();
    }

    public function testScriptsCookiesAreThoseOfPagewellItself(): void
    {
        $known = (string) file_get_contents(__DIR__ . '/../../../crates/cache/known-names/src/lib.rs');
        preg_match('/pub const SCRIPT_COOKIES[^=]*= &\[(.*?)\n\];/s', $known, $list);
        // The names are the last list of each row.
        preg_match_all('/&\[([^\]]*)\]/', $list[1], $rows);
        preg_match_all('/"([^"]+)"/', implode($rows[1]), $names);
        self::assertGreaterThan(100, count($names[1]));
        self::assertSame($names[1], SharedCookies::SCRIPT_ONLY);
    }

    /** @dataProvider requests */
    #[DataProvider('requests')]
    public function testWhatARequestCarriesDecides(Credentials $credentials, ?Refusal $refusal): void
    {
        $page = (new Declaration())->uses('news', 4);
        $response = new Response(credentials: $credentials);
        self::assertSame($refusal, $page->refusal($response));
        self::assertSame($refusal === null ? 3 : 1, count($page->lines($response)));
        if ($refusal !== null) {
            self::assertSame(['Cache-Control: private, no-cache'], $page->lines($response));
        }
    }

    /** @return iterable<string, array{Credentials, ?Refusal}> */
    public static function requests(): iterable
    {
        yield 'nothing' => [Credentials::of(''), null];
        yield 'analytics and consent' => [Credentials::of('_ga=1; _GA_X=2; cookieyes-consent=yes; _ce.s=1', ['_ce_s' => '1']), null];
        yield 'what copies are told apart by' => [Credentials::of('_lscache_vary_eur=1; x-magento-vary=2; pagewell-wrote=1'), null];
        // Pagewell renders the page once more without it.
        yield 'an unknown cookie' => [Credentials::of('currency=eur'), null];
        yield 'a token of nobody knows what' => [Credentials::of('member=eyJhbGciOi'), Refusal::VisitorsCookie];
        yield 'beside analytics' => [Credentials::of('_ga=1; member=eyJhbGciOi'), Refusal::VisitorsCookie];
        yield 'without a value' => [Credentials::of('member'), Refusal::VisitorsCookie];
        yield 'a session of PHP' => [Credentials::of('PHPSESSID=1'), Refusal::VisitorsCookie];
        yield 'read in another way' => [Credentials::of('_ga[member]=1', ['_ga' => ['member' => '1']]), Refusal::VisitorsCookie];
        yield 'sent, and taken out since' => [Credentials::of('member=1', []), Refusal::VisitorsCookie];
        yield 'put in by the application' => [Credentials::of('', ['member' => '1']), Refusal::VisitorsCookie];
        yield 'Authorization' => [Credentials::of('', [], [], true), Refusal::Authorization];
        yield 'Authorization, passed to PHP' => [Credentials::of('', [], ['HTTP_AUTHORIZATION' => 'Bearer x']), Refusal::Authorization];
        yield 'a name that the server checked' => [Credentials::of('', [], ['REMOTE_USER' => 'ada']), Refusal::Authorization];
        yield 'no name that the server checked' => [Credentials::of('', [], ['REMOTE_USER' => '', 'AUTH_TYPE' => '']), null];
        yield 'nobody knows what' => [new Credentials(isKnown: false), Refusal::RequestUnknown];
    }

    public function testAPageForAnUnknownCookieIsForPagewellAlone(): void
    {
        $page = (new Declaration())->uses('news', 4);
        $lines = static fn (string $cookies): array => $page->lines(new Response(credentials: Credentials::of($cookies)));
        self::assertSame(['Cache-Groups: "news:4", "news:*"', 'Pagewell-Cache-Control: max-age=86400', 'Cache-Control: private, no-cache'], $lines('_ga=1; currency=eur'));
        self::assertSame('Cache-Control: no-cache', $lines('_ga=1')[2]);
    }

    /** @dataProvider marks */
    #[DataProvider('marks')]
    public function testTheApplicationMayMarkAPageAsShared(string $line, Credentials $credentials, ?Refusal $refusal): void
    {
        $page = (new Declaration())->uses('news', 4);
        self::assertSame($refusal, $page->refusal(new Response(lines: [$line], credentials: $credentials)));
    }

    /** @return iterable<array{string, Credentials, ?Refusal}> */
    public static function marks(): iterable
    {
        [$cookie, $authorization] = [Credentials::of('member=1'), Credentials::of('', [], [], true)];
        yield from [['Cache-Control: public, max-age=600', $cookie, null], ['Cache-Control: s-maxage=600', $authorization, null]];
        yield ['Cache-Control: max-age=600', $cookie, Refusal::VisitorsCookie];
        yield ['Cache-Control: public, private', $cookie, Refusal::CacheControl];
        yield ['Vary: Accept-Language, Cookie', $cookie, null];
        yield ['Vary: Cookie', $authorization, Refusal::Authorization];
        yield ['Vary: Cookie-Consent', $cookie, Refusal::VisitorsCookie];
    }

    public function testTheSiteNamesFurtherCookies(): void
    {
        $_ENV['PAGEWELL_SHARED_COOKIES'] = 'currency, theme_*';
        self::assertSame(['member'], SharedCookies::others(['currency', 'theme.dark', 'member'], Configuration::sharedCookies()));
        Configuration::set(sharedCookies: ['member']);
        self::assertSame(['currency'], SharedCookies::others(['currency', 'member'], Configuration::sharedCookies()));
    }

    /** @dataProvider noNames */
    #[DataProvider('noNames')]
    public function testWhatIsNoNameIsRefused(string $value): void
    {
        $_ENV['PAGEWELL_SHARED_COOKIES'] = $value;
        self::assertSame(['currency'], SharedCookies::others(['currency', '_ga'], Configuration::sharedCookies()), 'a page does not fail for it');
        $this->expectException(InvalidConfiguration::class);
        $this->expectExceptionMessage("PAGEWELL_SHARED_COOKIES has '");
        RequestScope::begin(new RecordingChannel('POST'));
    }

    /** @return iterable<array{string}> */
    public static function noNames(): iterable
    {
        yield from [['*'], ['currency=eur'], ['currency;theme']];
    }

    public function testAWorkerThatDoesNotSayWhatTheRequestCarriesOffersNothing(): void
    {
        $channel = CollectingChannel::begin('GET');
        uses('news', 4);
        self::assertSame(['Cache-Control: private, no-cache', 'X-Pagewell-Refusal: request-unknown'], $channel->finish(200, []));
        $channel = CollectingChannel::begin('GET', credentials: Credentials::of('_ga=1'));
        uses('news', 4);
        self::assertContains('Cache-Groups: "news:4", "news:*"', $channel->finish(200, []));
    }
}
