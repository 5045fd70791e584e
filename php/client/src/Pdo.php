<?php

/**
 * PDO that holds changes back until they are committed.
 *
 *     $db = new Pagewell\Pdo($dsn, $user, $password);    // instead of `new PDO`
 *
 * Changes that are declared within a transaction are sent after its commit, and discarded after a
 * rollback, also to a savepoint. Statements that begin and end transactions are detected in exec()
 * and query() (`COMMIT`, `SAVEPOINT a`, `COMMIT; BEGIN`), not in prepare(). Nothing is discarded if
 * a transaction ended undetected (MariaDB commits before `ALTER TABLE`), or if the result of a
 * commit is unknown (the connection broke).
 *
 * It also reports its statements, for automatic dependencies (Capture\CapturingPdo).
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Capture\CapturingPdo;
use Pagewell\Core\Transaction;

/** A PDO connection that reports its transactions, and its statements. */
class Pdo extends CapturingPdo
{
    /**
     * The connection is closed. Waiting changes are sent, because their transaction may have been
     * committed without being detected.
     */
    public function __destruct()
    {
        $this->changes()->commitAll();
        parent::__destruct();
    }

    public function beginTransaction(): bool
    {
        $begun = parent::beginTransaction();
        $this->changes()->beginAnew();
        return $begun;
    }

    public function commit(): bool
    {
        try {
            $committed = parent::commit();
        } catch (\PDOException $fault) {
            $this->unsure();
            throw $fault;
        }
        $committed ? $this->changes()->commitAll() : $this->unsure();
        return $committed;
    }

    public function rollBack(): bool
    {
        // If there is no transaction to roll back, it was committed without being detected.
        $open = $this->inTransaction();
        try {
            $rolledBack = parent::rollBack();
        } finally {
            $open && !$this->inTransaction() ? $this->changes()->rollBackAll() : $this->unsure();
        }
        return $rolledBack;
    }

    public function exec(string $statement): int|false
    {
        $undoable = Undoable::by($this);
        $done = parent::exec($statement);
        if ($done !== false) {
            $this->changes()->saw($statement, $undoable);
        }
        return $done;
    }

    public function query(string $query, ?int $fetchMode = null, mixed ...$fetchModeArgs): \PDOStatement|false
    {
        $undoable = Undoable::by($this);
        $statement = parent::query($query, $fetchMode, ...$fetchModeArgs);
        if ($statement !== false) {
            $this->changes()->saw($query, $undoable);
        }
        return $statement;
    }

    private function changes(): Transaction
    {
        return RequestScope::current()->transaction('pdo ' . spl_object_id($this));
    }

    /** It is unknown whether it was committed: the changes are sent now, and again at a later commit. */
    private function unsure(): void
    {
        $this->inTransaction() ? $this->changes()->sendEarly() : $this->changes()->commitAll();
    }
}
