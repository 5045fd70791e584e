<?php

/**
 * Pagewell could not be reached, or did not answer in time.
 *
 * Retry it. It is unknown whether the pages were purged: if only the response was late, they were.
 * Purging them twice does no harm.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown if Pagewell does not answer. */
final class PagewellUnreachable extends \RuntimeException implements PagewellException
{
}
