<?php

/**
 * Declares at a controller which data it writes, only for the dependency list of readers and
 * writers.
 *
 *     #[Writes('comments', 'news:{id}')]
 *
 * It sends nothing to Pagewell; call changed() next to the SQL. The response to a write is never
 * stored.
 */

declare(strict_types=1);

namespace Pagewell\Attribute;

/** The data that a controller writes. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Writes
{
    /** @var list<string> in the form of Uses */
    public readonly array $names;

    public function __construct(string ...$names)
    {
        $this->names = array_values($names);
    }
}
