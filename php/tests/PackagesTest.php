<?php

/**
 * All packages have the version of the program. The plugins for WordPress and MediaWiki are
 * installed without the library, with a copy of the core.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use Pagewell\Tests\Support\BuiltPlugin;
use PHPUnit\Framework\TestCase;

final class PackagesTest extends TestCase
{
    public function testThePluginsAreInstalledWithTheCoreInNamespacesOfTheirOwn(): void
    {
        $core = __DIR__ . '/../core/src';
        foreach (['wordpress' => 'WordPress', 'mediawiki' => 'MediaWiki'] as $application => $namespace) {
            $plugin = BuiltPlugin::path($application);
            foreach ([...glob("$core/*.php") ?: [], ...glob("$core/*/*.php") ?: []] as $class) {
                $copy = (string) file_get_contents("$plugin/src/Core/" . substr($class, strlen("$core/")));
                self::assertStringContainsString("\nnamespace Pagewell\\$namespace\\Core", $copy);
                self::assertStringNotContainsString('Pagewell\\Core', $copy);
            }
        }
        self::assertStringContainsString("\nuse Pagewell\\WordPress\\Core\\Exception\\PagewellUnreachable;\n", (string) file_get_contents(BuiltPlugin::path('wordpress') . '/src/Core/SocketClient.php'));
    }

    public function testAnInstalledPluginReplacesTheEarlierOne(): void
    {
        $plugin = BuiltPlugin::path('wordpress');
        file_put_contents("$plugin/src/OfAnEarlierVersion.php", '<?php');
        $files = glob("$plugin/*");
        BuiltPlugin::install('wordpress', dirname($plugin));
        self::assertFileDoesNotExist("$plugin/src/OfAnEarlierVersion.php");
        self::assertSame($files, glob("$plugin/*"));
        self::assertSame(['.', '..', 'pagewell'], scandir(dirname($plugin)));
    }

    /** The classes of the core get the environment and the request as arguments (docs/decisions/php-integrations.md). */
    public function testTheCoreReadsNoGlobals(): void
    {
        $core = __DIR__ . '/../core/src';
        $readers = [];
        foreach ([...glob("$core/*.php") ?: [], ...glob("$core/*/*.php") ?: []] as $class) {
            foreach (token_get_all((string) file_get_contents($class)) as $token) {
                $text = is_array($token) && in_array($token[0], [T_VARIABLE, T_STRING, T_NAME_FULLY_QUALIFIED], true) ? ltrim($token[1], '\\') : '';
                if (preg_match('/^(\$_[A-Z]+|\$GLOBALS|getenv|apache_request_headers|getallheaders|filter_input|headers_list)$/D', $text) === 1) {
                    $readers[] = basename($class) . ": $text";
                }
            }
        }
        self::assertSame([], array_diff($readers, ['Front.php: $_SERVER']));
        self::assertContains('Front.php: $_SERVER', $readers);
    }

    public function testEachSuiteIsRun(): void
    {
        preg_match_all('/<testsuite name="([a-z]+)"/', (string) file_get_contents(__DIR__ . '/../phpunit.xml'), $suites);
        $others = implode(',', array_diff($suites[1], ['wordpress']));
        self::assertStringContainsString("\nPHP_SUITES = $others\n", (string) file_get_contents(__DIR__ . '/../../Makefile'));
        self::assertStringContainsString("--testsuite $others;", (string) file_get_contents(__DIR__ . '/../../scripts/compat'));
    }

    public function testEachPackageIsTestedAloneByComposerTest(): void
    {
        foreach (glob(__DIR__ . '/../*/composer.json') ?: [] as $file) {
            $suite = basename(dirname($file));
            $scripts = json_decode((string) file_get_contents($file), true)['scripts'] ?? [];
            self::assertSame(['test' => "phpunit --configuration .. --testsuite $suite"], $scripts, $file);
        }
    }

    public function testTheTemplateOfTranslationsHasTheTextsOfThePlugin(): void
    {
        $plugin = __DIR__ . '/../wordpress/pagewell';
        $made = shell_exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(__DIR__ . '/../wordpress/bin/make-pot') . ' ' . escapeshellarg($plugin));
        self::assertStringContainsString('msgid "Purge all pages"', (string) $made);
        self::assertSame($made, (string) file_get_contents("$plugin/languages/pagewell.pot"), 'run: php php/wordpress/bin/make-pot php/wordpress/pagewell > php/wordpress/pagewell/languages/pagewell.pot');
    }

    public function testEachPackageHasTheVersionOfTheProgram(): void
    {
        preg_match('/^version = "([0-9.]+)"$/m', (string) file_get_contents(__DIR__ . '/../../Cargo.toml'), $program);
        $versions = [];
        foreach (['core', 'client', 'bridge', 'laravel', 'symfony'] as $package) {
            $composer = json_decode((string) file_get_contents(__DIR__ . "/../$package/composer.json"), true, 8, JSON_THROW_ON_ERROR);
            $versions[$composer['name']] = $composer['version'];
        }
        preg_match("/^const VERSION = '([0-9.]+)';$/m", (string) file_get_contents(__DIR__ . '/../wordpress/pagewell/pagewell.php'), $plugin);
        self::assertSame($program[1] ?? null, $plugin[1] ?? '');
        $extension = json_decode((string) file_get_contents(__DIR__ . '/../mediawiki/Pagewell/extension.json'), true, 8, JSON_THROW_ON_ERROR);
        self::assertSame($program[1] ?? null, $extension['version']);
        self::assertSame(array_fill_keys(['pagewell/core', 'pagewell/client', 'pagewell/bridge', 'pagewell/laravel', 'pagewell/symfony'], $program[1] ?? null), $versions);
    }
}
