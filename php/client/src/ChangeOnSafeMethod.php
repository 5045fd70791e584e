<?php

/**
 * A change was named in answer to a GET, HEAD, OPTIONS or TRACE, and the control interface is off.
 *
 * Blame: the program. Such a request may be answered from memory, repeated or guessed by
 * anybody, and a cache must ignore an invalidation on its response (RFC 9875 section 3).
 * Let a form or a script send what writes by POST, PUT, PATCH or DELETE.
 */

declare(strict_types=1);

namespace Pagewell;

/** The change would be ignored. */
final class ChangeOnSafeMethod extends \LogicException implements PagewellException
{
}
