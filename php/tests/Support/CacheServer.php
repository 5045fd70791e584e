<?php

/**
 * A server of an object cache, on a Unix socket in a private directory. It goes with the object.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

/** A running server. */
abstract class CacheServer
{
    protected readonly string $directory;

    /** @var resource */
    private $process;

    /** Starts the server, and waits until it accepts connections. */
    public function __construct()
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-cache-server-' . bin2hex(random_bytes(6));
        mkdir($this->directory, 0755);
        $log = ['file', "{$this->directory}/log", 'a'];
        $command = $this->command();
        $process = proc_open($command, [1 => $log, 2 => $log], $pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException("{$command[0]} cannot be started");
        }
        $this->process = $process;
        for ($until = hrtime(true) + 60_000_000_000; @stream_socket_client("unix://{$this->socket()}") === false;) {
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

    public function socket(): string
    {
        return "{$this->directory}/server.sock";
    }

    /** @return list<string> */
    abstract protected function command(): array;

    /** Returns the path of the first of these programs that is installed; null: none is. */
    protected static function find(string ...$names): ?string
    {
        foreach ($names as $name) {
            foreach (explode(':', (string) getenv('PATH')) as $directory) {
                if (is_executable("$directory/$name")) {
                    return "$directory/$name";
                }
            }
        }
        return null;
    }
}
