<?php

/**
 * The common interface of all exceptions of the library, for catching any of them.
 *
 * Each cause has a class of its own. uses(), freshFor() and changed() throw only for programming
 * errors, which appear the first time that the line runs. Only functions that act at once throw the
 * exceptions that depend on Pagewell (PagewellUnreachable, InvalidationRefused, UnreadableResponse,
 * InvalidConfiguration).
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown by this library. */
interface PagewellException extends \Throwable
{
}
