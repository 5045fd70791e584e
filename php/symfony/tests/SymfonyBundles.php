<?php

/**
 * Loads the bundles of Symfony that Debian has, for SymfonyApplication.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

final class SymfonyBundles
{
    /** Whether they are installed; then their classes can be used. */
    public static function load(): bool
    {
        foreach (['Bundle/FrameworkBundle', 'Bundle/SecurityBundle', 'Bundle/TwigBundle', 'Bundle/WebProfilerBundle', 'Component/Console'] as $package) {
            if (stream_resolve_include_path("Symfony/$package/autoload.php") === false) {
                return false;
            }
            require_once "Symfony/$package/autoload.php";
        }
        // Symfony 6 asks Composer what is installed.
        class_exists(\Composer\InstalledVersions::class) || require_once 'Composer/InstalledVersions.php';
        // Without the autoloader of its package, which needs all transports.
        spl_autoload_register(static function (string $class): void {
            $file = str_starts_with($class, 'Symfony\Component\Messenger\\') ? stream_resolve_include_path(strtr($class, '\\', '/') . '.php') : false;
            $file === false || require_once $file;
        });
        return true;
    }
}
