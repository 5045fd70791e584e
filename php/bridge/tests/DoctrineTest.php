<?php

/**
 * Doctrine DBAL's own connection, nested transactions included, on SQLite.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Bridge;

use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\Driver\Middleware\AbstractConnectionMiddleware;
use Doctrine\DBAL\DriverManager;
use Pagewell\Bridge\Doctrine\TransactionMiddleware;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;

final class DoctrineTest extends TestCase
{
    private RecordingChannel $channel;

    private Connection $connection;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Doctrine/DBAL/autoload.php') === false) {
            self::markTestSkipped('Doctrine/DBAL/autoload.php is not installed');
        }
        require_once 'Doctrine/DBAL/autoload.php';
    }

    protected function setUp(): void
    {
        $configuration = new Configuration();
        $configuration->setMiddlewares([new TransactionMiddleware()]);
        $this->connection = DriverManager::getConnection(['driver' => 'pdo_sqlite', 'memory' => true], $configuration);
        $this->connection->setNestTransactionsWithSavepoints(true);
        $this->connection->executeStatement('CREATE TABLE news (id)');
        $this->channel = RecordingChannel::install('POST');
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testCommitAndRollback(): void
    {
        $this->connection->transactional(function (): void {
            changed('a');
            self::assertSame([], $this->channel->lines());
        });
        $this->connection->beginTransaction();
        changed('b');
        $this->connection->rollBack();
        self::assertSame(['Cache-Group-Invalidation: "a", "a:*"'], $this->channel->lines());
    }

    public function testWhoseConnectionIsGoneKeepsNothingWaiting(): void
    {
        $this->connection->beginTransaction();
        changed('a');
        $this->connection->close();
        self::assertSame(['Cache-Group-Invalidation: "a", "a:*"'], $this->channel->lines());
    }

    public function testARollbackThatFailsKeepsNothingWaiting(): void
    {
        // DBAL 4 gives its driver's connection to subclasses only.
        $driver = method_exists($this->connection, 'getWrappedConnection')
            ? $this->connection->getWrappedConnection()
            : (fn () => $this->connect())->call($this->connection);
        $lost = new class ($driver) extends AbstractConnectionMiddleware {
            // DBAL 3 has no types here, and ignores what is returned.
            public function beginTransaction(): void
            {
            }

            public function rollBack(): void
            {
                throw new \RuntimeException('the server has gone away');
            }
        };
        $connection = TransactionMiddleware::connection($lost);
        $connection->beginTransaction();
        changed('a');
        try {
            $connection->rollBack();
            self::fail('it was swallowed');
        } catch (\RuntimeException) {
            self::assertSame(['Cache-Group-Invalidation: "a", "a:*"'], $this->channel->lines());
        }
    }

    public function testNestedOnes(): void
    {
        $this->connection->beginTransaction();
        changed('a');
        $this->connection->beginTransaction();
        changed('b');
        $this->connection->rollBack();
        $this->connection->beginTransaction();
        changed('c');
        $this->connection->commit();
        self::assertSame([], $this->channel->lines());
        $this->connection->commit();
        self::assertSame(['Cache-Group-Invalidation: "a", "c", "a:*", "c:*"'], $this->channel->lines());
    }

    public function testStatementsThatBeginAndEnd(): void
    {
        $this->connection->executeStatement('BEGIN');
        changed('a');
        self::assertSame([], $this->channel->lines());
        $this->connection->executeStatement('COMMIT; BEGIN');
        changed('b');
        self::assertSame(['Cache-Group-Invalidation: "a", "a:*"'], $this->channel->lines());
        $this->connection->executeQuery('ROLLBACK');
        changed('c');
        self::assertSame(['Cache-Group-Invalidation: "a", "c", "a:*", "c:*"'], $this->channel->lines());
    }
}
