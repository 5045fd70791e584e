<?php

/**
 * The control interface of an application without Pagewell (`'enabled' => false` in config/pagewell.php): each change
 * is accepted and forgotten, so that nothing throws, waits or is logged. The outbox is not delivered to it.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;

/**
 * Accepts every purge, and does nothing.
 *
 * @internal
 */
final class NoPagewell implements InvalidationClient
{
    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        return new InvalidationResult();
    }
}
