<?php

/**
 * The base class of Symfony's UUIDs, as much as the library uses: Debian 12 does not install it with Symfony.
 */

declare(strict_types=1);

namespace Symfony\Component\Uid {
    abstract class AbstractUid
    {
        abstract public function __toString(): string;
    }
}
