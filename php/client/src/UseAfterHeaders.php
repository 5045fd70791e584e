<?php

/**
 * A page said what it is made from when its header section had gone out.
 *
 * Blame: the program. The page has been announced as made from less than it is, and would
 * outlive a change of the rest; so it is cut off here rather than sent whole. Declare first
 * and write afterwards, or make the page in a buffer (ob_start()) and send it when it is done.
 */

declare(strict_types=1);

namespace Pagewell;

/** The declaration came too late. */
final class UseAfterHeaders extends \LogicException implements PagewellException
{
}
