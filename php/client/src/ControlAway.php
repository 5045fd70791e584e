<?php

/**
 * Pagewell could not be reached, or did not answer in time.
 *
 * Blame: nobody, or the operator. A retry may help. Whether the pages were dropped is not known:
 * if the answer was only late, they were. Dropping them twice does no harm.
 */

declare(strict_types=1);

namespace Pagewell;

/** No answer. */
final class ControlAway extends \RuntimeException implements PagewellException
{
}
