<?php

/**
 * Finds controllers: the classes of a directory, or those of a table of routes.
 *
 * PHP files are read as text first. A file is loaded only if the class loader cannot load its
 * classes. A table of routes is a PHP file that returns a list of `[address, controller]`.
 */

declare(strict_types=1);

namespace Pagewell\Dependencies;

/**
 * Finds controllers in files.
 *
 * @internal
 */
final class Finder
{
    /** Maximum number of files. */
    private const FILES_MAX = 20_000;

    /**
     * Returns all controllers below a directory.
     *
     * @throws \RuntimeException there are too many files, or one cannot be loaded
     */
    public static function inDirectory(string $directory): DependencyList
    {
        $files = [];
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($directory, \FilesystemIterator::SKIP_DOTS)) as $file) {
            if ($file->getExtension() === 'php') {
                $files[] = $file->getPathname();
            }
            if (count($files) > self::FILES_MAX) {
                throw new \RuntimeException('There are more than ' . self::FILES_MAX . " PHP files in $directory: name the directory of the controllers.");
            }
        }
        sort($files);
        $controllers = [];
        foreach ($files as $file) {
            foreach (self::classes((string) file_get_contents($file)) as $class) {
                if (!class_exists($class)) {
                    require_once $file;
                }
                $controllers += class_exists($class, false) ? Reader::controllers($class) : [];
            }
        }
        return new DependencyList($controllers);
    }

    /**
     * Returns the controllers of a table of routes, with their URLs.
     *
     * @param iterable<array{string, string}> $routes address, and `Class` or `Class::method`
     */
    public static function inRoutes(iterable $routes): DependencyList
    {
        $pages = [];
        foreach ($routes as [$address, $controller]) {
            $pages[strtr(ltrim($controller, '\\'), ['@' => '::'])][] = $address;
        }
        ksort($pages);
        $controllers = [];
        foreach ($pages as $controller => $addresses) {
            $controllers[$controller] = Reader::of($controller)->at(...$addresses);
        }
        return new DependencyList($controllers);
    }

    /** @return list<string> the classes that a file declares */
    private static function classes(string $code): array
    {
        $namespace = '';
        $classes = [];
        $tokens = array_values(array_filter(\PhpToken::tokenize($code), static fn (\PhpToken $token): bool => !$token->isIgnorable()));
        foreach ($tokens as $at => $token) {
            $next = $tokens[$at + 1] ?? null;
            if ($token->is(T_NAMESPACE) && $next?->is([T_STRING, T_NAME_QUALIFIED])) {
                $namespace = "{$next->text}\\";
            } elseif ($token->is(T_CLASS) && $next?->is(T_STRING) && !($tokens[$at - 1] ?? null)?->is([T_DOUBLE_COLON, T_NEW])) {
                $classes[] = $namespace . $next->text;
            }
        }
        return $classes;
    }
}
