<?php

/**
 * A memcached of its own, on a Unix socket in a private directory. It goes with the object.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

/** A running server. */
final class RealMemcached
{
    private string $directory;

    /** @var resource */
    private $process;

    public function __construct()
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-memcached-' . bin2hex(random_bytes(6));
        mkdir($this->directory, 0755);
        $user = posix_getpwuid(posix_geteuid())['name'] ?? 'root';
        $log = ['file', "{$this->directory}/log", 'a'];
        $process = proc_open(['memcached', '-s', $this->socket(), '-a', '0777', '-u', $user, '-m', '16'], [1 => $log, 2 => $log], $pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException('memcached cannot be started');
        }
        $this->process = $process;
        for ($until = hrtime(true) + 20_000_000_000; @stream_socket_client("unix://{$this->socket()}") === false;) {
            if (hrtime(true) > $until || !proc_get_status($process)['running']) {
                throw new \RuntimeException('memcached did not start: ' . file_get_contents("{$this->directory}/log"));
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
        $found = array_filter(explode(':', (string) getenv('PATH')), static fn (string $directory): bool => is_executable("$directory/memcached"));
        return match (true) {
            $found === [] => 'memcached is not installed',
            !extension_loaded('memcached') => 'PHP has no memcached',
            default => null,
        };
    }

    public function socket(): string
    {
        return "{$this->directory}/memcached.sock";
    }
}
