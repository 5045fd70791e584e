<?php

/**
 * changedNow() was called while a transaction was open.
 *
 * Blame: the program. Pages would be rendered from the old rows, and stored. Call it after the
 * commit, or call changed(), which waits for it.
 */

declare(strict_types=1);

namespace Pagewell;

/** Too early. */
final class ChangeBeforeCommit extends \LogicException implements PagewellException
{
}
