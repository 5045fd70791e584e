<?php

/**
 * Symfony's component of this name, without the packages that it needs only for its cache.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class ExpressionLanguage
{
    public static function load(): void
    {
        spl_autoload_register(static function (string $class): void {
            $file = str_starts_with($class, 'Symfony\Component\ExpressionLanguage\\') ? stream_resolve_include_path(strtr($class, '\\', '/') . '.php') : false;
            $file === false || require_once $file;
        });
        foreach (['Symfony/Component/Cache', 'Symfony/Contracts/Cache'] as $name) {
            stream_resolve_include_path("$name/autoload.php") === false || require_once "$name/autoload.php";
        }
    }
}
