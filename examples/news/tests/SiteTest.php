<?php

/**
 * The site without its database: routing, and what it answers when the database is away.
 */

declare(strict_types=1);

namespace News\Tests;

use News\Libraries\Database;
use News\Request;
use News\Response;
use News\Site;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\TestCase;

final class SiteTest extends TestCase
{
    private string $log = '';

    protected function setUp(): void
    {
        $this->log = (string) ini_set('error_log', '/dev/null');
        RecordingChannel::install();
    }

    protected function tearDown(): void
    {
        ini_set('error_log', $this->log);
        RequestScope::begin();
    }

    public function testAnAddressWithNothingAtIt(): void
    {
        foreach (['/nope/', '/news/0/', '/news/04/', '/news/x/', '/news/1234567890/', "/news/4/\n", '/office/comments/1'] as $path) {
            self::assertSame(404, $this->answer('GET', $path)->status, $path);
        }
    }

    public function testAMissingSlashIsAdded(): void
    {
        $response = $this->answer('GET', '/news/4');
        self::assertSame([301, '/news/4/'], [$response->status, $response->fields['Location']]);
    }

    public function testAMethodThatIsNotTaken(): void
    {
        $response = $this->answer('DELETE', '/news/4/');
        self::assertSame([405, 'GET, HEAD, POST'], [$response->status, $response->fields['Allow']]);
    }

    public function testTheDatabaseIsAway(): void
    {
        $response = $this->answer('GET', '/news/4/');
        self::assertSame([503, '5'], [$response->status, $response->fields['Retry-After']]);
        self::assertStringContainsString('The presses have stopped', $response->content);
    }

    public function testHeadIsAnsweredAsGet(): void
    {
        self::assertSame(503, $this->answer('HEAD', '/news/4/')->status);
    }

    public function testASearchLeadsToItsOwnAddress(): void
    {
        $request = new Request('GET', '/search/', ['q' => ' fish & chips/2 ']);
        $response = $this->site()->answer($request);
        self::assertSame([303, '/search/fish%20%26%20chips%2F2/'], [$response->status, $response->fields['Location']]);
    }

    public function testTextThatIsNotTextIsEmpty(): void
    {
        $request = new Request('POST', '/', ['q' => ['a']], ['author' => "\xff", 'body' => ' b ']);
        self::assertSame(['', '', 'b', ''], [$request->query('q'), $request->form('author'), $request->form('body'), $request->form('none')]);
    }

    private function answer(string $method, string $path): Response
    {
        return $this->site()->answer(new Request($method, $path));
    }

    private function site(): Site
    {
        return new Site(require __DIR__ . '/../src/routes.php', new Database('mysql:unix_socket=/nowhere/at/all'));
    }
}
