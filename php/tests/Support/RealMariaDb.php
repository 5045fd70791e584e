<?php

/**
 * A MariaDB of its own: a private directory, a Unix socket, no network. It goes with the object. Where
 * only MySQL is installed, it is one.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

/** A running server, into which the user of the tests may log in without a password. */
final class RealMariaDb
{
    private const MARIADB = '/usr/sbin/mariadbd';
    private const MYSQL = '/usr/sbin/mysqld';

    /** A directory with the system tables only, which is made once and copied for each server: that takes seconds. */
    private static ?string $fresh = null;

    private string $directory;
    private string $user;

    /** The account for the tests; a new MySQL has only one, without a password. */
    private string $account;

    /** @var resource */
    private $process;

    /**
     * @param string $sql        that is run first
     * @param bool   $isFollowed whether it has a change stream
     */
    public function __construct(string $sql, bool $isFollowed = false)
    {
        $this->directory = sys_get_temp_dir() . '/pagewell-db-' . bin2hex(random_bytes(6));
        // The user that runs PHP may access the socket in it; only the server accesses the data.
        mkdir($this->directory, 0755);
        $this->user = posix_getpwuid(posix_geteuid())['name'] ?? 'root';
        // A starting server removes the temporary tables of others in a directory that they share.
        mkdir("{$this->directory}/tmp", 0700);
        $this->account = self::isMariaDb() ? $this->user : 'root';
        $this->copyFresh();
        $log = ['file', "{$this->directory}/db.log", 'a'];
        $command = [self::isMariaDb() ? self::MARIADB : self::MYSQL, ...$this->options("{$this->directory}/data"), "--socket={$this->directory}/db.sock", '--skip-networking', '--innodb-buffer-pool-size=32M', '--innodb-flush-log-at-trx-commit=2', ...($isFollowed ? ['--log-bin=bin', '--binlog-format=ROW', '--server-id=1'] : []), ...(self::isMariaDb() ? [] : ['--mysqlx=OFF', '--secure-file-priv=NULL'])];
        $process = proc_open($command, [1 => $log, 2 => $log], $pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException("$command[0] cannot be started");
        }
        $this->process = $process;
        $this->waitUntilItListens();
        $this->sql($sql);
    }

    /** @return list<string> */
    private function options(string $data): array
    {
        return ['--no-defaults', "--datadir=$data", "--tmpdir={$this->directory}/tmp", "--user={$this->user}", '--skip-name-resolve'];
    }

    private function copyFresh(): void
    {
        if (self::$fresh === null) {
            $fresh = sys_get_temp_dir() . '/pagewell-db-fresh-' . bin2hex(random_bytes(6));
            mkdir($fresh, 0700);
            register_shutdown_function(static fn () => exec('rm -rf ' . escapeshellarg($fresh)));
            $options = $this->options("$fresh/data");
            $this->execute(self::isMariaDb()
                ? ['mariadb-install-db', ...$options, '--skip-test-db', '--auth-root-authentication-method=socket', "--auth-root-socket-user={$this->user}"]
                : [self::MYSQL, ...$options, '--initialize-insecure']);
            self::$fresh = $fresh;
        }
        $this->execute(['cp', '-a', '--sparse=always', self::$fresh . '/data', "{$this->directory}/data"]);
    }

    /** mariadb-admin has a --wait, but asks only every five seconds. */
    private function waitUntilItListens(): void
    {
        for ($attempts = 60_000; $attempts > 0 && proc_get_status($this->process)['running']; $attempts--) {
            if (@stream_socket_client("unix://{$this->socket()}") !== false) {
                return;
            }
            usleep(1000);
        }
        throw new \RuntimeException('the database does not listen: ' . file_get_contents("{$this->directory}/db.log"));
    }

    /** Runs statements, and returns the rows of their results without the names of columns. */
    public function sql(string $sql): string
    {
        $command = [self::isMariaDb() ? 'mariadb' : 'mysql', '--no-defaults', "--socket={$this->directory}/db.sock", "--user={$this->account}", '--skip-column-names', '-e', $sql];
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['file', "{$this->directory}/db.log", 'a']], $pipes);
        $rows = is_resource($process) ? (string) stream_get_contents($pipes[1]) : '';
        if (!is_resource($process) || proc_close($process) !== 0) {
            throw new \RuntimeException("$sql: " . file_get_contents("{$this->directory}/db.log"));
        }
        return $rows;
    }

    public function __destruct()
    {
        // Its data disappear with it, so it has nothing to write down.
        proc_terminate($this->process, 9);
        proc_close($this->process);
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    /** Why there can be none; null: there can. */
    public static function missing(): ?string
    {
        return match (true) {
            !is_executable(self::MARIADB) && !is_executable(self::MYSQL) => 'neither mariadbd nor mysqld is installed',
            !extension_loaded('pdo_mysql') => 'PHP has no pdo_mysql',
            default => null,
        };
    }

    private static function isMariaDb(): bool
    {
        return is_executable(self::MARIADB);
    }

    public function user(): string
    {
        return $this->account;
    }

    public function socket(): string
    {
        return "{$this->directory}/db.sock";
    }

    /** @param list<string> $command */
    private function execute(array $command): void
    {
        $log = ['file', "{$this->directory}/db.log", 'a'];
        $process = proc_open($command, [1 => $log, 2 => $log], $pipes);
        if (!is_resource($process) || proc_close($process) !== 0) {
            throw new \RuntimeException($command[0] . ': ' . file_get_contents("{$this->directory}/db.log"));
        }
    }
}
