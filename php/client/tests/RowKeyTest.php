<?php

/**
 * Rows that are objects, where an id is wanted.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Core\Exception\InvalidTag;
use Pagewell\RequestScope;
use Pagewell\RowKey;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;
use function Pagewell\uses;
use function Pagewell\usesList;

final class RowKeyTest extends TestCase
{
    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    /** @dataProvider rows */
    #[DataProvider('rows')]
    public function testTheIdOfARow(object $row, int|string|null $id): void
    {
        self::assertSame($id, RowKey::of($row));
    }

    /** @return iterable<string, array{object, int|string|null}> */
    public static function rows(): iterable
    {
        yield 'an entity' => [new KeyedRow(4), 4];
        yield 'a model of Eloquent' => [new ModelRow(), 4];
        yield 'a public id' => [(object) ['id' => 'a'], 'a'];
        yield 'a UUID as id' => [new KeyedRow(RowUuid::of('0b9e')), '0b9e'];
        yield 'a UUID' => [RowUuid::of('0b9e'), '0b9e'];
        yield 'an enumeration' => [KeyedCase::Late, 'late'];
        yield 'a row as id' => [new KeyedRow(new KeyedRow(7)), 7];
        yield 'not saved yet' => [new KeyedRow(), null];
        yield 'an empty id' => [new KeyedRow(''), null];
        yield 'an id that is hidden, with a title' => [new HiddenRow(), null];
        yield 'a row whose parent hides its id, with a title' => [new class () extends HiddenParent {
            public function __toString(): string
            {
                return 'A title';
            }
        }, null];
        yield 'a title' => [new Title(), null];
        yield 'a title as id' => [new KeyedRow(new Title()), null];
        yield 'several rows' => [new \ArrayObject([new KeyedRow(4)]), null];
        yield 'a method that is made up' => [new AnyMethod(), null];
        $circle = new KeyedRow();
        $circle->refer($circle);
        yield 'a row that is its own id' => [$circle, null];
    }

    public function testThePageOfARowAndItsChange(): void
    {
        RecordingChannel::install();
        uses('news', new KeyedRow(4), 7);
        usesList('people', [new KeyedRow('ada')], 60);
        self::assertSame(['news:4', 'news:7', 'news:*', 'people:ada', 'people:*'], RequestScope::current()->tags());
        $channel = RecordingChannel::install('POST');
        changed('comments', new KeyedRow(17), news: new KeyedRow(4));
        self::assertSame(['Cache-Group-Invalidation: "comments", "comments:17", "news:4"'], $channel->lines());
    }

    public function testTheChangeOfARemovedRowIsOneOfAnUnknownRow(): void
    {
        $channel = RecordingChannel::install('POST');
        changed('news', new KeyedRow());
        self::assertSame(['Cache-Group-Invalidation: "news", "news:*"'], $channel->lines());
    }

    /** @dataProvider refused */
    #[DataProvider('refused')]
    public function testWhatIsRefusedSaysWhatToPass(\Closure $call, string $message): void
    {
        RecordingChannel::install('POST');
        $this->expectException(InvalidTag::class);
        $this->expectExceptionMessage($message);
        $call();
    }

    /** @return iterable<string, array{\Closure, string}> */
    public static function refused(): iterable
    {
        $class = KeyedRow::class;
        yield 'a tag in place of a kind' => [static fn () => uses('news:4'), "uses('news:4'): a kind has no colon. Write uses('news', '4'), or usesTags('news:4') for a tag as it stands."];
        yield 'its change' => [static fn () => changed('news:4'), "Write changed('news', '4'), or changedTags('news:4')"];
        yield 'an entity alone' => [static fn () => changed(new KeyedRow(4)), "changed(): the first argument is the kind that was written, a string, and not a $class. The row is the second: changed('news', \$news)."];
        yield 'a page of a row that is not saved' => [static fn () => uses('news', new KeyedRow()), "uses('news', …): this $class has no id yet. Save it first."];
        yield 'an object without an id' => [static fn () => uses('news', new \DateTimeImmutable()), "uses('news', …): a DateTimeImmutable has no id that can be read. Pass the id itself."];
        yield 'the change of an object without an id' => [static fn () => changed('news', new HiddenRow()), "changed('news', …): a " . HiddenRow::class . ' has no id that can be read. Pass the id itself.'];
    }
}

/** An entity, typed as those of Doctrine are: a removed one has no value. */
class KeyedRow
{
    private int|string|object $id;

    public function __construct(int|string|object|null $id = null)
    {
        $id === null || $this->id = $id;
    }

    public function refer(self $row): void
    {
        $this->id = $row;
    }

    public function getId(): int|string|object
    {
        return $this->id;
    }

    /** Not the key of the row. */
    public function getKey(): string
    {
        return 'a secret';
    }
}

final class ModelRow
{
    public function getKey(): int
    {
        return 4;
    }

    public function getRouteKey(): string
    {
        return 'the-ferry';
    }

    public function getId(): int
    {
        return 9;
    }
}

final class HiddenRow
{
    private int $id = 4;

    public function __toString(): string
    {
        return "A title of $this->id words";
    }
}

abstract class HiddenParent
{
    private int $id = 4;
}

final class Title
{
    public function __toString(): string
    {
        return 'A title';
    }
}

/** Made when it is asked for, because its parent may be a stand-in. */
final class RowUuid
{
    public static function of(string $text): object
    {
        class_exists(\Symfony\Component\Uid\AbstractUid::class) || require_once __DIR__ . '/../../tests/stand-ins/symfony-uid.php';
        return new class ($text) extends \Symfony\Component\Uid\AbstractUid {
            public function __construct(private readonly string $text)
            {
            }

            public function __toString(): string
            {
                return $this->text;
            }
        };
    }
}

final class AnyMethod
{
    /** @param list<mixed> $arguments */
    public function __call(string $name, array $arguments): int
    {
        return 4;
    }
}

enum KeyedCase: string
{
    case Late = 'late';
}
