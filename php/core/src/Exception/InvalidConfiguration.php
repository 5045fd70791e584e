<?php

/**
 * The address of the control interface, or the setting for changes, is invalid.
 *
 * An error of the operator (PAGEWELL_ADMIN, PAGEWELL_TOKEN_FILE, PAGEWELL_CHANGES), or of the
 * program that created the SocketClient. The same call fails every time.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown if the configuration does not lead to Pagewell. */
final class InvalidConfiguration extends \RuntimeException implements PagewellException
{
}
