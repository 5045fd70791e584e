<?php

/**
 * Says beside a controller what it writes, for the dependency list alone: who reads it, who writes it.
 *
 *     #[Writes('comments', 'news:{id}')]
 *
 * Nothing is told to Pagewell by this; changed() stands beside the SQL. The answer to a write is
 * never kept.
 */

declare(strict_types=1);

namespace Pagewell;

/** What a controller writes. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Writes
{
    /** @var list<string> as of Uses */
    public readonly array $names;

    public function __construct(string ...$names)
    {
        $this->names = array_values($names);
    }
}
