<?php

/**
 * The file that says on a response that a cache hides reads, for applications whose statements Pagewell sees on their
 * way to the database: with and without APCu, whatever this machine has.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Tests\Support\PlainServer;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class HiddenReadsTest extends TestCase
{
    private const MEDIAWIKI = 'define("MW_VERSION", "1.39.0"); ';

    private string $directory;

    protected function setUp(): void
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-hidden-' . bin2hex(random_bytes(6));
        mkdir("$this->directory/ini", 0700, true);
    }

    protected function tearDown(): void
    {
        array_map('unlink', [...glob("$this->directory/*.php") ?: [], ...glob("$this->directory/ini/*") ?: []]);
        rmdir("$this->directory/ini");
        rmdir($this->directory);
    }

    /** @dataProvider scripts */
    #[DataProvider('scripts')]
    public function testAPageWhoseReadsMayBeHidden(string $script, bool $isHidden, string $method = 'GET'): void
    {
        self::assertSame($isHidden, $this->isRefused($script, 'apc.enabled = 0', $method));
    }

    /** @return iterable<string, array{0: string, 1: bool, 2?: string}> */
    public static function scripts(): iterable
    {
        yield 'an application without a cache' => ['echo "page";', false];
        yield 'nothing is sent' => ['', false];
        yield 'MediaWiki whose cache is in the database' => [self::MEDIAWIKI . '$wgMainCacheType = 1; echo "page";', false];
        yield 'MediaWiki without a cache' => [self::MEDIAWIKI . '$wgMainCacheType = 0; $wgParserCacheType = -1; echo "page";', false];
        yield 'MediaWiki with APCu, which is not there' => [self::MEDIAWIKI . '$wgMainCacheType = 3; echo "page";', false];
        yield 'MediaWiki with memcached' => [self::MEDIAWIKI . '$wgMainCacheType = "memcached-php"; echo "page";', true];
        yield 'MediaWiki whose parsed pages are in Redis' => [self::MEDIAWIKI . '$wgMainCacheType = 1; $wgParserCacheType = "redis"; echo "page";', true];
        yield 'WordPress with a cache' => ['function wp_using_ext_object_cache() { return true; } echo "page";', true];
        yield 'a class that is loaded' => ['eval("namespace Predis; class Client {}"); echo "page";', true];
        yield 'a page with tags' => [self::MEDIAWIKI . '$wgMainCacheType = "memcached-php"; header("Surrogate-Key: news"); echo "page";', false];
        yield 'a write' => [self::MEDIAWIKI . '$wgMainCacheType = "memcached-php"; echo "page";', false, 'POST'];
        yield 'several parts' => ['echo "one"; flush(); eval("namespace Predis; class Client {}"); echo "two";', false];
    }

    public function testMediaWikiWithApcu(): void
    {
        $extension = getenv('PAGEWELL_APCU') ?: ini_get('extension_dir') . '/apcu.so';
        if (!is_file($extension)) {
            self::markTestSkipped("$extension is not there: apt-get install php-apcu");
        }
        $ini = (extension_loaded('apcu') ? '' : "extension = $extension\n") . 'apc.enabled = 1';
        self::assertTrue($this->isRefused(self::MEDIAWIKI . '$wgMainCacheType = 3; echo "page";', $ini));
        self::assertTrue($this->isRefused(self::MEDIAWIKI . '$wgMainCacheType = 0; echo "page";', $ini), 'it uses APCu for itself');
        self::assertFalse($this->isRefused('echo "page";', $ini), 'an extension that is there says nothing');
    }

    private function isRefused(string $script, string $ini, string $method = 'GET'): bool
    {
        file_put_contents("$this->directory/page.php", "<?php $script");
        file_put_contents("$this->directory/ini/test.ini", 'auto_prepend_file = ' . realpath(__DIR__ . '/../../capture/hidden-reads.php') . "\n$ini\n");
        [$content, $fields] = PlainServer::ask($this->directory, ['PHP_INI_SCAN_DIR' => ":$this->directory/ini"], $method, '/page.php');
        self::assertStringNotContainsString('Warning', $content);
        return ($fields['x-pagewell-refusal'] ?? []) === ['reads-hidden'];
    }
}
