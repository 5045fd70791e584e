<?php

/**
 * For users of FOSHttpCache: its proxy client, with a stand-in of its interfaces, and its attribute.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Bridge;

use FOS\HttpCache\ProxyClient\Invalidation\ClearCapable;
use Pagewell\Bridge\FosHttpCache\ProxyClient;
use Pagewell\Configuration;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\FileOutbox;
use Pagewell\Core\SocketClient;
use Pagewell\RequestScope;
use Pagewell\Symfony\FosHttpCache\Tag;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Tests\Support\ExpressionLanguage;
use PHPUnit\Framework\TestCase;

final class FosHttpCacheTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        interface_exists(ClearCapable::class) || require_once __DIR__ . '/../../tests/stand-ins/fos-http-cache.php';
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        RequestScope::begin();
    }

    public function testTagsAreAChangeOfTheWrite(): void
    {
        $channel = RecordingChannel::install('POST');
        (new ProxyClient())->invalidateTags(['news-4', 'menu', ''])->invalidateTags([]);
        self::assertSame(['Cache-Group-Invalidation: "news-4", "menu"'], $channel->lines());
        self::assertSame([], $channel->client->calls());
    }

    public function testUrlsArePurgedWhenItIsFlushed(): void
    {
        $channel = RecordingChannel::install(null);
        $client = (new ProxyClient())->purge('/news/4', ['X-Other' => '1'])->refresh('https://example.org/')->purge('/news/4');
        self::assertSame([], $channel->client->calls());
        self::assertSame(2, $client->flush());
        self::assertSame(0, $client->flush());
        self::assertSame(1, $client->clear()->flush());
        self::assertSame(['{"urls":["/news/4","https://example.org/"]}', '{"all":true}'], array_map(static fn ($call): string => $call->json(), $channel->client->calls()));
    }

    public function testAPurgeThatCannotBeSentIsLogged(): void
    {
        $channel = RecordingChannel::install(null);
        $logged = [];
        Configuration::set(log: static function (string $line) use (&$logged): void {
            $logged[] = $line;
        });
        $channel->client->fail(new PagewellUnreachable('Pagewell is away.'));
        self::assertSame(1, (new ProxyClient())->purge('/news/4')->flush());
        self::assertSame(['pagewell: Pagewell is away. Send it later: {"urls":["/news/4"]}'], $logged);
    }

    public function testAPurgeThatWaitsKeepsTheSiteOfTheClient(): void
    {
        $file = sys_get_temp_dir() . '/pagewell-fos-' . bin2hex(random_bytes(6));
        try {
            Configuration::set(new SocketClient('unix:/nowhere/admin.sock', site: 'example.org'), static fn () => null, outbox: new FileOutbox($file));
            RequestScope::begin();
            (new ProxyClient())->purge('/news/4')->flush();
            self::assertStringContainsString('{"urls":["/news/4"],"site":"example.org"}', (string) file_get_contents($file));
        } finally {
            array_map(unlink(...), glob("$file*") ?: []);
        }
    }

    /** Version 2 declares neither the types of arguments nor those of results. */
    public function testItFitsVersion2(): void
    {
        $interfaces = '';
        foreach (['Clear' => 'clear()', 'Purge' => 'purge($url, array $headers = [])', 'Refresh' => 'refresh($url, array $headers = [])', 'Tag' => 'invalidateTags(array $tags)'] as $name => $method) {
            $interfaces .= "interface {$name}Capable { public function $method; public function flush(); } ";
        }
        $script = 'namespace FOS\HttpCache\ProxyClient\Invalidation { ' . $interfaces . '} namespace { require ' . var_export(__DIR__ . '/../../client/autoload.php', true) . '; echo get_class((new Pagewell\Bridge\FosHttpCache\ProxyClient())->purge(\'/\')); }';
        self::assertSame(ProxyClient::class, shell_exec(escapeshellarg(PHP_BINARY) . ' -d display_errors=1 -r ' . escapeshellarg($script) . ' 2>&1'));
    }

    public function testTheTagsOfAController(): void
    {
        self::assertSame(['class', 'a', 'b'], Tag::of([new TaggedPages(), 'some'], []));
        self::assertSame(['class'], Tag::of([new TaggedPages(), 'none'], []));
        self::assertSame(['class', 'invoked'], Tag::of(new TaggedPages(), []));
        self::assertSame([], Tag::of('strlen', []));
        self::assertSame([], Tag::of(static fn () => null, []));
    }

    public function testAnExpression(): void
    {
        if (stream_resolve_include_path('Symfony/Component/ExpressionLanguage/autoload.php') === false) {
            $this->expectException(\LogicException::class);
            $this->expectExceptionMessage('composer require symfony/expression-language');
        } else {
            require_once 'Symfony/Component/HttpKernel/autoload.php';
            ExpressionLanguage::load();
        }
        self::assertSame(['class', 'news-4'], Tag::of([new TaggedPages(), 'one'], ['id' => 4]));
    }
}

#[Tag('class')]
final class TaggedPages
{
    #[Tag(['a', 'b']), Tag('a')]
    public function some(): void
    {
    }

    public function none(): void
    {
    }

    #[Tag(expression: "'news-' ~ id")]
    public function one(): void
    {
    }

    #[Tag('invoked')]
    public function __invoke(): void
    {
    }
}
