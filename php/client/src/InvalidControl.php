<?php

/**
 * Where the control interface is cannot be read: the address, or the file with the token.
 *
 * Blame: the operator, who wrote PAGEWELL_ADMIN or PAGEWELL_TOKEN_FILE, or the program that made
 * the SocketControl. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell;

/** No way to Pagewell. */
final class InvalidControl extends \RuntimeException implements PagewellException
{
}
