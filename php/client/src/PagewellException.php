<?php

/**
 * What all exceptions of the library have in common, for one who wants to catch any of them.
 *
 * Each cause has a class of its own. uses(), freshFor() and changed() throw faults of the program
 * only, found the first time that the line runs. What depends on whether Pagewell is there
 * (ControlAway, ControlRefused, ControlUnreadable, InvalidControl) is thrown by those alone that
 * are asked to do something at once.
 */

declare(strict_types=1);

namespace Pagewell;

/** Thrown by this library. */
interface PagewellException extends \Throwable
{
}
