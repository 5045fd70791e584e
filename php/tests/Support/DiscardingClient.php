<?php

/**
 * A client for tests of what a worker keeps in memory: it keeps nothing itself.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;

/** Accepts each invalidation, and forgets it. */
final class DiscardingClient implements InvalidationClient
{
    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        return new InvalidationResult();
    }
}
