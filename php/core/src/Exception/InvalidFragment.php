<?php

/**
 * The URL of a fragment is not a path of this site: it is relative, has a host, or is empty.
 *
 * An error of the program. It fails with and without Pagewell in front.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown by fragment(); nothing was rendered. */
final class InvalidFragment extends \InvalidArgumentException implements PagewellException
{
}
