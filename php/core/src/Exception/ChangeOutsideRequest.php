<?php

/**
 * changed() was called in a command, a cron job or a queue, where no response can carry the change,
 * and the control interface is off.
 *
 * An error of the program. Purge the same tags over the control interface: `pagewell purge
 * --tag news --tag news:4`. Changes::tags() returns them.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown for a change without a response. */
final class ChangeOutsideRequest extends \LogicException implements PagewellException
{
}
