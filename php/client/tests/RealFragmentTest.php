<?php

/**
 * Fragments behind the real binary, where it puts pages together and where it does not.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\TestCase;

final class RealFragmentTest extends TestCase
{
    /** @var array<string, RealPagewell> */
    private static array $started = [];

    public static function tearDownAfterClass(): void
    {
        array_map(static fn (RealPagewell $pagewell) => $pagewell->stop(), self::$started);
        self::$started = [];
    }

    public function testPagewellPutsThemIn(): void
    {
        [$page, $fields] = $this->ask('on', '/page');
        self::assertMatchesRegularExpression('~^<p>Hello, stranger!  [0-9a-f]{8}</p>$~', $page);
        self::assertArrayNotHasKey('surrogate-control', $fields);
        [$his, $fields] = $this->ask('on', '/page', 'Ada');
        self::assertSame(strtr($page, ['stranger' => 'Ada']), $his, 'the page is everybody\'s');
        self::assertStringContainsString('hit', $fields['cache-status']);
        self::assertSame($page, $this->ask('on', '/page')[0]);
    }

    public function testWhatIsTypedByAVisitorStaysInTheAddress(): void
    {
        $typed = "\"/><esi:include src='/box'/>\n<b>";
        [$page] = $this->ask('on', '/hostile?q=' . rawurlencode($typed));
        $shown = 'Hello, stranger! ' . htmlspecialchars($typed);
        self::assertSame("<p>$shown|$shown</p>", $page);
    }

    public function testWhatFailsIsLeftOutOrReplaced(): void
    {
        self::assertSame('<p></p>', $this->ask('on', '/left-out')[0]);
        self::assertSame('<p>Hello, stranger! </p>', $this->ask('on', '/instead')[0]);
    }

    public function testAFieldThatIsSetAnewDoesNotTakeItAway(): void
    {
        self::assertSame('<p>Hello, stranger! </p>', $this->ask('on', '/overwritten')[0]);
    }

    public function testWhereItIsOffTheyAreRenderedInPlace(): void
    {
        [$page] = $this->ask('off', '/page');
        self::assertMatchesRegularExpression('~^<p>Hello, stranger!  [0-9a-f]{8}</p>$~', $page);
        [$his, $fields] = $this->ask('off', '/page', 'Ada');
        self::assertMatchesRegularExpression('~^<p>Hello, Ada!  [0-9a-f]{8}</p>$~', $his);
        self::assertStringNotContainsString('hit', $fields['cache-status']);
        self::assertStringContainsString('stranger', $this->ask('off', '/page')[0]);
    }

    /** @return array{string, array<string, string>} content, fields by lower-case name */
    private function ask(string $esi, string $path, ?string $who = null): array
    {
        $context = stream_context_create(['http' => [
            'ignore_errors' => true, 'timeout' => 60,
            // The visitor's own word counts for nothing.
            'header' => ['Surrogate-Capability: forged="ESI/1.0"', ...($who === null ? [] : ["Cookie: who=$who"])],
        ]]);
        $content = (string) file_get_contents(self::pagewell($esi)->address() . $path, false, $context);
        $fields = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(':', $line, 2);
            $fields[strtolower($name)] = trim($value);
        }
        return [$content, $fields];
    }

    private static function pagewell(string $esi): RealPagewell
    {
        if (!isset(self::$started[$esi])) {
            $config = (string) tempnam(sys_get_temp_dir(), 'pagewell-');
            $on = "[cache]\nesi = true\n[[rule]]\npath = \"/page\"\nshared_with_sessions = true\n";
            file_put_contents($config, "[cookies]\nsession = [\"who\"]\n" . ($esi === 'on' ? $on : ''));
            try {
                self::$started[$esi] = RealPagewell::start(__DIR__ . '/fragments', '--config', $config);
            } finally {
                unlink($config);
            }
        }
        return self::$started[$esi];
    }
}
