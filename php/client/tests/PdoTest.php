<?php

/**
 * Where a transaction of Pagewell\Pdo begins and ends, seen by whether an answer says at once what has changed. What
 * is forgotten and what not is in TransactionTest.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Pdo;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\transaction;

final class PdoTest extends TestCase
{
    private RecordingChannel $channel;

    protected function setUp(): void
    {
        $this->channel = RecordingChannel::install('POST');
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testWhoseConnectionIsGoneKeepsNothingWaiting(): void
    {
        $db = new Pdo('sqlite::memory:');
        $db->beginTransaction();
        changed('a');
        $other = new Pdo('sqlite::memory:');
        unset($db);
        self::assertSame(['Cache-Group-Invalidation: "a", "a:*"'], $this->channel->lines());
        // As a worker's next job, which no transaction of another holds up.
        changed('b');
        self::assertSame(['Cache-Group-Invalidation: "a", "b", "a:*", "b:*"'], $this->channel->lines());
    }

    /** @dataProvider beginnings */
    #[DataProvider('beginnings')]
    public function testABeginningIsSeenBehindAComment(string $begin, bool $waits): void
    {
        $db = new Pdo('sqlite::memory:');
        $db->exec($begin);
        changed('a');
        self::assertSame($waits, $this->channel->lines() === []);
    }

    /** @return iterable<array{string, bool}> */
    public static function beginnings(): iterable
    {
        yield from [["/* from\n* a job */ BEGIN", true], ["-- from a job\n/**/ BEGIN", true], ['/* BEGIN */ SELECT 1', false], ["-- BEGIN\nSELECT 1", false]];
        yield from [['BEGIN; SELECT 1; COMMIT', false], ["BEGIN; SELECT 1;\nend transaction ;\n", false], ["BEGIN; SELECT 'a; COMMIT; b'", true]];
    }

    /** @dataProvider successors */
    #[DataProvider('successors')]
    public function testTheNextMayBeginInTheCallThatEndsTheOneBefore(string $sql, bool $waits): void
    {
        $db = new Pdo('sqlite::memory:');
        $db->beginTransaction();
        $db->exec($sql);
        changed('a');
        self::assertSame($waits, $this->channel->lines() === []);
    }

    /** @return iterable<array{string, bool}> */
    public static function successors(): iterable
    {
        yield from [['COMMIT; BEGIN', true], ["ROLLBACK;\n-- the next\nBEGIN IMMEDIATE;", true], ['END TRANSACTION; BEGIN; SELECT 1', true]];
        yield from [['COMMIT; BEGIN; SELECT 1; COMMIT', false], ["COMMIT; SELECT '; BEGIN'", false], ['COMMIT; -- BEGIN', false]];
    }

    public function testABlockOfStatementsIsNoTransaction(): void
    {
        foreach (['BEGIN NOT ATOMIC SELECT 1; END', 'BEGIN work_of_mine(); END;', "BEGIN TRY\nSELECT 1\nEND TRY"] as $block) {
            transaction()->begin();
            changed('a');
            transaction()->saw($block);
            self::assertSame([], $this->channel->lines(), $block);
            transaction()->rollBack();
        }
    }
}
