<?php

/**
 * Doctrine DBAL (3 and 4): changes wait for the commit, savepoints included.
 *
 *     $configuration->setMiddlewares([new Pagewell\Bridge\Doctrine\TransactionMiddleware()]);
 *
 * In Symfony the bundle does it. Doctrine nests transactions by savepoints, which pass through
 * exec(), as do `BEGIN` and `COMMIT` by executeStatement(). With parameters these are prepared, and
 * not detected. The changes of a failed commit are sent, because it may have succeeded.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\Doctrine;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Middleware;
use Doctrine\DBAL\Driver\Middleware\AbstractConnectionMiddleware;
use Doctrine\DBAL\Driver\Middleware\AbstractDriverMiddleware;
use Doctrine\DBAL\Driver\Result;
use Pagewell\Core\Transaction;
use Pagewell\RequestScope;
use Pagewell\Undoable;

/** Wraps each connection. */
final class TransactionMiddleware implements Middleware
{
    public function wrap(Driver $driver): Driver
    {
        return new class ($driver) extends AbstractDriverMiddleware {
            public function connect(array $params): Connection
            {
                return TransactionMiddleware::connection(parent::connect($params));
            }
        };
    }

    /** Wraps a driver connection, and reports its transactions. */
    public static function connection(Connection $connection): Connection
    {
        return new class ($connection) extends AbstractConnectionMiddleware {
            /** The connection is closed or lost: the waiting changes are sent. */
            public function __destruct()
            {
                $this->changes()->commitAll();
            }

            public function beginTransaction(): void
            {
                parent::beginTransaction();
                $this->changes()->beginAnew();
            }

            public function commit(): void
            {
                try {
                    parent::commit();
                } finally {
                    $this->changes()->commitAll();
                }
            }

            public function rollBack(): void
            {
                $undoable = Undoable::by($this->native());
                try {
                    parent::rollBack();
                } catch (\Throwable $fault) {
                    $this->changes()->commitAll(); // Nobody knows; and nobody will say that it has ended.
                    throw $fault;
                }
                $undoable ? $this->changes()->rollBackAll() : $this->changes()->commitAll();
            }

            public function exec(string $sql): int
            {
                $undoable = Undoable::by($this->native());
                $done = (int) parent::exec($sql);
                $this->changes()->saw($sql, $undoable);
                return $done;
            }

            public function query(string $sql): Result
            {
                $undoable = Undoable::by($this->native());
                $result = parent::query($sql);
                $this->changes()->saw($sql, $undoable);
                return $result;
            }

            /** Returns the native connection; null before Doctrine 3.3, or if there is none. */
            private function native(): ?object
            {
                try {
                    $native = method_exists($this, 'getNativeConnection') ? $this->getNativeConnection() : null;
                } catch (\LogicException) {
                    return null;
                }
                return is_object($native) ? $native : null;
            }

            private function changes(): Transaction
            {
                return RequestScope::current()->transaction('doctrine ' . spl_object_id($this));
            }
        };
    }
}
