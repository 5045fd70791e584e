<?php

/**
 * A plugin of this repository with the copy of the core that it is installed with (`php/build-plugin`).
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class BuiltPlugin
{
    private const SCRIPT = __DIR__ . '/../../build-plugin';

    /** @var array<string, string> paths by application */
    private static array $built = [];

    /** Installs it into a directory of an application. */
    public static function install(string $application, string $directory): void
    {
        exec(escapeshellarg(self::SCRIPT) . ' ' . escapeshellarg($application) . ' ' . escapeshellarg($directory) . ' 2>&1', $printed, $status);
        $status === 0 || throw new \RuntimeException(implode("\n", $printed));
    }

    /** Returns the path of one that all tests of this process read; it is removed at the end. */
    public static function path(string $application): string
    {
        if (!isset(self::$built[$application])) {
            $directory = sys_get_temp_dir() . '/pagewell-plugin-' . bin2hex(random_bytes(6));
            mkdir($directory, 0755);
            register_shutdown_function(static fn () => exec('rm -rf -- ' . escapeshellarg($directory)));
            self::install($application, $directory);
            self::$built[$application] = (glob("$directory/*") ?: [])[0];
        }
        return self::$built[$application];
    }
}
