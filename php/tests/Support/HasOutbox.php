<?php

/**
 * An outbox for a test, in a directory of its own or in a table.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

use Pagewell\Core\FileOutbox;
use Pagewell\Core\Outbox;
use Pagewell\Core\TableOutbox;

/** Makes outboxes of both kinds. */
trait HasOutbox
{
    private string $directory;

    /** @return iterable<string, array{string}> */
    public static function kinds(): iterable
    {
        yield 'a file' => ['file'];
        yield 'a table' => ['table'];
    }

    private function outbox(string $kind, int $pauseSeconds = 0): Outbox
    {
        if ($kind === 'file') {
            return new FileOutbox("$this->directory/outbox", $pauseSeconds);
        }
        $outbox = new TableOutbox(new \PDO('sqlite::memory:'), pauseSeconds: $pauseSeconds);
        $outbox->create();
        return $outbox;
    }

    private function makeDirectory(): void
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-outbox-' . bin2hex(random_bytes(6));
        mkdir($this->directory);
    }

    private function removeDirectory(): void
    {
        array_map(unlink(...), glob("$this->directory/*") ?: []);
        rmdir($this->directory);
    }
}
