<?php

/**
 * Determines whether a rollback would still undo the changes.
 *
 * MariaDB and MySQL commit before statements such as `ALTER TABLE`, and a later rollback undoes
 * nothing. So the connection is queried before it rolls back. For a driver without such a query
 * (mysqli), the changes are sent. PDO's inTransaction() is used only for MySQL and PostgreSQL: with
 * SQLite it does not detect transactions that SQL began.
 */

declare(strict_types=1);

namespace Pagewell;

/** @internal Called before each statement, and before each rollback. */
final class Undoable
{
    /** @param object|null $native \PDO, \mysqli or the connection of another driver */
    public static function by(?object $native): bool
    {
        return match (true) {
            $native instanceof \mysqli => false,
            $native instanceof \PDO => !in_array($native->getAttribute(\PDO::ATTR_DRIVER_NAME), ['mysql', 'pgsql'], true) || $native->inTransaction(),
            default => true,
        };
    }
}
