<?php

/**
 * changed() was called in a GET, HEAD, OPTIONS or TRACE request, and the control interface is off.
 *
 * An error of the program. Such a request may be answered from a cache, or repeated, and a cache
 * must ignore an invalidation on its response (RFC 9875 section 3). Send writes by POST, PUT, PATCH
 * or DELETE.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown for a change on a safe method, which caches ignore. */
final class ChangeOnSafeMethod extends \LogicException implements PagewellException
{
}
