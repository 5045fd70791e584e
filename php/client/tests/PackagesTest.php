<?php

/**
 * All packages have the version of the program. The plugins for WordPress and MediaWiki are
 * installed without the library, and have copies of some classes of the core.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use PHPUnit\Framework\TestCase;

final class PackagesTest extends TestCase
{
    public function testThePluginsHaveCopiesOfTheCore(): void
    {
        exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(__DIR__ . '/../../core/bin/copy-core') . ' --check', $wrong, $status);
        self::assertSame([[], 0], [$wrong, $status]);
        $copy = (string) file_get_contents(__DIR__ . '/../../wordpress/pagewell/src/Core/SocketClient.php');
        self::assertStringContainsString("\nnamespace Pagewell\\WordPress\\Core;\n", $copy);
        self::assertStringContainsString("\nuse Pagewell\\WordPress\\Core\\Exception\\PagewellUnreachable;\n", $copy);
    }

    public function testTheTemplateOfTranslationsHasTheTextsOfThePlugin(): void
    {
        $plugin = __DIR__ . '/../../wordpress/pagewell';
        $made = shell_exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg(__DIR__ . '/../../wordpress/bin/make-pot') . ' ' . escapeshellarg($plugin));
        self::assertStringContainsString('msgid "Purge all pages"', (string) $made);
        self::assertSame($made, (string) file_get_contents("$plugin/languages/pagewell.pot"), 'run: php php/wordpress/bin/make-pot php/wordpress/pagewell > php/wordpress/pagewell/languages/pagewell.pot');
    }

    public function testEachPackageHasTheVersionOfTheProgram(): void
    {
        preg_match('/^version = "([0-9.]+)"$/m', (string) file_get_contents(__DIR__ . '/../../../Cargo.toml'), $program);
        $versions = [];
        foreach (['core', 'client', 'bridge', 'laravel', 'symfony'] as $package) {
            $composer = json_decode((string) file_get_contents(__DIR__ . "/../../$package/composer.json"), true, 8, JSON_THROW_ON_ERROR);
            $versions[$composer['name']] = $composer['version'];
        }
        preg_match("/^const VERSION = '([0-9.]+)';$/m", (string) file_get_contents(__DIR__ . '/../../wordpress/pagewell/pagewell.php'), $plugin);
        self::assertSame($program[1] ?? null, $plugin[1] ?? '');
        $extension = json_decode((string) file_get_contents(__DIR__ . '/../../mediawiki/Pagewell/extension.json'), true, 8, JSON_THROW_ON_ERROR);
        self::assertSame($program[1] ?? null, $extension['version']);
        self::assertSame(array_fill_keys(['pagewell/core', 'pagewell/client', 'pagewell/bridge', 'pagewell/laravel', 'pagewell/symfony'], $program[1] ?? null), $versions);
    }
}
