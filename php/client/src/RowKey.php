<?php

/**
 * Rows that are objects, such as entities of Doctrine, where an id is wanted: uses('news', $news).
 *
 *     the object has                              its id
 *     getRouteKey() and getKey()                  getKey(): a model of Eloquent
 *     getId(), getKey() or a public `id`          that, the first of them
 *     none of these: a UUID of Symfony or Ramsey  its text
 *     a case of a backed enumeration              its value
 *
 * An id that is itself an object counts by the same rules. The string form of any other object is no id: it
 * may be a title, which changes. Before the first flush() and after a removal,
 * Doctrine's entities have none: then a page cannot depend on it, and a change is one of an unknown row.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Tag;

/**
 * Turns objects into ids.
 *
 * @internal
 */
final class RowKey
{
    /** How many objects an id may lie below each other. */
    private const DEPTH = 3;

    private function __construct()
    {
    }

    /**
     * The ids of uses(), of rows or as they are.
     *
     * @param array<int|string, int|string|object> $ids
     *
     * @return array<int|string, int|string>
     *
     * @throws InvalidTag an object has no id
     */
    public static function ids(string $kind, array $ids): array
    {
        foreach ($ids as $name => $id) {
            if (is_object($id)) {
                $hint = self::hasKey($id) ? 'this %s has no id yet. Save it first' : 'a %s has no id that can be read. Pass the id itself';
                $ids[$name] = self::of($id) ?? throw new InvalidTag(sprintf("uses('%s', …): $hint.", $kind, $id::class));
            }
        }
        return $ids;
    }

    /**
     * The arguments of changed(), with ids in place of rows; null for a row without one.
     *
     * @param array<int|string, int|string|object|null> $said
     *
     * @return array<int|string, int|string|null>
     *
     * @throws InvalidTag the kind is an object or has a colon, or an object cannot have an id
     */
    public static function arguments(array $said): array
    {
        $kind = $said[0] ?? $said['kind'] ?? '';
        if (is_object($kind)) {
            $class = $kind::class;
            throw new InvalidTag("changed(): the first argument is the kind that was written, a string, and not a $class. The row is the second: changed('news', \$news).");
        }
        Tag::kind('changed', (string) $kind);
        foreach ($said as $name => $value) {
            if (is_object($value)) {
                $said[$name] = self::of($value);
                if ($said[$name] === null && !self::hasKey($value)) {
                    throw new InvalidTag(sprintf("changed('%s', …): a %s has no id that can be read. Pass the id itself.", $kind, $value::class));
                }
            }
        }
        return $said;
    }

    /** Returns the id of an object; null if it has none. */
    public static function of(object $row): int|string|null
    {
        return self::hasKey($row) ? self::own($row) : self::text($row);
    }

    /** Whether it is a row with an id, or a UUID. */
    public static function isRow(object $value): bool
    {
        try {
            return self::of($value) !== null;
        } catch (\Throwable) {
            // Any object can be an argument of a controller, and its getId() may throw.
            return false;
        }
    }

    /** Whether the class has an id that can be read. */
    public static function hasKey(object $row): bool
    {
        return $row instanceof \BackedEnum || self::answers($row, 'getId') || self::answers($row, 'getKey') || isset($row->id)
            || (property_exists($row, 'id') && (new \ReflectionProperty($row, 'id'))->isPublic());
    }

    private static function own(object $row, int $depth = 1): int|string|null
    {
        $isModel = self::answers($row, 'getRouteKey') && self::answers($row, 'getKey');
        try {
            $id = match (true) {
                $row instanceof \BackedEnum => $row->value,
                !$isModel && self::answers($row, 'getId') => $row->getId(),
                self::answers($row, 'getKey') => $row->getKey(),
                default => $row->id ?? null,
            };
        } catch (\Error) {
            // A typed property without a value: the entity is not saved yet, or removed.
            return null;
        }
        if (is_object($id)) {
            return $depth < self::DEPTH && self::hasKey($id) ? self::own($id, $depth + 1) : self::text($id);
        }
        return is_int($id) || (is_string($id) && $id !== '') ? $id : null;
    }

    private static function text(object $value): ?string
    {
        return $value instanceof \Symfony\Component\Uid\AbstractUid || $value instanceof \Ramsey\Uuid\UuidInterface ? (string) $value : null;
    }

    /** Whether it declares this method for everybody; one that __call() makes up does not count. */
    private static function answers(object $row, string $method): bool
    {
        return method_exists($row, $method) && is_callable([$row, $method]);
    }
}
