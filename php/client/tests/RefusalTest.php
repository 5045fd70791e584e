<?php

/**
 * The WordPress plugin, which is installed by itself, has a copy of the reasons of the library.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use PHPUnit\Framework\TestCase;

final class RefusalTest extends TestCase
{
    public function testThePluginHasTheSameReasons(): void
    {
        $library = (string) file_get_contents(__DIR__ . '/../src/Refusal.php');
        $plugin = (string) file_get_contents(__DIR__ . '/../../wordpress/pagewell/src/Refusal.php');

        self::assertStringContainsString("case SignedIn = 'signed-in';", $library);
        self::assertSame(str_replace('namespace Pagewell;', 'namespace Pagewell\WordPress;', $library), $plugin);
    }
}
