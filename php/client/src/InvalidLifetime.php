<?php

/**
 * A lifetime that cannot be one.
 *
 * Blame: the program. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell;

/** The number of seconds is negative; nothing was declared. */
final class InvalidLifetime extends \InvalidArgumentException implements PagewellException
{
}
