<?php

/**
 * What all exceptions of the library have in common, for one who wants to catch any of them.
 *
 * Each cause has a class of its own. All of them are faults of the program, found the first
 * time that the line runs; none depends on whether Pagewell is there.
 */

declare(strict_types=1);

namespace Pagewell;

/** Thrown by uses(), freshFor() and changed(). */
interface PagewellException extends \Throwable
{
}
