<?php

/**
 * A change was named where there is no response to carry it, in a command, a cron job or a queue,
 * and the control interface is off.
 *
 * Blame: the program. Say it through the control interface instead, with the same tags:
 * `pagewell invalidate --tag news --tag news:4`; Changes::tags() makes them.
 */

declare(strict_types=1);

namespace Pagewell;

/** The change has no response to travel on. */
final class ChangeOutsideRequest extends \LogicException implements PagewellException
{
}
