<?php

/**
 * The recipient of changes that are declared in a write.
 *
 *     PAGEWELL_CHANGES=response   the response carries the change, and Pagewell reads it (the default)
 *     PAGEWELL_CHANGES=control    the control interface is called before the response is sent: for sites
 *                                 whose responses do not pass through Pagewell (nginx, memcached_pass)
 *
 * Read from the environment, which includes each fastcgi_param. Another value is refused when a
 * request begins. If it is found only after a write, the change is sent both ways, and the log has
 * a line.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\InvalidConfiguration;

/** The way that changes take. */
enum ChangeDelivery: string
{
    /** The response to the write carries them: `Cache-Group-Invalidation`. */
    case Response = 'response';

    /** The control interface is called with them. */
    case Control = 'control';

    /**
     * Reads PAGEWELL_CHANGES.
     *
     * @throws InvalidConfiguration PAGEWELL_CHANGES is neither of the two
     */
    public static function fromEnvironment(): self
    {
        $said = Environment::value('CHANGES');
        return $said === null
            ? self::Response
            : (self::tryFrom($said) ?? throw new InvalidConfiguration("PAGEWELL_CHANGES is '$said': write response or control."));
    }
}
