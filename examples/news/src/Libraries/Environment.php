<?php

/**
 * The external settings of the site: environment variables, or FastCGI params of the same name.
 */

declare(strict_types=1);

namespace News\Libraries;

/** Reads settings. */
final class Environment
{
    /** The setting of this name, or $otherwise where there is none. */
    public static function value(string $name, string $otherwise): string
    {
        $value = $_SERVER[$name] ?? getenv($name);
        return is_string($value) ? $value : $otherwise;
    }
}
