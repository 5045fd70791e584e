<?php

/**
 * The text of a statement with its values: a real MariaDB must return the same for it as for the prepared statement,
 * in each sql_mode, for values of all types.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Capture\StatementText;
use Pagewell\Tests\Support\RealMariaDb;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class StatementTextTest extends TestCase
{
    private const VALUES = [
        "it's", '\\', "\\'", "'", '"', '`', "a\0b\x1a\r\n", '?', ':a', '-- ', '/*', '#', "' OR 1 -- ", 'Malmö', "\xff\xfe", '', '5', '5x', '-0', ' 5', '1e3',
        '9223372036854775808', 5, -5, 0, PHP_INT_MIN, PHP_INT_MAX, true, false, null, 1.5,
    ];
    private const TYPES = [\PDO::PARAM_STR, \PDO::PARAM_INT, \PDO::PARAM_BOOL, \PDO::PARAM_NULL, \PDO::PARAM_LOB, \PDO::PARAM_STR | \PDO::PARAM_STR_NATL];

    private static ?RealMariaDb $mariaDb = null;

    public static function setUpBeforeClass(): void
    {
        self::$mariaDb = RealMariaDb::missing() === null ? new RealMariaDb('SELECT 1') : null;
    }

    public static function tearDownAfterClass(): void
    {
        self::$mariaDb = null;
    }

    /** @return iterable<string, array{bool, string}> */
    public static function modes(): iterable
    {
        foreach (['', 'NO_BACKSLASH_ESCAPES', 'ANSI_QUOTES', 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', 'STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY'] as $mode) {
            yield "native $mode" => [false, $mode];
            yield "emulated $mode" => [true, $mode];
        }
    }

    /** @dataProvider modes */
    #[DataProvider('modes')]
    public function testTheServerUnderstandsTheSame(bool $isEmulated, string $mode): void
    {
        self::$mariaDb === null && self::markTestSkipped((string) RealMariaDb::missing());
        $db = new \PDO('mysql:unix_socket=' . self::$mariaDb->socket() . ';charset=utf8mb4', self::$mariaDb->user(), '', [\PDO::ATTR_EMULATE_PREPARES => $isEmulated]);
        $db->exec("SET sql_mode = '$mode'");
        [$query, $certain] = ["SELECT HEX(?), ?, ?, 1-?, 'it''s ?', /* ' ? */ ? -- ?\n, ?", 0];
        foreach (self::VALUES as $value) {
            foreach (self::TYPES as $type) {
                $statement = $db->prepare($query);
                self::assertSame($isEmulated, (bool) $statement->getAttribute(\PDO::ATTR_EMULATE_PREPARES));
                $values = [];
                for ($at = 1; $at <= 6; $at++) {
                    $statement->bindValue($at, $value, $type);
                    $values[$at] = [StatementText::bound($value, $type), $type];
                }
                $text = StatementText::of($query, $values, $isEmulated, $db->quote(...));
                if ($text === null) {
                    continue;
                }
                $certain++;
                $rows = self::rows($db, static fn () => $statement->execute() ? $statement : throw new \PDOException());
                if ($value !== "\xff\xfe") {
                    self::assertSame($rows, self::rows($db, static fn () => $db->query($text)), "$text " . var_export($value, true) . " $type");
                }
            }
        }
        self::assertGreaterThan($isEmulated ? 115 : 110, $certain);
    }

    private static function rows(\PDO $db, callable $send): mixed
    {
        try {
            $result = $send();
            // The width of a whole number is that of the value, or of PHP's type.
            $kinds = array_map(static fn (int $at): string => str_replace(['TINY', 'LONGLONG'], 'LONG', $result->getColumnMeta($at)['native_type'] ?? ''), range(0, 6));
            $row = $result->fetch(\PDO::FETCH_NUM);
            if (!str_contains((string) $db->getAttribute(\PDO::ATTR_SERVER_VERSION), 'MariaDB')) {
                // MySQL derives the types of parameters from their place: 1-? is a decimal number, 1-'5' is not.
                [$kinds, $row] = [[], [...array_map(strval(...), array_slice($row, 0, 3)), (float) $row[3], ...array_map(strval(...), array_slice($row, 4))]];
            }
            return [$kinds, $row];
        } catch (\PDOException $error) {
            // The rest is the text of the expression.
            return explode(" in '", $error->getMessage())[0];
        }
    }

    /** @dataProvider texts */
    #[DataProvider('texts')]
    public function testPlaceholdersAreFoundAsPdoAndTheServerFindThem(string $query, ?string $native, ?string $emulated): void
    {
        $values = [1 => ['a', \PDO::PARAM_STR], 2 => [7, \PDO::PARAM_INT], ':a' => ['a', \PDO::PARAM_STR], ':ab' => [7, \PDO::PARAM_INT]];
        $quote = static fn (string $text): string => "'$text'";
        self::assertSame([$native, $emulated], [StatementText::of($query, $values, false, $quote), StatementText::of($query, $values, true, $quote)]);
    }

    /** @return iterable<array{string, ?string, ?string}> */
    public static function texts(): iterable
    {
        yield ['SELECT 1', 'SELECT 1', 'SELECT 1'];
        yield ['', '', ''];
        yield ['a=?AND b=?', "a= 'a' AND b= 7 ", "a='a'AND b=7"];
        yield ['a=:a AND b=:ab', "a= 'a'  AND b= 7 ", "a='a' AND b=7"];
        yield ["'?' \"?\" `a` ?", "'?' \"?\" `a`  'a' ", "'?' \"?\" `a` 'a'"];
        yield ["'\\'?' ?", "'\\'?'  'a' ", "'\\'?' 'a'"];
        yield ["/* ?\n' */ -- ' ?\n?", "/* ?\n' */ -- ' ?\n 'a' ", "/* ?\n' */ -- ' ?\n'a'"];
        yield ['a - ? / ?', "a -  'a'  /  7 ", "a - 'a' / 7"];
        // Not certain, or not bound.
        foreach (['? # ?', '??', '@a:=?', ':a:', '::a', '`?` = ?', '`:a`', '/*!50000 ? */', '/*M! ? */', '--?', "-- ?\r?", "'?", '"?', '`a', '/* ?', ':other', '?, ?, ?'] as $text) {
            yield [$text, null, null];
        }
    }

    public function testALongTextNeedsNoDeepStack(): void
    {
        $query = "SELECT '" . str_repeat("a''\\'", 200_000) . "', ?" . str_repeat('/* a */', 100_000);
        self::assertSame(str_replace('?', "'a'", $query), StatementText::of($query, [1 => ['a', \PDO::PARAM_STR]], true, static fn (string $text): string => "'$text'"));
    }
}
