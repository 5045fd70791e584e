<?php

/**
 * An outbox in a file, one call per line, as JSON.
 *
 *     PATH            the calls that wait; replaced by another file, never written in the middle
 *     PATH.lock       held while PATH is read or changed
 *     PATH.delivery   held by the process that delivers, also while it waits for Pagewell
 *
 * All processes that use it need write access to its directory, which must not be served. The files
 * have the permissions of the directory; those that root creates belong to its owner.
 * Bounded: above BYTES_MAX the calls are replaced by one for everything, for each of their sites. A
 * line that cannot be read counts as one for everything, too.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** Keeps calls in a file. */
final class FileOutbox implements Outbox
{
    /** Maximum size of the file, in bytes. */
    public const BYTES_MAX = 4 * 1024 * 1024;

    /** Seconds after a failure, or a new call, in which nothing is tried. */
    public const PAUSE_SECONDS = 10;

    /**
     * @param string $path         of the file; its directory exists
     * @param int    $pauseSeconds as PAUSE_SECONDS
     */
    public function __construct(private readonly string $path, private readonly int $pauseSeconds = self::PAUSE_SECONDS)
    {
    }

    public function store(Invalidation ...$calls): void
    {
        $lines = self::lines($calls);
        $this->locked('lock', function () use ($lines): void {
            $all = $this->read() . $lines;
            if (strlen($all) > self::BYTES_MAX) {
                $waiting = array_map(Invalidation::ofJson(...), explode("\n", rtrim($all)));
                $this->replace(self::lines(Invalidation::everythingInPlaceOf($waiting)));
            } else {
                $this->write($this->path, 'a', $lines);
            }
        });
    }

    /** @param array<Invalidation> $calls */
    private static function lines(array $calls): string
    {
        return implode('', array_map(static fn (Invalidation $call): string => $call->json() . "\n", $calls));
    }

    public function isDue(): bool
    {
        clearstatcache(true, $this->path);
        return is_file($this->path) && filesize($this->path) > 0 && time() - (int) filemtime($this->path) >= $this->pauseSeconds;
    }

    public function deliver(callable $send): void
    {
        $this->locked('delivery', function () use ($send): void {
            $sent = '';
            try {
                foreach (preg_split('/(?<=\n)/', $this->locked('lock', $this->read(...)), -1, PREG_SPLIT_NO_EMPTY) ?: [] as $line) {
                    $send(Invalidation::ofJson($line) ?? new Invalidation(all: true));
                    $sent .= $line;
                }
            } catch (\Throwable $failure) {
                @touch($this->path);
                throw $failure;
            } finally {
                $this->locked('lock', fn () => $this->remove($sent));
            }
        }, LOCK_EX | LOCK_NB);
    }

    /** Removes what was sent. If the file has become another one since, it is all kept: to send twice does no harm. */
    private function remove(string $sent): void
    {
        $all = $this->read();
        if ($sent !== '' && str_starts_with($all, $sent)) {
            $modified = @filemtime($this->path);
            $this->replace(substr($all, strlen($sent)));
            // The pause after a failure goes on.
            is_file($this->path) && $modified !== false && @touch($this->path, $modified);
        }
    }

    private function read(): string
    {
        return is_file($this->path) ? (string) file_get_contents($this->path) : '';
    }

    private function replace(string $text): void
    {
        $text === '' || $this->write("{$this->path}.new", 'w', $text);
        if (!($text === '' ? @unlink($this->path) : @rename("{$this->path}.new", $this->path))) {
            throw new \RuntimeException("{$this->path} cannot be replaced.");
        }
    }

    private function write(string $path, string $mode, string $text): void
    {
        $file = $this->open($path, $mode);
        $written = @fwrite($file, $text);
        if (!fclose($file) || $written !== strlen($text)) {
            throw new \RuntimeException("$path cannot be written: is the disk full?");
        }
    }

    /**
     * Opens a file, and creates it with the permissions of the directory.
     *
     * @return resource
     */
    private function open(string $path, string $mode)
    {
        $directory = dirname($this->path);
        // A command of root does it as the owner of the directory, who could put a link there.
        $asOwner = function_exists('posix_seteuid') && posix_geteuid() === 0 && posix_seteuid((int) @fileowner($directory));
        try {
            if (!file_exists($path) && ($created = @fopen($path, 'x')) !== false) {
                fclose($created);
                @chmod($path, (int) @fileperms($directory) & 0666);
            }
            $file = @fopen($path, $mode);
        } finally {
            $asOwner && posix_seteuid(0);
        }
        if ($file === false) {
            throw new \RuntimeException("$path cannot be written: this user needs write access to it and to its directory.");
        }
        return $file;
    }

    /**
     * Calls a function while the lock is held; null if another process has it and $how is not to wait.
     *
     * @param callable(): mixed $does
     */
    private function locked(string $name, callable $does, int $how = LOCK_EX): mixed
    {
        $lock = $this->open("{$this->path}.$name", 'c');
        try {
            return flock($lock, $how) ? $does() : null;
        } finally {
            fclose($lock);
        }
    }
}
