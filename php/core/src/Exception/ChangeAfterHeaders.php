<?php

/**
 * changed() was called after the header section was sent, and the control interface is off.
 *
 * An error of the program. The write is done, pages with the old data are still cached, and this
 * response can no longer report it. Write first, send output afterwards.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown if the header section can no longer carry the change. */
final class ChangeAfterHeaders extends \LogicException implements PagewellException
{
}
