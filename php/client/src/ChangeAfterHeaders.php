<?php

/**
 * A change was named when the header section had gone out, and the control interface is off.
 *
 * Blame: the program. The write has happened, pages made from the old data are still stored,
 * and this response can no longer say so. Write first, answer afterwards.
 */

declare(strict_types=1);

namespace Pagewell;

/** The change could not be said. */
final class ChangeAfterHeaders extends \LogicException implements PagewellException
{
}
