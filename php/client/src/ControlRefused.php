<?php

/**
 * Pagewell answered the call with an error.
 *
 * Blame: the operator's for `token-refused`, `host-refused`, `site-unknown`; the program's for
 * `unreadable` and `too-large`. The reason is Pagewell's own name for it (docs/operating/errors.md).
 * Nothing was dropped, and a retry will not help.
 */

declare(strict_types=1);

namespace Pagewell;

/** The call was refused. */
final class ControlRefused extends \RuntimeException implements PagewellException
{
    /**
     * @param string $reason      the error's name, `token-refused`
     * @param string $explanation a sentence
     * @param int    $status      of the answer
     */
    public function __construct(public readonly string $reason, string $explanation, public readonly int $status)
    {
        parent::__construct("Pagewell refused: $reason ($explanation)", $status);
    }
}
