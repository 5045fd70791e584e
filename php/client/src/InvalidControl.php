<?php

/**
 * Where the control interface is, or whether changes go there, cannot be read.
 *
 * Blame: the operator, who wrote PAGEWELL_ADMIN, PAGEWELL_TOKEN_FILE or PAGEWELL_CHANGES, or the
 * program that made the SocketControl. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell;

/** No way to Pagewell. */
final class InvalidControl extends \RuntimeException implements PagewellException
{
}
