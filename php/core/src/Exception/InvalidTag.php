<?php

/**
 * A kind or an id is empty, too long, or passed the wrong way.
 *
 * An error of the program. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown for an invalid kind, id or tag; nothing was declared. */
final class InvalidTag extends \InvalidArgumentException implements PagewellException
{
}
