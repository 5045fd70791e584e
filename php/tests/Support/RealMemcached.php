<?php

/**
 * A memcached of its own.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

/** A running server. */
final class RealMemcached extends CacheServer
{
    /** Why there can be none; null: there can. */
    public static function missing(): ?string
    {
        return match (true) {
            self::find('memcached') === null => 'memcached is not installed',
            !extension_loaded('memcached') => 'PHP has no memcached',
            default => null,
        };
    }

    protected function command(): array
    {
        $user = posix_getpwuid(posix_geteuid())['name'] ?? 'root';
        return ['memcached', '-s', $this->socket(), '-a', '0777', '-u', $user, '-m', '16'];
    }
}
