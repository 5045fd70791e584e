<?php

/**
 * The number of seconds of a TTL is negative.
 *
 * An error of the program. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown for a negative TTL; nothing was declared. */
final class InvalidLifetime extends \InvalidArgumentException implements PagewellException
{
}
