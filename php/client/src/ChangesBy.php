<?php

/**
 * The recipient of changes that are declared in a write.
 *
 *     PAGEWELL_CHANGES=response   its answer says so, and Pagewell reads it in passing: when not given
 *     PAGEWELL_CHANGES=control    the control interface is called, before the answer goes out: where
 *                                 answers do not pass through Pagewell (nginx in front, memcached_pass)
 *
 * In the environment (Environment), which a fastcgi_param is part of. Another word is refused where a
 * request begins. Where it is found only after the write, both ways are taken, and the log says so.
 */

declare(strict_types=1);

namespace Pagewell;

/** The way that changes take. */
enum ChangesBy: string
{
    /** The answer to the write carries them: `Cache-Group-Invalidation`. */
    case Response = 'response';

    /** The control interface is called with them. */
    case Control = 'control';

    /**
     * As the environment says.
     *
     * @throws InvalidControl PAGEWELL_CHANGES is neither of the two
     */
    public static function fromEnvironment(): self
    {
        $said = Environment::value('CHANGES');
        return $said === null
            ? self::Response
            : (self::tryFrom($said) ?? throw new InvalidControl("PAGEWELL_CHANGES is '$said': write response or control."));
    }
}
