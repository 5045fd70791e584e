<?php

/**
 * The declarations of one controller: created by Reader from its attributes, or from a compiled
 * list.
 *
 * A value object. Applied to a request, it calls uses() and freshFor(), and replaces `{id}` by the
 * parameters of the route.
 */

declare(strict_types=1);

namespace Pagewell\Dependencies;

use Pagewell\Core\Exception\UnknownParameter;
use Pagewell\RequestScope;
use Pagewell\RowKey;

/**
 * The declarations of one controller.
 *
 * @internal
 */
final class Statement
{
    /**
     * @param list<string> $uses      `news`, `news:{id}`
     * @param list<string> $writes    the same
     * @param int|null     $freshFor  seconds
     * @param string|null  $notCached the reason
     * @param list<string> $pages     URLs
     */
    public function __construct(
        public readonly array $uses = [],
        public readonly array $writes = [],
        public readonly ?int $freshFor = null,
        public readonly ?string $notCached = null,
        public readonly array $pages = [],
    ) {
    }

    /** Whether it declares if its pages are cached. */
    public function isDeclared(): bool
    {
        return $this->uses !== [] || $this->writes !== [] || $this->freshFor !== null || $this->notCached !== null;
    }

    /** Returns the same with these URLs. */
    public function at(string ...$pages): self
    {
        return new self($this->uses, $this->writes, $this->freshFor, $this->notCached, array_values($pages));
    }

    /**
     * Combines the declarations of a class and its method: dependencies add up, and the method's
     * TTL or NotCached takes precedence.
     */
    public function and(self $method): self
    {
        $kept = $method->uses !== [] || $method->freshFor !== null;
        return new self(
            array_values(array_unique([...$this->uses, ...$method->uses])),
            array_values(array_unique([...$this->writes, ...$method->writes])),
            $method->freshFor ?? $this->freshFor,
            $method->notCached ?? ($kept ? null : $this->notCached),
            $method->pages === [] ? $this->pages : $method->pages,
        );
    }

    /**
     * Declares it for the running request.
     *
     * @param array<string, mixed> $parameters of the route, by name: ids, or the rows they were turned into
     *
     * @throws UnknownParameter a name in braces is missing
     */
    public function apply(RequestScope $scope, array $parameters): void
    {
        if ($this->notCached !== null) {
            $scope->notCached();
            return;
        }
        $named = [];
        // At /news/04/ an application may show news 4, so the page depends on both spellings.
        foreach ([$parameters, array_map(self::asNumber(...), $parameters)] as $read) {
            $named = [...$named, ...array_map(static fn (string $name): array => self::filled($name, $read), $this->uses)];
        }
        foreach ($named as $arguments) {
            $scope->uses(...$arguments);
        }
        if ($this->freshFor !== null) {
            $scope->freshFor($this->freshFor);
        }
    }

    /**
     * @param array<string, mixed> $parameters
     *
     * @return array{0: string, 1?: string} the kind, and an id if there is one
     */
    private static function filled(string $name, array $parameters): array
    {
        [$kind, $id] = explode(':', $name, 2) + [1 => null];
        if ($id === null) {
            return [$kind];
        }
        return [$kind, (string) preg_replace_callback(
            '/\{(\w+)\}/',
            static fn (array $found): string => self::id($parameters[$found[1]] ?? null)
                ?? throw new UnknownParameter(sprintf("#[Uses('%s')]: the route has no parameter '%s' with an id. Its parameters are: %s.", $name, $found[1], implode(', ', array_keys($parameters)) ?: 'none')),
            $id,
        )];
    }

    /** Converts a parameter as PHP and MySQL do where they expect a number: `04`, ` 4`, `4-the-ferry`. */
    private static function asNumber(mixed $value): mixed
    {
        return is_string($value) && preg_match('/^\s*[+-]?[0-9]/', $value) === 1 ? (string) (int) $value : $value;
    }

    /** Returns the key of a row that a framework has already fetched. */
    private static function id(mixed $value): ?string
    {
        $id = is_object($value) ? RowKey::of($value) : $value;
        return is_int($id) || (is_string($id) && $id !== '') ? (string) $id : null;
    }
}
