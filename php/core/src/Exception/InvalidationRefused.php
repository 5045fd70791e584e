<?php

/**
 * Pagewell answered the call with an error.
 *
 * An error of the operator for `token-refused`, `host-refused`, `site-unknown`; of the program for
 * `unreadable` and `too-large`. The reasons are listed in docs/operating/errors.md. Nothing was
 * purged, and a retry does not help.
 */

declare(strict_types=1);

namespace Pagewell\Core\Exception;

/** Thrown if Pagewell rejects a call. */
final class InvalidationRefused extends \RuntimeException implements PagewellException
{
    /**
     * @param string $reason      the error's name, `token-refused`
     * @param string $explanation a sentence for people
     * @param int    $status      HTTP status of the response
     */
    public function __construct(public readonly string $reason, string $explanation, public readonly int $status)
    {
        parent::__construct("Pagewell refused the call: $reason ($explanation).", $status);
    }
}
