<?php

/**
 * What Uses says, by an interface: where attributes are not to a house's taste, or the names come
 * from a constant or a parent.
 */

declare(strict_types=1);

namespace Pagewell;

/** A controller that says what its pages are made from. */
interface MadeFrom
{
    /** @return list<string> as Uses takes them: `news`, `news:{id}` */
    public static function madeFrom(): array;
}
