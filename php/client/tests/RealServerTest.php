<?php

/**
 * The library in a PHP that really sends headers: the built-in web server, on a port of
 * the system's choice, stopped by its process id.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class RealServerTest extends TestCase
{
    /** @var resource */
    private static $process;

    /** @var resource */
    private static $log;

    private static string $address;

    private static string $sessions;

    public static function setUpBeforeClass(): void
    {
        self::$sessions = sys_get_temp_dir() . '/pagewell-client-' . bin2hex(random_bytes(6));
        mkdir(self::$sessions, 0700);
        $command = [PHP_BINARY, '-d', 'output_buffering=0', '-d', 'session.save_path=' . self::$sessions, '-S', '127.0.0.1:0', __DIR__ . '/site/index.php'];
        $process = proc_open($command, [2 => ['pipe', 'w']], $pipes, null, ['PAGEWELL_ADMIN' => 'unix:/nowhere/at/all.sock'] + getenv());
        self::assertIsResource($process);
        self::$process = $process;
        // Kept open: its log of the few requests below stays far under what a pipe holds.
        self::$log = $pipes[2];
        do {
            [$ready, $none] = [[self::$log], []];
            $line = stream_select($ready, $none, $none, 60) === 1 ? fgets(self::$log) : false;
            self::assertIsString($line, 'php -S did not say within a minute where it listens');
        } while (!preg_match('~\((http://127\.0\.0\.1:\d+)\) started~', $line, $found));
        self::$address = $found[1];
    }

    public static function tearDownAfterClass(): void
    {
        proc_terminate(self::$process);
        fclose(self::$log);
        proc_close(self::$process);
        array_map('unlink', glob(self::$sessions . '/*') ?: []);
        rmdir(self::$sessions);
    }

    public function testADeclaredPage(): void
    {
        [$fields, $body] = $this->ask('GET', '/declared');
        self::assertSame('declared', $body);
        self::assertSame(['"news:4", "news:*"'], $fields['cache-groups']);
        self::assertSame(['max-age=86400'], $fields['pagewell-cache-control']);
        self::assertSame(['no-cache'], $fields['cache-control']);
    }

    public function testHeadDeclaresTheSame(): void
    {
        self::assertSame(['"news:4", "news:*"'], $this->ask('HEAD', '/declared')[0]['cache-groups']);
    }

    /** By default nginx answers 502 to more than 4 KB of fields. */
    public function testLongListsGoOnlyToPagewell(): void
    {
        [$fields, $body] = $this->ask('GET', '/many');
        self::assertSame('many', $body);
        self::assertSame(['not-in-front'], $fields['x-pagewell-refusal']);
        self::assertArrayNotHasKey('cache-groups', $fields);
        self::assertArrayNotHasKey('pagewell-cache-control', $fields);
        self::assertSame(['*'], $this->ask('POST', '/change-many')[0]['cache-group-invalidation']);
        $via = "Via: 1.1 pagewell\r\n";
        self::assertStringContainsString('"news:500"', implode($this->ask('GET', '/many', $via)[0]['cache-groups']));
        self::assertStringContainsString('news:150"', implode($this->ask('POST', '/change-many', $via)[0]['cache-group-invalidation']));
    }

    public function testARedirectWithoutContentIsDeclared(): void
    {
        self::assertSame(['"news:4", "news:*"'], $this->ask('GET', '/declared-without-content')[0]['cache-groups']);
    }

    /** @dataProvider pagesNotOffered */
    #[DataProvider('pagesNotOffered')]
    public function testAPageThatIsNotOffered(string $path, ?string $cacheControl): void
    {
        [$fields] = $this->ask('GET', $path);
        self::assertNotSame([], $fields);
        self::assertArrayNotHasKey('cache-groups', $fields);
        self::assertSame($path === '/fatal' ? ['no-store'] : null, $fields['pagewell-cache-control'] ?? null);
        self::assertSame($cacheControl === null ? null : [$cacheControl], $fields['cache-control'] ?? null);
    }

    /** @return iterable<string, array{string, string|null}> */
    public static function pagesNotOffered(): iterable
    {
        yield 'nothing declared' => ['/undeclared', null];
        yield 'a session, closed again' => ['/session', 'private, no-cache'];
        yield 'a session, and no content' => ['/session-without-content', 'private, no-cache'];
        yield 'the callback taken by another' => ['/callback-taken', null];
        yield 'a fatal error shown with status 200' => ['/fatal', null];
        yield 'an error status' => ['/failed', null];
    }

    /** @dataProvider ownCallbacks */
    #[DataProvider('ownCallbacks')]
    public function testTheApplicationsOwnCallbackStays(string $method, string $how, bool $isDeclared, ?string $changes, string $told): void
    {
        [$fields, $body] = $this->ask($method, "/own-callback?$how");
        self::assertSame(['yes'], $fields['x-own']);
        self::assertSame($isDeclared, isset($fields['cache-groups']));
        self::assertSame($isDeclared, isset($fields['pagewell-cache-control']));
        self::assertSame($changes, $fields['cache-group-invalidation'][0] ?? null);
        self::assertSame($told, $body);
    }

    /** @return iterable<array{string, string, bool, ?string, string}> */
    public static function ownCallbacks(): iterable
    {
        yield 'sent before the end' => ['GET', '', false, null, '0'];
        yield 'sent at the end' => ['GET', 'buffered', true, null, '0'];
        yield 'failed at the end' => ['GET', 'buffered&fails', false, null, '0'];
        yield 'that tells the library' => ['GET', 'tells', true, null, '0'];
        yield 'that tells the library, at the end' => ['GET', 'tells&buffered', true, null, '0'];
        yield 'a change on the response' => ['POST', 'changes', false, '"news", "news:5"', '0'];
        yield 'a change on a GET, told before anything is sent' => ['GET', 'changes', false, null, '1'];
    }

    public function testAUseAfterTheHeadersIsRefused(): void
    {
        [$fields, $body] = $this->ask('GET', '/too-late');
        self::assertSame('begun, refused', $body);
        self::assertSame(['"news:4", "news:*"'], $fields['cache-groups']);
    }

    public function testAChange(): void
    {
        [$fields] = $this->ask('POST', '/change');
        self::assertSame(['"comments", "comments:*", "news:4"'], $fields['cache-group-invalidation']);
        self::assertArrayNotHasKey('cache-groups', $fields);
    }

    public function testChangesAfterTheHeadersAreSentTogether(): void
    {
        self::assertSame('begun, 0', $this->ask('POST', '/change-after-headers')[1]);
    }

    public function testAChangeIsSaidEvenWhenTheScriptDiesAndTheCallbackIsGone(): void
    {
        self::assertSame(['"news", "news:4"'], $this->ask('POST', '/change-and-fail')[0]['cache-group-invalidation']);
    }

    /** @dataProvider ends */
    #[DataProvider('ends')]
    public function testThousandsOfChangesAreSaidHoweverTheScriptEnds(string $end): void
    {
        $value = implode(', ', $this->ask('POST', '/change-much?end=' . rawurlencode($end), "Via: 1.1 pagewell\r\n")[0]['cache-group-invalidation']);
        for ($id = 1; $id <= 2000; $id++) {
            self::assertStringContainsString('"kind' . $id % 50 . ":$id\"", $value);
        }
    }

    /** @return iterable<array{string}> */
    public static function ends(): iterable
    {
        yield from [['exit'], ['thrown'], ['flushed'], ['callback taken']];
    }

    public function testAChangeThatTheApplicationHasTakenOffIsToldByTheControlInterface(): void
    {
        [$fields, $body] = $this->ask('POST', '/change-taken-off');
        self::assertArrayNotHasKey('cache-group-invalidation', $fields);
        self::assertStringStartsWith('done. pagewell: ', $body);
        self::assertStringContainsString("pagewell purge --tag 'news' --tag 'news:4'", $body);
    }

    /** @dataProvider whatBecomesOfIt */
    #[DataProvider('whatBecomesOfIt')]
    public function testAFinishedResponseThatIsNotSentLosesNoChange(string $then, ?string $said, string $logged): void
    {
        [$fields, $body] = $this->ask('POST', '/finished?then=' . rawurlencode($then));
        self::assertSame($said === null ? [] : [$said], $fields['cache-group-invalidation'] ?? []);
        self::assertStringContainsString($logged, $body);
        self::assertSame($logged !== '', str_contains($body, 'pagewell purge'));
    }

    /** @return iterable<array{string, ?string, string}> */
    public static function whatBecomesOfIt(): iterable
    {
        yield ['sent', '"news", "news:4"', ''];
        yield ['combined', '"other",  "news:4", "news"', ''];
        yield ['thrown', '"news", "news:4"', ''];
        yield ['another sent', null, "pagewell purge --tag 'news' --tag 'news:4'"];
    }

    /** @return array{array<string, list<string>>, string} fields by lower-case name, and the body */
    private function ask(string $method, string $path, string $header = ''): array
    {
        $options = stream_context_create(['http' => [
            'method' => $method, 'header' => $header, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 60, 'content' => '',
        ]]);
        $body = file_get_contents(self::$address . $path, false, $options);
        self::assertIsString($body);
        $fields = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(':', $line, 2);
            $fields[strtolower($name)][] = trim($value);
        }
        return [$fields, $body];
    }
}
