<?php

/**
 * The interface form of the attribute Uses: for projects without attributes, or if the names come
 * from a constant or a parent class.
 */

declare(strict_types=1);

namespace Pagewell;

/** A controller that declares the dependencies of its pages. */
interface HasDependencies
{
    /** @return list<string> in the form of Uses: `news`, `news:{id}` */
    public static function dependencies(): array;
}
