<?php

/**
 * A name of data that cannot be one: empty, too long, or given the wrong way.
 *
 * Blame: the program. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell;

/** The name is refused; nothing was declared. */
final class InvalidTag extends \InvalidArgumentException implements PagewellException
{
}
