<?php

/**
 * A Valkey or Redis of its own, on a Unix socket in a private directory. It goes with the object.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

/** A running server. */
final class RealRedis
{
    private string $directory;

    /** @var resource */
    private $process;

    public function __construct()
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-redis-' . bin2hex(random_bytes(6));
        mkdir($this->directory, 0755);
        $log = ['file', "{$this->directory}/log", 'a'];
        $command = [(string) self::program(), '--port', '0', '--unixsocket', $this->socket(), '--unixsocketperm', '777', '--save', '', '--dir', $this->directory, '--maxmemory', '64mb'];
        $process = proc_open($command, [1 => $log, 2 => $log], $pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException("{$command[0]} cannot be started");
        }
        $this->process = $process;
        for ($until = hrtime(true) + 20_000_000_000; @stream_socket_client("unix://{$this->socket()}") === false;) {
            if (hrtime(true) > $until || !proc_get_status($process)['running']) {
                throw new \RuntimeException("{$command[0]} did not start: " . file_get_contents("{$this->directory}/log"));
            }
            usleep(1000);
        }
    }

    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
        exec('rm -rf -- ' . escapeshellarg($this->directory));
    }

    /** Why there can be none; null: there can. */
    public static function missing(): ?string
    {
        return match (true) {
            self::program() === null => 'neither Valkey nor Redis is installed',
            !extension_loaded('redis') => 'PHP has no redis',
            default => null,
        };
    }

    public function socket(): string
    {
        return "{$this->directory}/redis.sock";
    }

    /** How many values it has. */
    public function count(): int
    {
        $redis = new \Redis();
        $redis->connect($this->socket());
        return (int) $redis->dbSize();
    }

    private static function program(): ?string
    {
        foreach (['valkey-server', 'redis-server'] as $name) {
            foreach (explode(':', (string) getenv('PATH')) as $directory) {
                if (is_executable("$directory/$name")) {
                    return "$directory/$name";
                }
            }
        }
        return null;
    }
}
