<?php

/**
 * `pagewell-php dependencies`: prints the dependency list, and fails if a controller has no
 * declaration.
 *
 * Exit codes: 0 all controllers have a declaration · 1 some have none · 2 wrong usage · 3 a file or
 * a class cannot be read.
 */

declare(strict_types=1);

namespace Pagewell\Dependencies;

/**
 * The command line.
 *
 * @internal
 */
final class Command
{
    private const USAGE = <<<'TEXT'
        usage: pagewell-php dependencies [options] [DIR]

        Prints which data which controllers, and so which pages, are made from, and who writes it.
        DIR is where the controllers are; the first of src/Controllers, src/Controller and
        app/Http/Controllers when not given.

          --json            for other programs
          --compile FILE    also write the list as PHP, for DependencyList::useCompiled()
          --routes FILE     a PHP file that returns a list of [address, controller], instead of DIR
          --autoload FILE   what loads the classes [default: vendor/autoload.php or autoload.php, here
                            or above DIR]

        exit codes: 0 all declared · 1 a controller is undeclared · 2 wrong usage · 3 a fault

        TEXT;

    private const PLACES = ['src/Controllers', 'src/Controller', 'app/Http/Controllers'];

    /**
     * @param list<string> $arguments without the program's name
     * @param resource     $out
     * @param resource     $err
     *
     * @return int the exit code
     */
    public static function run(array $arguments, $out, $err): int
    {
        $options = self::options($arguments);
        if ($options === null || isset($options['help'])) {
            fwrite($options === null ? $err : $out, self::USAGE);
            return $options === null ? 2 : 0;
        }
        try {
            return self::dependencies($options, $out, $err);
        } catch (\Throwable $fault) {
            fwrite($err, "pagewell-php: {$fault->getMessage()}\n");
            return 3;
        }
    }

    /**
     * @param array<string, string> $options
     * @param resource              $out
     * @param resource              $err
     */
    private static function dependencies(array $options, $out, $err): int
    {
        $directory = $options['dir'] ?? self::firstOf(self::PLACES) ?? '.';
        $loader = $options['autoload'] ?? self::loader($options['routes'] ?? $directory);
        if ($loader !== null) {
            require_once $loader;
        }
        $list = isset($options['routes']) ? Finder::inRoutes(require $options['routes']) : Finder::inDirectory($directory);
        if (isset($options['compile']) && file_put_contents($options['compile'], $list->compile()) === false) {
            throw new \RuntimeException("{$options['compile']} cannot be written.");
        }
        fwrite($out, isset($options['json']) ? $list->json() : $list->text());
        $undeclared = $list->undeclared();
        if ($undeclared === []) {
            return 0;
        }
        fwrite($err, 'pagewell-php: undeclared: ' . implode(', ', $undeclared) . "\nDeclare each: #[Uses(…)] for a page, #[Writes(…)] for a write, or #[NotCached('why')].\n");
        return 1;
    }

    /**
     * @param list<string> $arguments
     *
     * @return array<string, string>|null null if they are invalid
     */
    private static function options(array $arguments): ?array
    {
        if (array_intersect($arguments, ['--help', '-h']) !== []) {
            return ['help' => ''];
        }
        if (array_shift($arguments) !== 'dependencies') {
            return null;
        }
        $options = [];
        while ($arguments !== []) {
            [$name, $value] = explode('=', (string) array_shift($arguments), 2) + [1 => null];
            if (in_array($name, ['--compile', '--routes', '--autoload'], true)) {
                $options[substr($name, 2)] = $value ?? array_shift($arguments) ?? '';
            } elseif ($name === '--json' && $value === null) {
                $options['json'] = '';
            } elseif (!str_starts_with($name, '-') && $value === null && !isset($options['dir'])) {
                $options['dir'] = $name;
            } else {
                return null;
            }
        }
        return in_array('', array_diff_key($options, ['json' => '']), true) ? null : $options;
    }

    private static function loader(string $from): ?string
    {
        $places = [getcwd() ?: '.'];
        for ($at = realpath($from) ?: '.'; count($places) < 8 && $at !== dirname($at); $at = dirname($at)) {
            $places[] = $at;
        }
        foreach (['vendor/autoload.php', 'autoload.php'] as $file) {
            $found = self::firstOf(array_map(static fn (string $place): string => "$place/$file", $places));
            if ($found !== null) {
                return $found;
            }
        }
        return null;
    }

    /** @param list<string> $places */
    private static function firstOf(array $places): ?string
    {
        foreach ($places as $place) {
            if (file_exists($place)) {
                return $place;
            }
        }
        return null;
    }
}
