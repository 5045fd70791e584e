<?php

/**
 * Doctrine DBAL (3.3 and later) with pdo_mysql: reports the statements of a request, for automatic dependencies.
 *
 *     $configuration->setMiddlewares([new Pagewell\Bridge\Doctrine\CaptureMiddleware()]);
 *
 * In Symfony the bundle does it. Prepared statements report themselves: PDO makes them of a class of the library.
 * Connections of other drivers make the list incomplete, as do statements that bypass Doctrine. Without a capture
 * the connection is not wrapped.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\Doctrine;

use Doctrine\DBAL\Driver;
use Doctrine\DBAL\Driver\Connection;
use Doctrine\DBAL\Driver\Middleware;
use Doctrine\DBAL\Driver\Middleware\AbstractConnectionMiddleware;
use Doctrine\DBAL\Driver\Middleware\AbstractDriverMiddleware;
use Doctrine\DBAL\Driver\Result;
use Pagewell\Capture\CapturedConnection;
use Pagewell\Capture\CapturingPdo;
use Pagewell\Capture\StatementCapture;

/** Wraps each connection of a captured request. */
final class CaptureMiddleware implements Middleware
{
    public function wrap(Driver $driver): Driver
    {
        return new class ($driver) extends AbstractDriverMiddleware {
            public function connect(array $params): Connection
            {
                $capture = StatementCapture::running();
                if ($capture === null) {
                    return parent::connect($params);
                }
                // Another middleware may send statements of its own here: they must not count as PHP's.
                $hasCommand = defined('PDO::MYSQL_ATTR_INIT_COMMAND') && isset($params['driverOptions'][\PDO::MYSQL_ATTR_INIT_COMMAND]);
                $most = $hasCommand ? 1 : 0;
                return CaptureMiddleware::connection($capture, $capture->own(fn (): Connection => parent::connect($params), $most));
            }
        };
    }

    /** Wraps a driver connection, and reports its statements. */
    public static function connection(StatementCapture $capture, Connection $connection): Connection
    {
        $pdo = self::native($connection);
        if ($pdo === null) {
            $capture->giveUp('a connection of Doctrine that is none of PDO: use the driver pdo_mysql');
            return $connection;
        }
        $books = $capture->connection($pdo);
        if ($books === null || !self::reportStatements($books, $pdo)) {
            $capture->giveUp('a persistent connection of Doctrine, or one with a class of its own for statements');
            return $connection;
        }
        return new class ($connection, $capture, $books) extends AbstractConnectionMiddleware {
            public function __construct(Connection $connection, private readonly StatementCapture $capture, private readonly CapturedConnection $books)
            {
                parent::__construct($connection);
            }

            /** The connection is closed: its statements are counted while it can still be asked. */
            public function __destruct()
            {
                $this->books->finish();
            }

            public function query(string $sql): Result
            {
                return $this->books->run($sql, fn (): Result => parent::query($sql));
            }

            public function exec(string $sql): int
            {
                return (int) $this->books->run($sql, fn (): int|string => parent::exec($sql));
            }

            public function beginTransaction(): void
            {
                $this->capture->own(fn () => parent::beginTransaction());
            }

            public function commit(): void
            {
                $this->capture->own(fn () => parent::commit());
            }

            public function rollBack(): void
            {
                $this->capture->own(fn () => parent::rollBack());
            }
        };
    }

    /** Makes PDO use the library's class for statements. Returns whether it does. */
    private static function reportStatements(CapturedConnection $books, \PDO $pdo): bool
    {
        try {
            return $pdo->getAttribute(\PDO::ATTR_STATEMENT_CLASS)[0] === \PDOStatement::class
                && !$pdo->getAttribute(\PDO::ATTR_PERSISTENT)
                && $pdo->setAttribute(\PDO::ATTR_STATEMENT_CLASS, CapturingPdo::statementClass($books, $pdo));
        } catch (\PDOException) {
            return false;
        }
    }

    private static function native(Connection $connection): ?\PDO
    {
        try {
            $native = method_exists($connection, 'getNativeConnection') ? $connection->getNativeConnection() : null;
        } catch (\LogicException) {
            return null;
        }
        return $native instanceof \PDO ? $native : null;
    }
}
