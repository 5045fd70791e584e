<?php

/**
 * Says beside a controller what its pages are made from.
 *
 *     #[Uses('news')]                  the kind as a whole
 *     #[Uses('news:{id}', 'comments')] the one that the parameter `id` of the route names; a kind besides
 *
 * On a class it holds for all of its actions, on a method for that one. Read by usesOf(), by the
 * glue for frameworks, and by `pagewell-php dependencies`. What comes before the first colon is the kind.
 */

declare(strict_types=1);

namespace Pagewell;

/** What a controller's pages are made from. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Uses
{
    /** @var list<string> `news`, `news:{id}`, `page:about` */
    public readonly array $names;

    public function __construct(string ...$names)
    {
        $this->names = array_values($names);
    }
}
