<?php

/**
 * Another program than Pagewell answered at the address of the control interface.
 *
 * An error of the operator: the address is wrong, or a proxy answered. It is unknown whether pages
 * were purged.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown if the response is not one of Pagewell. */
final class UnreadableResponse extends \RuntimeException implements PagewellException
{
}
