<?php

/**
 * Whether a rollback would still undo what was done.
 *
 * MariaDB and MySQL commit before `ALTER TABLE` and the like, and then nothing is left to be rolled back; so a
 * connection is asked before it rolls back. One that cannot be asked (mysqli) tells what was said, for nobody
 * knows; PDO's own memory, where the server is not asked (SQLite), knows nothing of transactions begun in SQL.
 */

declare(strict_types=1);

namespace Pagewell;

/** @internal Asked before each statement, and before each rollback. */
final class Undoable
{
    /** @param object|null $native \PDO, \mysqli or another driver's own */
    public static function by(?object $native): bool
    {
        return match (true) {
            $native instanceof \mysqli => false,
            $native instanceof \PDO => !in_array($native->getAttribute(\PDO::ATTR_DRIVER_NAME), ['mysql', 'pgsql'], true) || $native->inTransaction(),
            default => true,
        };
    }
}
