<?php

/**
 * All packages have the version of the program. The WordPress plugin is installed without the
 * library, and has a copy of the reasons against storing a page.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use PHPUnit\Framework\TestCase;

final class PackagesTest extends TestCase
{
    public function testThePluginHasTheSameReasons(): void
    {
        $library = (string) file_get_contents(__DIR__ . '/../../core/src/Refusal.php');
        $plugin = (string) file_get_contents(__DIR__ . '/../../wordpress/pagewell/src/Refusal.php');

        self::assertStringContainsString("case SignedIn = 'signed-in';", $library);
        self::assertSame(str_replace('namespace Pagewell;', 'namespace Pagewell\WordPress;', $library), $plugin);
    }

    public function testEachPackageHasTheVersionOfTheProgram(): void
    {
        preg_match('/^version = "([0-9.]+)"$/m', (string) file_get_contents(__DIR__ . '/../../../Cargo.toml'), $program);
        $versions = [];
        foreach (['core', 'client', 'bridge', 'laravel', 'symfony'] as $package) {
            $composer = json_decode((string) file_get_contents(__DIR__ . "/../../$package/composer.json"), true, 8, JSON_THROW_ON_ERROR);
            $versions[$composer['name']] = $composer['version'];
        }
        self::assertSame(array_fill_keys(['pagewell/core', 'pagewell/client', 'pagewell/bridge', 'pagewell/laravel', 'pagewell/symfony'], $program[1] ?? null), $versions);
    }
}
