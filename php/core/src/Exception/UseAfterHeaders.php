<?php

/**
 * A page declared a dependency after its header section was sent.
 *
 * An error of the program. The sent header section misses this dependency, so the cached page would
 * not be purged by its changes. The exception ends the page instead. Declare first and send output
 * afterwards, or buffer the page (ob_start()).
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown if a declaration comes after the header section. */
final class UseAfterHeaders extends \LogicException implements PagewellException
{
}
