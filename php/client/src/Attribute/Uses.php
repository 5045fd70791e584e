<?php

/**
 * Declares at a controller on which data its pages depend.
 *
 *     #[Uses('news')]                  the kind as a whole
 *     #[Uses('news:{id}', 'comments')] the one in the route's parameter `id`; and another kind
 *
 * On a class it applies to all of its actions, on a method to that one. It is read by usesOf(), by
 * the glue for frameworks, and by `pagewell-php dependencies`. The part before the first colon is
 * the kind.
 */

declare(strict_types=1);

namespace Pagewell\Attribute;

/** The data on which a controller's pages depend. */
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
