<?php

/**
 * The database cannot be reached just now; the same request may succeed in a moment.
 */

declare(strict_types=1);

namespace News\Libraries;

/** Answered with 503. */
final class DatabaseAway extends \RuntimeException
{
}
