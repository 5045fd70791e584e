<?php

/**
 * As much of WP-CLI as the plugin uses, written from its documentation: Debian has no package of it.
 *
 * `WP_CLI::run('pagewell', 'purge', $arguments, $options)` calls a command as `wp` does.
 */

declare(strict_types=1);

define('WP_CLI', true);

class WP_CLI
{
    /** @var array<string, class-string> */
    private static array $commands = [];

    public static function add_command(string $name, string $class): bool
    {
        self::$commands[$name] = $class;
        return true;
    }

    public static function run(string $name, string $method, array $arguments = [], array $options = []): void
    {
        (new self::$commands[$name]())->$method($arguments, $options);
    }

    public static function line(string $text = ''): void
    {
        echo "$text\n";
    }

    public static function success(string $text): void
    {
        echo "Success: $text\n";
    }

    public static function warning(string $text): void
    {
        echo "Warning: $text\n";
    }

    /** Ends the command with status 1; here it prints it. */
    public static function error(string $text): never
    {
        echo "Error: $text\n";
        exit;
    }
}
