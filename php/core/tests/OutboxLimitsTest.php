<?php

/**
 * The bounds of an outbox, and who may write it.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Core;

use Pagewell\Core\FileOutbox;
use Pagewell\Core\Invalidation;
use Pagewell\Core\TableOutbox;
use Pagewell\Tests\Support\HasOutbox;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class OutboxLimitsTest extends TestCase
{
    use HasOutbox;

    protected function setUp(): void
    {
        $this->makeDirectory();
    }

    protected function tearDown(): void
    {
        $this->removeDirectory();
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testAboveItsBoundEverySiteHasACallForEverything(string $kind): void
    {
        $outbox = $this->outbox($kind);
        $long = str_repeat('t', 1000);
        foreach (['a.example', 'b.example'] as $site) {
            $kind === 'table'
                ? $outbox->store(...array_fill(0, intdiv(TableOutbox::ROWS_MAX, 2) + 1, new Invalidation(['t'], site: $site)))
                : $outbox->store(new Invalidation(array_map(static fn (int $n): string => "$long$n", range(1, 2100)), site: $site));
        }
        $seen = [];
        $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        self::assertEquals([new Invalidation(all: true, site: 'a.example'), new Invalidation(all: true, site: 'b.example')], $seen);
    }

    public function testACallThatComesMeanwhileStays(): void
    {
        $pdo = new class ('sqlite::memory:') extends \PDO {
            /** @param array<mixed> $options */
            public function prepare(string $query, array $options = []): \PDOStatement|false
            {
                str_starts_with($query, 'DELETE') && parent::exec("INSERT INTO pagewell_outbox (call_body, due_at) VALUES ('{\"tags\":[\"b\"],\"site\":\"b.example\"}', 0)");
                return parent::prepare($query, $options);
            }
        };
        ($outbox = new TableOutbox($pdo))->create();
        $outbox->store(...array_fill(0, 400, new Invalidation(['a'], site: 'a.example')));
        $outbox->store(...array_fill(0, TableOutbox::ROWS_MAX, new Invalidation(['a'], site: 'a.example')));
        $rows = $pdo->query('SELECT call_body FROM pagewell_outbox ORDER BY id')->fetchAll(\PDO::FETCH_COLUMN);
        self::assertSame(['{"tags":["b"],"site":"b.example"}', '{"all":true,"site":"a.example"}'], $rows);
    }

    public function testATableDoesNotTakeACallThatARollbackWouldRemove(): void
    {
        $pdo = new \PDO('sqlite::memory:');
        ($outbox = new TableOutbox($pdo))->create();
        $pdo->beginTransaction();
        $this->expectExceptionMessage('give TableOutbox a connection of its own');
        $outbox->store(new Invalidation(['news:4']));
    }

    public function testWhoeverMayWriteTheDirectoryMayWriteTheFiles(): void
    {
        chmod($this->directory, 0777);
        $before = umask(0022);
        $this->outbox('file')->store(new Invalidation(['news:4']));
        umask($before);
        foreach (['outbox', 'outbox.lock'] as $file) {
            self::assertSame('0666', substr(sprintf('%o', (int) fileperms("$this->directory/$file")), -4), $file);
        }
        if (posix_geteuid() === 0) {
            chown($this->directory, 'www-data');
            unlink("$this->directory/outbox.lock");
            $this->outbox('file')->store(new Invalidation(['news:5']));
            clearstatcache();
            self::assertSame(fileowner($this->directory), fileowner("$this->directory/outbox.lock"));
        }
    }

    /** @dataProvider kinds */
    #[DataProvider('kinds')]
    public function testItIsBounded(string $kind): void
    {
        $outbox = $this->outbox($kind);
        $tags = array_fill(0, 5000, str_repeat('x', 1000));
        $outbox->store(...array_fill(0, $kind === 'table' ? TableOutbox::ROWS_MAX : 1, new Invalidation(['news'])));
        $outbox->store(new Invalidation($tags));
        $outbox->store(new Invalidation(['after']));
        $seen = [];
        $outbox->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        self::assertEquals([new Invalidation(all: true), new Invalidation(['after'])], $seen);
    }

    public function testALineThatIsDamagedCountsAsEverything(): void
    {
        file_put_contents("$this->directory/outbox", "{\"tags\":[\"a\"]}\n{\"tags\":[\"b\n{\"tags\":[4]}\n{}\n");
        $seen = [];
        (new FileOutbox("$this->directory/outbox"))->deliver(static function (Invalidation $call) use (&$seen): void {
            $seen[] = $call;
        });
        $all = new Invalidation(all: true);
        self::assertEquals([new Invalidation(['a']), $all, $all, $all], $seen);
    }
}
