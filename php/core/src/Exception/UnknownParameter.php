<?php

/**
 * A controller's #[Uses('news:{id}')] names a parameter that its route does not have, or a value
 * without an id (null, an array).
 *
 * An error of the program. Declare the kind as a whole instead.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown by usesOf() if a parameter is missing. */
final class UnknownParameter extends \LogicException implements PagewellException
{
}
