<?php

/**
 * changedNow() was called while a transaction was open.
 *
 * An error of the program. Pages would be rendered from the old rows, and cached. Call it after the
 * commit, or call changed(), which waits for it.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown by changedNow() before the commit. */
final class ChangeBeforeCommit extends \LogicException implements PagewellException
{
}
