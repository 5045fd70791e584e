<?php

/**
 * The dependency list: data → controllers that read it, with their pages, and controllers that
 * write it.
 *
 * It is created from the controllers of a directory, or from a table of routes. `compile()` writes
 * it as a PHP file for the opcode cache, so that no attribute is read while a page is rendered. The
 * pages of a controller that is missing in this file are not cached.
 */

declare(strict_types=1);

namespace Pagewell\Dependencies;

/** The declarations of all controllers. */
final class DependencyList
{
    /** @var array<string, Statement>|null the declarations for usesOf(); null: read them from the code */
    private static ?array $compiled = null;

    /** @param array<string, Statement> $controllers by name */
    public function __construct(private readonly array $controllers)
    {
    }

    /** Makes usesOf() use this file of compile(); null: the code. */
    public static function useCompiled(?string $file): void
    {
        $rows = $file === null ? null : require $file;
        self::$compiled = $rows === null ? null : array_map(static fn (array $row): Statement => new Statement(...$row), $rows);
    }

    /** Returns the declarations of a controller, `Class` or `Class::method`. */
    public static function statement(string $controller): Statement
    {
        if (self::$compiled === null) {
            return Reader::of($controller);
        }
        $class = explode('::', $controller, 2)[0];
        return self::$compiled[$controller] ?? self::$compiled["$class::__invoke"] ?? self::$compiled[$class] ?? new Statement();
    }

    /** @return list<string> the controllers without a declaration */
    public function undeclared(): array
    {
        return array_keys(array_filter($this->controllers, static fn (Statement $one): bool => !$one->isDeclared()));
    }

    /**
     * @return array<string, array{read_by: list<array<string, mixed>>, written_by: list<array<string, mixed>>}> by kind
     */
    public function kinds(): array
    {
        $kinds = [];
        foreach ($this->controllers as $controller => $one) {
            foreach (['read_by' => $one->notCached === null ? $one->uses : [], 'written_by' => $one->writes] as $side => $names) {
                foreach ($names as $name) {
                    $kind = explode(':', $name, 2)[0];
                    $kinds[$kind] ??= ['read_by' => [], 'written_by' => []];
                    $row = ['controller' => $controller, 'name' => $name, 'pages' => $one->pages];
                    $kinds[$kind][$side][] = $side === 'read_by' && $one->freshFor !== null ? $row + ['fresh_for' => $one->freshFor] : $row;
                }
            }
        }
        ksort($kinds);
        return $kinds;
    }

    /** Returns the list as JSON, for other programs. */
    public function json(): string
    {
        $list = [
            'data' => (object) $this->kinds(),
            'by_time_alone' => $this->byTimeAlone(),
            'not_cached' => (object) $this->notCached(),
            'undeclared' => $this->undeclared(),
        ];
        return json_encode($list, JSON_THROW_ON_ERROR | JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE) . "\n";
    }

    /** Returns the list as text, for people. */
    public function text(): string
    {
        $lines = [];
        foreach ($this->kinds() as $kind => $sides) {
            $lines[] = (string) $kind;
            foreach ($sides['read_by'] as $row) {
                $time = isset($row['fresh_for']) ? "{$row['fresh_for']} s at most" : '';
                $lines[] = self::row($row['name'], $row['controller'], $row['pages'], $time);
            }
            foreach ($sides['written_by'] as $row) {
                $lines[] = self::row("{$row['name']}, written", $row['controller'], $row['pages'], '');
            }
        }
        $byTime = array_map(fn (string $one): string => self::row("{$this->controllers[$one]->freshFor} s", $one, $this->controllers[$one]->pages, ''), $this->byTimeAlone());
        $never = array_map(static fn (string $one, string $why): string => self::row('', $one, [], $why), array_keys($this->notCached()), $this->notCached());
        $undeclared = array_map(fn (string $one): string => self::row('', $one, $this->controllers[$one]->pages, ''), $this->undeclared());
        foreach (['kept by time alone' => $byTime, 'not cached' => $never, 'undeclared, so not cached' => $undeclared] as $title => $rows) {
            array_push($lines, ...($rows === [] ? [] : [$title, ...$rows]));
        }
        return implode("\n", $lines) . "\n";
    }

    /** Returns the list as a PHP file for useCompiled(). */
    public function compile(): string
    {
        $rows = array_map(static fn (Statement $one): array => array_filter(get_object_vars($one), static fn (mixed $value): bool => $value !== [] && $value !== null), $this->controllers);
        return "<?php\n\n/** Made by `pagewell-php dependencies --compile`; made anew when a controller changes. */\n\nreturn " . var_export($rows, true) . ";\n";
    }

    /** @return list<string> */
    private function byTimeAlone(): array
    {
        return array_keys(array_filter($this->controllers, static fn (Statement $one): bool => $one->uses === [] && $one->freshFor !== null && $one->notCached === null));
    }

    /** @return array<string, string> controller → why */
    private function notCached(): array
    {
        return array_filter(array_map(static fn (Statement $one): ?string => $one->notCached, $this->controllers), static fn (?string $why): bool => $why !== null);
    }

    /** @param list<string> $pages */
    private static function row(string $name, string $controller, array $pages, string $remark): string
    {
        return rtrim(sprintf('    %-24s %-40s %s', $name, $controller, implode('  ', [...$pages, ...($remark === '' ? [] : ["($remark)"])])));
    }
}
