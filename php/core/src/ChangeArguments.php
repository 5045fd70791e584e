<?php

/**
 * The arguments of changed(): a kind, an id, and the parents by name.
 *
 *     changed('comments', 17, news: 4)     comment 17, which belongs to news 4
 *     changed('comments', 17, id: 4)       the same, with a parent of the kind `id`
 *     changed(kind: 'comments', id: 17)    without positions `kind` and `id` are the first two
 *
 * An id that is null or empty is unknown: every page with rows of its kind counts as changed.
 *
 * A parent may have any name, so changed() has no named PHP parameters.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidTag;

/**
 * The parsed arguments of one call of changed().
 *
 * @internal
 */
final class ChangeArguments
{
    /**
     * @param string                         $kind    the kind that was written
     * @param int|string|null                $id      the row; null if unknown
     * @param array<string, int|string|null> $parents kind => id of the parents; null if unknown
     */
    private function __construct(
        public readonly string $kind,
        public readonly int|string|null $id,
        public readonly array $parents,
    ) {
    }

    /**
     * @param array<int|string, int|string|null> $arguments as PHP collects them
     *
     * @throws InvalidTag the kind is missing, or a parent has no kind
     */
    public static function of(array $arguments): self
    {
        $positional = array_values(array_filter($arguments, is_int(...), ARRAY_FILTER_USE_KEY));
        $parents = array_diff_key($arguments, $positional);
        if ($positional === []) {
            [$positional, $parents] = [[$parents['kind'] ?? null, $parents['id'] ?? null], array_diff_key($parents, ['kind' => 0, 'id' => 0])];
        }
        [$kind, $id] = $positional + [1 => null];
        if (!is_string($kind)) {
            throw new InvalidTag("changed(): the first argument is the kind that was written, a string, as in changed('news', 4).");
        }
        if (count($positional) > 2) {
            throw new InvalidTag("changed('$kind', …, $positional[2]): say what $positional[2] is the id of, as in changed('comments', news: 4).");
        }
        // Whether an id is there depends on the data. The write is done, so it is no reason for an error.
        $ids = [];
        foreach ($parents as $name => $shown) {
            $ids[(string) $name] = $shown === '' ? null : $shown;
        }
        return new self($kind, $id === '' ? null : $id, $ids);
    }

    /**
     * Formats the call as the program wrote it, for the message of an exception.
     *
     * @param array<int|string, int|string|null> $arguments as PHP collects them
     */
    public static function call(string $function, array $arguments): string
    {
        return sprintf("%s('%s')", $function, $arguments[0] ?? $arguments['kind'] ?? '');
    }
}
