<?php

/**
 * Changes that wait, are sent and are discarded: with plain calls, and with Pagewell\Pdo on SQLite.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Core\Exception\ChangeBeforeCommit;
use Pagewell\Pdo;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\changedNow;
use function Pagewell\transaction;

final class TransactionTest extends TestCase
{
    private RecordingChannel $channel;

    protected function setUp(): void
    {
        $this->channel = RecordingChannel::install(null);
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        RequestScope::begin();
    }

    public function testWhatIsSaidWaitsForTheCommit(): void
    {
        $this->channel = RecordingChannel::install('POST');
        transaction()->begin();
        changed('news', 4);
        self::assertSame([], $this->channel->lines());
        transaction()->commit();
        self::assertSame(['Cache-Group-Invalidation: "news", "news:4"'], $this->channel->lines());
    }

    public function testARollbackForgets(): void
    {
        transaction()->begin();
        changed('news', 4);
        transaction()->rollBack();
        changed('comments');
        $this->assertTold('comments', 'comments:*');
    }

    public function testLevels(): void
    {
        transaction()->begin();
        changed('a');
        transaction()->begin();
        changed('b');
        transaction()->rollBack();
        transaction()->begin();
        changed('c');
        transaction()->commit();
        self::assertTrue(transaction()->isOpen());
        transaction()->commit();
        $this->assertTold('a', 'c', 'a:*', 'c:*');
    }

    public function testSavepoints(): void
    {
        $transaction = transaction();
        $transaction->begin();
        $transaction->savepoint('one');
        changed('a');
        $transaction->savepoint('two');
        changed('b');
        $transaction->rollBackTo('two');
        changed('c');
        $transaction->release('one');
        $transaction->rollBackTo('one');
        $transaction->rollBackTo('never heard of');
        $transaction->commit();
        $this->assertTold('a', 'c', 'a:*', 'c:*');
    }

    public function testEveryRollbackToASavepointForgetsWhatCameSince(): void
    {
        $transaction = transaction();
        $transaction->begin();
        $transaction->savepoint('again');
        foreach (['a', 'b'] as $kind) {
            changed($kind);
            $transaction->rollBackTo('again');
        }
        $transaction->commit();
        $this->assertTold();
    }

    public function testMoreMarksThanAreNotedLoseNothing(): void
    {
        for ($n = 0; $n < 1500; $n++) {
            transaction()->begin();
            changed('news', $n);
        }
        for ($n = 0; $n < 1500; $n++) {
            self::assertTrue(transaction()->isOpen());
            transaction()->commit();
        }
        $this->channel->end();
        self::assertContains('news:1499', $this->channel->client->tags());
    }

    public function testOfTwoConnectionsTheFirstCommitTells(): void
    {
        transaction('one')->begin();
        transaction('two')->begin();
        changed('news', 4);
        transaction('one')->rollBack();
        transaction('two')->commit();
        $this->assertTold('news', 'news:4');
    }

    public function testWhatIsStillOpenAtTheEndIsTold(): void
    {
        transaction()->begin();
        changed('news', 4);
        $this->assertTold('news', 'news:4');
    }

    public function testACommitAfterTheHeadersIsToldByTheControlInterface(): void
    {
        $this->channel = RecordingChannel::install('POST');
        transaction()->begin();
        changed('news', 4);
        $this->channel->send();
        transaction()->commit();
        self::assertSame([], $this->channel->lines());
        $this->assertTold('news', 'news:4');
    }

    public function testNothingIsToldAtOnceBeforeTheCommit(): void
    {
        transaction()->begin();
        $this->expectException(ChangeBeforeCommit::class);
        changedNow('news', 4);
    }

    /** @dataProvider statements */
    #[DataProvider('statements')]
    public function testPdo(callable $work, string ...$told): void
    {
        $db = new Pdo('sqlite::memory:');
        $db->exec('CREATE TABLE news (id)');
        $work($db);
        $this->assertTold(...$told);
    }

    /** @return iterable<string, array{0: callable(Pdo): mixed}> the work, and the tags that are published before the end of the script */
    public static function statements(): iterable
    {
        yield 'commit()' => [static function (Pdo $db): void {
            $db->beginTransaction();
            changed('a');
            $db->commit();
        }, 'a', 'a:*'];
        yield 'rollBack()' => [static function (Pdo $db): void {
            $db->beginTransaction();
            changed('a');
            $db->rollBack();
        }];
        yield 'statements' => [static function (Pdo $db): void {
            $db->exec('begin immediate transaction');
            changed('a');
            $db->exec('SAVEPOINT "Here"');
            changed('b');
            $db->query('ROLLBACK TO here;');
            $db->exec("/* nothing */ SELECT 'COMMIT'");
            $db->exec('COMMIT');
        }, 'a', 'a:*'];
        yield 'a rollback by statement' => [static function (Pdo $db): void {
            $db->exec('BEGIN');
            changed('a');
            $db->exec('ROLLBACK');
        }];
        yield 'a savepoint released, and one rolled back to' => [static function (Pdo $db): void {
            $db->beginTransaction();
            $db->exec('SAVEPOINT a');
            changed('a');
            $db->exec('RELEASE SAVEPOINT a');
            $db->exec('SAVEPOINT b');
            changed('b');
            $db->exec('ROLLBACK TRANSACTION TO SAVEPOINT b');
            $db->commit();
        }, 'a', 'a:*'];
        yield 'a commit that fails: nobody knows' => [static function (Pdo $db): void {
            changed('a');
            try {
                $db->commit();
            } catch (\PDOException) {
            }
        }, 'a', 'a:*'];
        yield 'committed unseen, then rolled back' => [static function (Pdo $db): void {
            $db->exec('BEGIN');
            changed('a');
            $db->prepare('COMMIT')->execute();
            try {
                $db->rollBack();
            } catch (\PDOException) {
            }
        }, 'a', 'a:*'];
        yield 'committed unseen, then begun again' => [static function (Pdo $db): void {
            $db->exec('BEGIN');
            changed('a');
            $db->prepare('COMMIT')->execute();
            $db->beginTransaction();
            changed('b');
            $db->rollBack();
        }, 'a', 'a:*'];
        yield 'a statement that fails' => [static function (Pdo $db): void {
            $db->beginTransaction();
            changed('a');
            try {
                $db->exec('ROLLBACK TO nowhere');
            } catch (\PDOException) {
            }
            $db->commit();
        }, 'a', 'a:*'];
    }

    private function assertTold(string ...$tags): void
    {
        $this->channel->end();
        self::assertEqualsCanonicalizing($tags, $this->channel->client->tags());
    }
}
