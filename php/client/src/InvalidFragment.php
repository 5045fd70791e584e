<?php

/**
 * The address of a fragment is no path of this site: relative, with a host, or empty.
 *
 * Blame: the program. It fails with and without Pagewell in front.
 */

declare(strict_types=1);

namespace Pagewell;

/** No fragment is there; nothing was rendered. */
final class InvalidFragment extends \InvalidArgumentException implements PagewellException
{
}
