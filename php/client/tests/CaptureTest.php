<?php

/**
 * Automatic dependencies by the library: the statements that a request reports, compared with those that the database
 * logs, and the reasons for which a list is incomplete. With a real MariaDB.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Tests\Support\CaptureListener;
use Pagewell\Tests\Support\RealMariaDb;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class CaptureTest extends TestCase
{
    private static ?RealMariaDb $mariaDb = null;

    public static function setUpBeforeClass(): void
    {
        self::$mariaDb = RealMariaDb::missing() !== null ? null : new RealMariaDb(
            'CREATE DATABASE paper CHARACTER SET utf8mb4; CREATE DATABASE other; USE paper;'
            . 'CREATE TABLE news (id INT PRIMARY KEY, title VARCHAR(200));'
            . "INSERT INTO news VALUES (1, 'one'), (2, 'two');"
            . 'CREATE FUNCTION titled() RETURNS VARCHAR(200) READS SQL DATA RETURN (SELECT title FROM news LIMIT 1)'
        );
    }

    public static function tearDownAfterClass(): void
    {
        self::$mariaDb = null;
    }

    protected function setUp(): void
    {
        self::$mariaDb === null && self::markTestSkipped((string) RealMariaDb::missing());
    }

    /**
     * @param string $code with $db, a connection
     * @return array{string, list<string>}
     */
    private static function report(string $code, string $options = '', array $settings = []): array
    {
        $settings += ['mysqli.default_socket' => (string) self::$mariaDb?->socket()];
        return CaptureListener::run(self::connection('db', $options) . $code, settings: $settings);
    }

    private static function connection(string $name, string $options = '', string $class = 'Pagewell\Pdo'): string
    {
        $dsn = var_export('mysql:unix_socket=' . self::$mariaDb?->socket() . ';dbname=paper;charset=utf8mb4', true);
        $user = var_export(self::$mariaDb?->user(), true);
        return "\$$name = new \\$class($dsn, $user, '', [$options]);\n";
    }

    /** @return iterable<string, array{string}> */
    public static function modes(): iterable
    {
        yield 'native' => ['\PDO::ATTR_EMULATE_PREPARES => false'];
        yield 'emulated' => ['\PDO::ATTR_EMULATE_PREPARES => true'];
        yield 'persistent' => ['\PDO::ATTR_PERSISTENT => true'];
    }

    /** @dataProvider modes */
    #[DataProvider('modes')]
    public function testEachWayToSendAStatementIsReported(string $options): void
    {
        [$reason, $statements] = self::report(
            '$db->query("SELECT title FROM news WHERE id = 1")->fetchAll();'
            . '$db->exec("UPDATE news SET title = \'one\' WHERE id = 1");'
            . '$db->beginTransaction(); $one = $db->prepare("SELECT title FROM news WHERE id = ?"); $one->execute([1]); $one->fetchAll();'
            . '$one->bindValue(1, 2, \PDO::PARAM_INT); $one->execute(); $one->fetchAll(); $db->commit();'
            . '$named = $db->prepare("SELECT id FROM news WHERE title = :title"); $named->execute(["title" => "o\'ne"]); $named->fetchAll();'
            . '$named->bindParam(":title", $title); $title = "later"; $named->execute(); $named->fetchAll();',
            $options,
        );
        self::assertSame('', $reason);
        self::assertSame([
            'SELECT title FROM news WHERE id = 1',
            "UPDATE news SET title = 'one' WHERE id = 1",
            "SELECT title FROM news WHERE id = '1'",
            'SELECT title FROM news WHERE id = 2',
            "SELECT id FROM news WHERE title = 'o\\'ne'",
            "SELECT id FROM news WHERE title = 'later'",
        ], array_map(static fn (string $text): string => (string) preg_replace('/ +/', ' ', rtrim($text)), $statements));
    }

    /**
     * @dataProvider incomplete
     */
    #[DataProvider('incomplete')]
    public function testWhatIsNotProvenMakesTheListIncomplete(string $reason, string $code, string $options = '', array $settings = []): void
    {
        [$said, $statements] = self::report('$db->query("SELECT id FROM news")->fetchAll();' . $code, $options, $settings);
        self::assertStringContainsString($reason, $said, $code);
        self::assertSame([], $statements);
    }

    /** @return iterable<string, array{0: string, 1: string, 2?: string, 3?: array<string, string>}> */
    public static function incomplete(): iterable
    {
        $mysqli = 'function other() { return new mysqli(null, posix_getpwuid(posix_geteuid())["name"], "", "paper", 0, ini_get("mysqli.default_socket")); }';
        yield 'a statement by mysqli' => ['1 statements did not pass', "$mysqli other()->query('SELECT title FROM news');"];
        yield 'a prepared one' => ['1 statements did not pass', "$mysqli \$other = other(); \$s = \$other->prepare('SELECT title FROM news WHERE id = ?'); \$i = 1; \$s->bind_param('i', \$i); \$s->execute();"];
        yield 'a description by mysqli' => ['1 statements did not pass', "$mysqli other()->query('SHOW TABLES');"];
        yield 'a statement of PDO itself' => ['1 statements did not pass', '(new \ReflectionMethod(\PDO::class, "exec"))->invoke($db, "SET @a = 1");'];
        yield 'a statement that was executed again' => ['1 statements did not pass', '$q = $db->query("SELECT 1"); $q->closeCursor(); $q->execute();'];
        yield 'a class for statements' => ['class of its own', 'final class Own extends \PDOStatement {} $db->prepare("SELECT 1", [\PDO::ATTR_STATEMENT_CLASS => [Own::class]]);'];
        yield 'the same as an attribute' => ['class of its own', 'final class Own extends \PDOStatement {} $db->setAttribute(\PDO::ATTR_STATEMENT_CLASS, [Own::class]); $db->prepare("SELECT 1");'];
        yield 'another database' => ['a connection to a database that is no MariaDB', 'new \Pagewell\Pdo("sqlite::memory:");'];
        yield 'another schema' => ['uses the database other', '$db->exec("USE other"); $db->query("SELECT 1")->fetchAll();'];
        yield 'another schema for a while' => ['uses the database other', '$db->exec("USE other"); $db->query("SELECT 1"); $db->exec("USE paper");'];
        yield 'NO_BACKSLASH_ESCAPES' => ['sql_mode NO_BACKSLASH_ESCAPES', '$db->exec("SET sql_mode = \'NO_BACKSLASH_ESCAPES\'"); $db->query("SELECT 1")->fetchAll();'];
        yield 'ANSI_QUOTES for a while' => ['sql_mode ANSI_QUOTES', '$db->exec("SET sql_mode = ANSI_QUOTES"); $db->query("SELECT 1")->fetchAll(); $db->exec("SET sql_mode = DEFAULT");'];
        yield 'another character set' => ['character set latin1', '$db->exec("SET NAMES latin1"); $db->query("SELECT 1")->fetchAll();'];
        yield 'rows that are not committed' => ['not committed', '$db->exec("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"); $db->query("SELECT 1")->fetchAll();'];
        yield 'such rows in one transaction' => ['not committed', '$db->exec("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");'];
        yield 'a SELECT that failed' => ['a statement failed', 'try { $db->query("SELECT nothing FROM news"); } catch (\PDOException) {}'];
        yield 'a prepared one that failed' => ['a statement failed', '$s = $db->prepare("SELECT ?"); try { $s->execute(); } catch (\PDOException) {}', '\PDO::ATTR_EMULATE_PREPARES => true'];
        yield 'an uncertain value' => ['values are not certain', '$s = $db->prepare("SELECT ?"); $s->bindValue(1, 1.5, \PDO::PARAM_INT); $s->execute();', '\PDO::ATTR_EMULATE_PREPARES => false'];
        yield 'a stream' => ['values are not certain', '$s = $db->prepare("SELECT ?"); $s->bindValue(1, fopen("php://memory", "r"), \PDO::PARAM_LOB); $s->execute();'];
        yield 'an uncertain placeholder' => ['values are not certain', '$s = $db->prepare("SELECT ? # ?\n"); $s->execute([1]);', '\PDO::ATTR_EMULATE_PREPARES => false'];
        yield 'a statement that outlives its connection' => ['statement of a connection that was closed', '$db->__destruct(); $db->query("SELECT 1");'];
        yield 'a fatal error' => ['fatal error', 'ini_set("display_errors", "0"); undefined();'];
        yield 'an unbuffered result at the end' => ['does not say its sql_mode', '$db->setAttribute(\PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false); $q = $db->query("SELECT id FROM news");'];
        yield 'more than 4 MB' => ['more than 4 MB', 'for ($n = 0; $n < 5; $n++) { $db->query("SELECT LENGTH(\'" . str_repeat("x", 1 << 20) . "\')")->fetchAll(); }'];
        yield 'PHP does not count' => ['load the extension mysqli', '', '', ['mysqlnd.collect_statistics' => '0']];
        yield 'PHP cannot say' => ['load the extension mysqli', '', '', ['disable_functions' => 'mysqli_get_client_stats']];
    }

    public function testAPageWithoutAStatementIsNotComplete(): void
    {
        self::assertSame(['no statement passed through the library', []], self::report('$db->prepare("SELECT 1");'));
        self::assertSame(['no statement passed through the library', []], CaptureListener::run('echo 1;'));
    }

    public function testSeveralConnectionsAreProvenEach(): void
    {
        $second = self::connection('second');
        $read = '->query("SELECT title FROM news")->fetchAll();';
        [$reason, $statements] = self::report("\$db$read $second \$second$read unset(\$second); \$db$read");
        self::assertSame(['', 3], [$reason, count($statements)]);
        [$reason] = self::report(str_replace('dbname=paper', 'dbname=other', $second) . "\$db$read \$second->query('SELECT 1');");
        self::assertStringContainsString('uses the database other', $reason);
        // A connection that is not used, and one in a transaction.
        $transaction = '$second->beginTransaction(); $second' . $read . ' $second->rollBack();';
        self::assertSame('', self::report("$second \$db$read")[0]);
        self::assertSame('', self::report("$second $transaction")[0]);
    }

    public function testAnotherServerIsNoticed(): void
    {
        $other = new RealMariaDb('CREATE DATABASE paper CHARACTER SET utf8mb4');
        $code = str_replace((string) self::$mariaDb?->socket(), $other->socket(), self::connection('second'));
        [$reason] = self::report('$db->query("SELECT 1");' . $code . '$second->query("SELECT 1");');
        self::assertSame('the connections lead to two servers', $reason);
    }

    public function testSettingsBeforeTheFirstStatementDoNotMatter(): void
    {
        [$reason, $statements] = self::report('$db->exec("SET sql_mode = ANSI_QUOTES"); $db->exec("SET NAMES latin1"); $db->exec("SET NAMES utf8mb4"); $db->exec("SET sql_mode = \'\'"); $db->query("SELECT 1");');
        self::assertSame(['', 5], [$reason, count($statements)]);
    }

    public function testShutdownFunctionsCount(): void
    {
        [$reason, $statements] = self::report('register_shutdown_function(function () use ($db) { $db->query("SELECT 2"); }); $db->query("SELECT 1"); exit;');
        self::assertSame(['', ['SELECT 1', 'SELECT 2']], [$reason, $statements]);
    }

    public function testWithoutParametersNothingIsCaptured(): void
    {
        $code = '$db->query("SELECT 1"); $db->beginTransaction(); $db->commit(); exit(Pagewell\Capture\StatementCapture::running() === null && get_class($db->prepare("SELECT 1")) === "PDOStatement" ? 0 : 1);';
        $autoload = var_export(realpath(__DIR__ . '/../autoload.php'), true);
        exec(escapeshellarg(PHP_BINARY) . ' -r ' . escapeshellarg("require $autoload; " . self::connection('db') . $code), $output, $status);
        self::assertSame([[], 0], [$output, $status]);
    }
}
