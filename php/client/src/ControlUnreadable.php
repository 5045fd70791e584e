<?php

/**
 * Something answered at the control interface's address that is not Pagewell's.
 *
 * Blame: the operator. The address leads elsewhere, or something between has answered in its place.
 * Nothing is known to have been dropped.
 */

declare(strict_types=1);

namespace Pagewell;

/** What answered is not Pagewell. */
final class ControlUnreadable extends \RuntimeException implements PagewellException
{
}
