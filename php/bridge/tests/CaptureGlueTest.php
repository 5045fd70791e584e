<?php

/**
 * Automatic dependencies with Doctrine and Laravel: the statements that a request reports, with a real MariaDB.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Bridge;

use Pagewell\Tests\Support\CaptureListener;
use Pagewell\Tests\Support\RealMariaDb;
use PHPUnit\Framework\TestCase;

final class CaptureGlueTest extends TestCase
{
    private static ?RealMariaDb $mariaDb = null;

    public static function setUpBeforeClass(): void
    {
        self::$mariaDb = RealMariaDb::missing() !== null ? null : new RealMariaDb(
            'CREATE DATABASE paper CHARACTER SET utf8mb4; USE paper;'
            . 'CREATE TABLE news (id INT PRIMARY KEY, title VARCHAR(200)); INSERT INTO news VALUES (1, \'one\'), (2, \'two\')'
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
     * @param string $parameters of the connection, PHP
     * @return array{string, list<string>}
     */
    private static function doctrine(string $code, string $parameters = "'driver' => 'pdo_mysql'"): array
    {
        self::required('Doctrine/DBAL/autoload.php');
        [$socket, $user] = [self::$mariaDb?->socket(), self::$mariaDb?->user()];
        return CaptureListener::run(<<<PHP
            require 'Doctrine/DBAL/autoload.php';
            \$configuration = new Doctrine\DBAL\Configuration();
            \$configuration->setMiddlewares([new Pagewell\Bridge\Doctrine\CaptureMiddleware(), new Pagewell\Bridge\Doctrine\TransactionMiddleware()]);
            \$db = Doctrine\DBAL\DriverManager::getConnection([
                'unix_socket' => '$socket', 'user' => '$user', 'dbname' => 'paper', 'charset' => 'utf8mb4', $parameters
            ], \$configuration);
            $code
            PHP);
    }

    public function testDoctrineReportsItsStatements(): void
    {
        [$reason, $statements] = self::doctrine(<<<'PHP'
            $db->fetchAllAssociative('SELECT * FROM news WHERE id = ?', [1], [Doctrine\DBAL\ParameterType::INTEGER]);
            $db->transactional(fn () => $db->insert('news', ['id' => 9, 'title' => "o'ne"]));
            $db->transactional(fn () => $db->transactional(fn () => $db->delete('news', ['id' => 9])));
            $db->createQueryBuilder()->select('title')->from('news')->where('id IN (:ids)')
                ->setParameter('ids', [1, 2], Doctrine\DBAL\ArrayParameterType::INTEGER)->executeQuery()->fetchAllNumeric();
            $db->executeQuery('SELECT 1')->fetchOne();
            $db->executeStatement("SET time_zone = '+00:00'");
            $db->close();
            $db->fetchOne('SELECT title FROM news WHERE title = :title', ['title' => 'x']);
            PHP);
        self::assertSame('', $reason);
        self::assertSame([
            'SELECT * FROM news WHERE id = 1',
            "INSERT INTO news (id, title) VALUES ('9', 'o\\'ne')",
            "DELETE FROM news WHERE id = '9'",
            'SELECT title FROM news WHERE id IN (1, 2)',
            'SELECT 1',
            "SET time_zone = '+00:00'",
            "SELECT title FROM news WHERE title = 'x'",
        ], array_values(preg_grep('/SAVEPOINT/', $statements, PREG_GREP_INVERT)));
    }

    public function testConnectionsOfDoctrineThatCannotReportAreNoticed(): void
    {
        self::assertStringContainsString('none of PDO', self::doctrine('$db->fetchOne("SELECT 1");', "'driver' => 'mysqli'")[0]);
        self::assertStringContainsString('persistent', self::doctrine('$db->fetchOne("SELECT 1");', "'driver' => 'pdo_mysql', 'driverOptions' => [PDO::ATTR_PERSISTENT => true]")[0]);
        self::assertStringContainsString('no MariaDB', self::doctrine('$db->fetchOne("SELECT 1");', "'driver' => 'pdo_sqlite', 'memory' => true")[0]);
        self::assertStringContainsString('did not pass', self::doctrine('$db->fetchOne("SELECT 1"); $db->getNativeConnection()->query("SHOW TABLES");')[0]);
        // A middleware below that reads a row when it connects.
        $reading = '$configuration->setMiddlewares([new class implements Doctrine\DBAL\Driver\Middleware {
            public function wrap(Doctrine\DBAL\Driver $driver): Doctrine\DBAL\Driver {
                return new class ($driver) extends Doctrine\DBAL\Driver\Middleware\AbstractDriverMiddleware {
                    public function connect(array $params): Doctrine\DBAL\Driver\Connection { $own = parent::connect($params); $own->query("SELECT title FROM news"); return $own; }
                };
            }
        }, ...$configuration->getMiddlewares()]); $db = Doctrine\DBAL\DriverManager::getConnection($db->getParams(), $configuration); $db->fetchOne("SELECT 1");';
        self::assertSame('1 statements did not pass through the library', self::doctrine($reading)[0]);
        self::assertSame('', self::doctrine('$db->fetchOne("SELECT 1");', "'driver' => 'pdo_mysql', 'driverOptions' => [PDO::MYSQL_ATTR_INIT_COMMAND => \"SET time_zone = '+00:00'\"]")[0]);
        self::assertStringContainsString('a statement failed', self::doctrine('try { $db->fetchOne("SELECT nothing"); } catch (Exception) {}')[0]);
    }

    /** @return array{string, list<string>} */
    private static function laravel(string $code): array
    {
        self::required('Illuminate/autoload.php');
        [$socket, $user] = [self::$mariaDb?->socket(), self::$mariaDb?->user()];
        return CaptureListener::run(<<<PHP
            require 'Illuminate/autoload.php';
            use Illuminate\Support\Facades\{DB, Cache};
            \$app = new Illuminate\Foundation\Application(sys_get_temp_dir());
            \$app->instance('config', new Illuminate\Config\Repository([
                'database' => ['default' => 'mysql', 'connections' => [
                    'mysql' => ['driver' => 'mysql', 'unix_socket' => '$socket', 'username' => '$user', 'password' => '', 'database' => 'paper',
                        'charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'timezone' => '+00:00', 'strict' => true, 'host' => 'localhost', 'prefix' => ''],
                    'sqlite' => ['driver' => 'sqlite', 'database' => ':memory:', 'prefix' => ''],
                ]],
                'cache' => ['default' => 'array', 'stores' => [
                    'array' => ['driver' => 'array'], 'files' => ['driver' => 'file', 'path' => sys_get_temp_dir() . '/pagewell-cache-' . getmypid()],
                ]],
            ]));
            Illuminate\Support\Facades\Facade::setFacadeApplication(\$app);
            foreach ([Illuminate\Events\EventServiceProvider::class, Illuminate\Filesystem\FilesystemServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class] as \$provider) {
                (new \$provider(\$app))->register();
            }
            Pagewell\Laravel\StatementReports::register(\$app);
            $code
            PHP);
    }

    public function testLaravelReportsItsStatements(): void
    {
        [$reason, $statements] = self::laravel(<<<'PHP'
            DB::table('news')->where('id', 1)->first();
            DB::transaction(fn () => DB::transaction(fn () => DB::table('news')->where('title', "o'ne")->update(['title' => null])));
            DB::table('news')->whereIn('id', ['1', 2])->pluck('title');
            DB::unprepared("UPDATE news SET title = 'b' WHERE id = 2");
            foreach (DB::table('news')->orderBy('id')->cursor() as $row) {
            }
            Cache::put('a', 1); Cache::get('a');
            PHP);
        self::assertSame('', $reason);
        $own = array_values(preg_grep('/^ *set |SAVEPOINT|^use /i', $statements, PREG_GREP_INVERT));
        self::assertSame([
            'select * from `news` where `id` = 1 limit 1',
            "update `news` set `title` = NULL where `title` = 'o\\'ne'",
            "select `title` from `news` where `id` in ( '1' , 2 )",
            "UPDATE news SET title = 'b' WHERE id = 2",
            'select * from `news` order by `id` asc',
        ], array_map(static fn (string $text): string => (string) preg_replace('/ +/', ' ', trim($text)), $own));
    }

    public function testWhatLaravelReadsElsewhereIsNoticed(): void
    {
        self::assertSame('', self::laravel('DB::select("select 1");')[0]);
        self::assertStringContainsString('driver sqlite', self::laravel('DB::select("select 1"); DB::connection("sqlite")->select("select 1");')[0]);
        self::assertSame('hidden: laravel-cache:files', self::laravel('DB::select("select 1"); config(["cache.default" => "files"]); Cache::put("a", 1); Cache::get("a"); Cache::flush();')[0]);
        self::assertStringContainsString('did not pass', self::laravel('DB::select("select 1"); (new mysqli(null, posix_getpwuid(posix_geteuid())["name"], "", "paper", 0, config("database.connections.mysql.unix_socket")))->query("select 1");')[0]);
    }

    /** Pools of code, and values that are missing, hide nothing. */
    public function testAValueOfACachePoolOfSymfonyIsNoticed(): void
    {
        self::required('Symfony/Bundle/FrameworkBundle/autoload.php');
        $ask = static fn (string $code, bool $isDebug): string => self::doctrine(<<<PHP
            \$db->fetchAllAssociative('SELECT * FROM news');
            foreach (['Bundle/FrameworkBundle', 'Component/HttpKernel', 'Component/Cache'] as \$part) { require_once "Symfony/\$part/autoload.php"; }
            final class Site extends Symfony\Component\HttpKernel\Kernel {
                public static string \$directory;
                public function registerBundles(): iterable { return [new Symfony\Bundle\FrameworkBundle\FrameworkBundle(), new Pagewell\Symfony\PagewellBundle()]; }
                public function getProjectDir(): string { return self::\$directory; }
                public function registerContainerConfiguration(Symfony\Component\Config\Loader\LoaderInterface \$loader): void {
                    \$loader->load(function (Symfony\Component\DependencyInjection\ContainerBuilder \$container): void {
                        \$container->loadFromExtension('framework', ['secret' => 's', 'http_method_override' => false, 'cache' => ['pools' => [
                            'pool.code' => ['adapter' => 'cache.system', 'public' => true], 'pool.array' => ['adapter' => 'cache.adapter.array', 'public' => true],
                            'pool.tags' => ['adapter' => 'cache.app', 'tags' => true, 'public' => true],
                        ]]]);
                        \$container->register('logger', Psr\Log\NullLogger::class);
                    });
                }
            }
            mkdir(Site::\$directory = sys_get_temp_dir() . '/pagewell-pools-' . bin2hex(random_bytes(6)));
            \$kernel = new Site('prod', '$isDebug' === '1');
            \$kernel->boot();
            \$pool = fn (string \$name) => \$kernel->getContainer()->get(\$name);
            \$made = fn (): string => 'made';
            $code
            (new Symfony\Component\Filesystem\Filesystem())->remove(Site::\$directory);
            PHP)[0];
        foreach ([false, true] as $isDebug) {
            foreach (['pool.code', 'pool.array'] as $name) {
                self::assertSame('', $ask("\$pool('$name')->get('a', \$made); \$pool('$name')->get('a', \$made);", $isDebug), $name);
            }
            self::assertSame('', $ask("\$pool('cache.app')->get('a', \$made); \$pool('cache.app')->hasItem('b');", $isDebug));
            foreach (['cache.app', 'pool.tags'] as $name) {
                self::assertSame("hidden: symfony-cache:$name", $ask("\$pool('$name')->get('a', \$made); \$pool('$name')->get('a', \$made);", $isDebug));
                self::assertSame("hidden: symfony-cache:$name", $ask("\$pool('$name')->get('a', \$made); \$pool('$name')->hasItem('a');", $isDebug));
            }
        }
    }

    /** What HttpFoundation sends if the application says nothing would keep each page out of the cache. */
    public function testTheDefaultOfHttpFoundationIsRemovedFromPagesWithoutASession(): void
    {
        self::required('Illuminate/autoload.php');
        [$reason] = self::laravel(<<<'PHP'
            use Pagewell\Bridge\HttpFoundation\ResponseLines;
            function sent(array $fields, bool $hasSession = false): ?string {
                $request = Illuminate\Http\Request::create('/');
                $hasSession && $request->setLaravelSession(new Illuminate\Session\Store('s', new Illuminate\Session\ArraySessionHandler(1)));
                $response = new Symfony\Component\HttpFoundation\Response('', 200, $fields);
                ResponseLines::finish(Pagewell\CollectingChannel::begin('GET'), $request, $response);
                return $response->headers->get('Cache-Control');
            }
            $said = [sent([]), sent(['Cache-Control' => 'private']), sent(['Cache-Control' => 'no-cache, private']), sent([], true)];
            DB::select('select 1');
            Pagewell\RequestScope::current()->signedIn();
            $said[] = sent([]);
            throw new Exception(json_encode($said) === '[null,"private","no-cache, private","no-cache, private","no-cache, private"]' ? 'a' : json_encode($said));
            PHP);
        self::assertSame('the visitor is signed in', $reason);
        self::assertStringContainsString('Uncaught Exception: a in', CaptureListener::$output);
    }

    private static function required(string $file): void
    {
        stream_resolve_include_path($file) !== false || self::markTestSkipped("$file is not installed");
    }
}
