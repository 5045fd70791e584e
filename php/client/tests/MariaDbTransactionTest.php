<?php

/**
 * What MariaDB does to transactions unseen: it commits before a statement that defines something, and several
 * statements may come in one call. With a real server, by PDO and by Doctrine over mysqli.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Pagewell\Bridge\Doctrine\TransactionMiddleware;
use Pagewell\Core\Invalidation;
use Pagewell\Core\TableOutbox;
use Pagewell\Pdo;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Tests\Support\RealMariaDb;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;

final class MariaDbTransactionTest extends TestCase
{
    private static ?RealMariaDb $server = null;

    private RecordingChannel $channel;

    public static function setUpBeforeClass(): void
    {
        $missing = RealMariaDb::missing();
        if ($missing !== null) {
            self::markTestSkipped($missing);
        }
        self::$server = new RealMariaDb('CREATE DATABASE paper; CREATE TABLE paper.news (id INT)');
    }

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
    }

    protected function setUp(): void
    {
        $this->channel = RecordingChannel::install(null);
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        RequestScope::begin();
    }

    /** @dataProvider works */
    #[DataProvider('works')]
    public function testPdo(callable $work, string ...$told): void
    {
        $db = new Pdo('mysql:dbname=paper;unix_socket=' . self::$server?->socket(), self::$server?->user());
        $work($db->exec(...));
        $this->channel->end();
        self::assertEqualsCanonicalizing($told, $this->channel->client->tags());
    }

    /** @dataProvider works */
    #[DataProvider('works')]
    public function testDoctrineByPdo(callable $work, string ...$told): void
    {
        $db = $this->doctrine('pdo_mysql');
        $work(static fn (string $sql): int|string => $db->executeStatement($sql));
        $this->channel->end();
        self::assertEqualsCanonicalizing($told, $this->channel->client->tags());
    }

    public function testAnOutboxInATable(): void
    {
        $db = new \PDO('mysql:dbname=paper;unix_socket=' . self::$server?->socket(), self::$server?->user());
        $outbox = new TableOutbox($db, pauseSeconds: 0);
        $outbox->create();
        $outbox->store($call = new Invalidation(['place:Malm%C3%B6', str_repeat('x', 1024)], urls: ['/größe/'], soft: true));
        self::assertTrue($outbox->isDue());
        $seen = [];
        $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        self::assertEquals([$call], $seen);
        self::assertFalse($outbox->isDue());
    }

    /** @return iterable<string, array{0: callable(callable): mixed}> the work, and the tags that are published before the end of the script */
    public static function works(): iterable
    {
        yield 'a rollback' => [static function (callable $run): void {
            $run('BEGIN');
            changed('a');
            $run('ROLLBACK');
        }];
        yield 'a rollback of what was committed by a definition' => [static function (callable $run): void {
            $run('BEGIN');
            $run('INSERT INTO news VALUES (1)');
            changed('a');
            $run('ALTER TABLE news COMMENT = \'defined\'');
            $run('ROLLBACK');
        }, 'a', 'a:*'];
        yield 'an end and a beginning in one call' => [static function (callable $run): void {
            $run('BEGIN');
            changed('a');
            $run('COMMIT; BEGIN');
            changed('b');
            $run('ROLLBACK');
        }, 'a', 'a:*'];
    }

    public function testDoctrineByMysqli(): void
    {
        if (!extension_loaded('mysqli')) {
            self::markTestSkipped('PHP has no mysqli');
        }
        $db = $this->doctrine('mysqli');
        $db->beginTransaction();
        $db->executeStatement('INSERT INTO news VALUES (2)');
        changed('a');
        $db->executeStatement('ALTER TABLE news COMMENT = \'once more\'');
        $db->rollBack();
        $this->channel->end();
        self::assertEqualsCanonicalizing(['a', 'a:*'], $this->channel->client->tags());
    }

    private function doctrine(string $driver): Connection
    {
        if (stream_resolve_include_path('Doctrine/DBAL/autoload.php') === false) {
            self::markTestSkipped('Doctrine/DBAL/autoload.php is not installed');
        }
        require_once 'Doctrine/DBAL/autoload.php';
        $configuration = new Configuration();
        $configuration->setMiddlewares([new TransactionMiddleware()]);
        $parameters = ['driver' => $driver, 'dbname' => 'paper', 'unix_socket' => self::$server?->socket(), 'user' => self::$server?->user()];
        return DriverManager::getConnection($parameters, $configuration);
    }
}
