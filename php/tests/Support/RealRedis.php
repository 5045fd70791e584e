<?php

/**
 * A Valkey or Redis of its own.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

/** A running server. */
final class RealRedis extends CacheServer
{
    /** Why there can be none; null: there can. */
    public static function missing(): ?string
    {
        return match (true) {
            self::program() === null => 'neither Valkey nor Redis is installed',
            !extension_loaded('redis') => 'PHP has no redis',
            default => null,
        };
    }

    /** How many values it has. */
    public function count(): int
    {
        $redis = new \Redis();
        $redis->connect($this->socket());
        return (int) $redis->dbSize();
    }

    protected function command(): array
    {
        return [(string) self::program(), '--port', '0', '--unixsocket', $this->socket(), '--unixsocketperm', '777', '--save', '', '--dir', $this->directory, '--maxmemory', '64mb'];
    }

    private static function program(): ?string
    {
        return self::find('valkey-server', 'redis-server');
    }
}
