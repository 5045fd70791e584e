<?php

/**
 * Automatic dependencies: collects the SQL statements of the request, and reports them to Pagewell at its end.
 *
 * It runs if Pagewell asks for it by the FastCGI parameters PAGEWELL_CAPTURE (a socket), PAGEWELL_CAPTURE_TOKEN and
 * PAGEWELL_CAPTURE_DATABASE, from the moment at which the library is loaded. A list from which a read is missing is
 * worse than none. So this is compared:
 *
 *     commands that this process has sent (ClientCommands)  those that the library has seen or sent itself
 *     sql_mode, character set, database of each session     those that Pagewell assumes
 *
 * Anything else makes the list incomplete: a failed statement, a connection to something else than MariaDB or MySQL,
 * a connection that ended unproven, another database, a fatal error. The reason is reported. The page is then stored
 * only with a lifetime of its own. docs/decisions/capture.md#the-php-library.
 *
 * It cannot see connections to other databases that bypass the library (pg_query), values from caches, and
 * statements of destructors and session handlers after the last shutdown function.
 */

declare(strict_types=1);

namespace Pagewell\Capture;

/**
 * The capture of the running request.
 *
 * @internal
 */
final class StatementCapture
{
    private static ?self $running = null;

    /** The object of report.php. */
    private readonly object $report;

    /** The object of session-rules.php. */
    public readonly object $rules;

    /** Commands of the process before the request. */
    private readonly ?int $before;

    /** Commands that the library has seen or sent. */
    private int $commands = 0;

    /** Statements that were reported. */
    private int $statements = 0;

    /** @var list<CapturedConnection> */
    private array $connections = [];

    /** The names that the server of the statements gives itself. Rows of two servers cannot be compared. */
    private ?array $server = null;

    private function __construct(private readonly string $socket, private readonly string $token, public readonly string $database)
    {
        $this->report = require __DIR__ . '/report.php';
        $this->rules = require __DIR__ . '/session-rules.php';
        $this->before = ClientCommands::count($this->rules);
        if ($this->before === null) {
            $this->giveUp('PHP does not say how many statements it has sent: load the extension mysqli, and leave mysqlnd.collect_statistics on');
        }
    }

    /** Begins the capture of a request if Pagewell asks for it. The library calls this when it is loaded. */
    public static function begin(): void
    {
        [$socket, $token, $database] = array_map(
            static fn (string $name): mixed => $_SERVER[$name] ?? '',
            ['PAGEWELL_CAPTURE', 'PAGEWELL_CAPTURE_TOKEN', 'PAGEWELL_CAPTURE_DATABASE'],
        );
        unset($_SERVER['PAGEWELL_CAPTURE'], $_SERVER['PAGEWELL_CAPTURE_TOKEN'], $_SERVER['PAGEWELL_CAPTURE_DATABASE']);
        if (!is_string($socket) || $socket === '' || !is_string($token) || $token === '' || !is_string($database) || $database === '') {
            return;
        }
        self::$running = $capture = new self($socket, $token, $database);
        // This shutdown function is one of the first. The one that it registers is the last.
        register_shutdown_function(static function () use ($capture): void {
            register_shutdown_function($capture->end(...));
        });
    }

    /** The capture of this request, if it has one whose list is still complete. */
    public static function running(): ?self
    {
        return self::$running;
    }

    /** The list is incomplete: something was read that no statement shows. The page is then not stored by its reads. */
    public function giveUp(string $reason): void
    {
        $this->report->giveUp($reason);
        if (self::$running === $this) {
            self::$running = null;
        }
    }

    /** The page may show a value of a cache that no statement shows. The name is shown to the operator. */
    public function hide(string $name): void
    {
        $this->report->hide($name);
        $this->giveUp($name);
    }

    /** Returns the books of a connection of PDO; null if it cannot be captured. */
    public function connection(\PDO $pdo): ?CapturedConnection
    {
        $known = $this->known($pdo);
        if ($known !== null) {
            return $known;
        }
        if ($pdo->getAttribute(\PDO::ATTR_DRIVER_NAME) !== 'mysql') {
            $this->giveUp('a connection to a database that is no MariaDB or MySQL');
            return null;
        }
        // A persistent connection, perhaps: its transaction may not see what has changed since.
        if ($pdo->inTransaction()) {
            $this->giveUp('a connection began the request within a transaction');
            return null;
        }
        return $this->connections[] = new CapturedConnection($this, $pdo);
    }

    /** Counts the statements of a connection that is about to end. */
    public function close(\PDO $pdo): void
    {
        $this->known($pdo)?->finish();
    }

    /**
     * Runs a call that sends commands of the library, or of PHP itself, and no statement of the application. If it
     * sends more than $most, those beyond count as statements that bypassed the library.
     *
     * @template T
     * @param callable(): T $call
     * @return T
     */
    public function own(callable $call, int $most = 1): mixed
    {
        $before = (int) ClientCommands::count($this->rules);
        try {
            return $call();
        } finally {
            $this->commands += min($most, (int) ClientCommands::count($this->rules) - $before);
        }
    }

    /** Records a statement that has been sent. */
    public function add(string $statement): void
    {
        $this->commands++;
        $this->statements++;
        $this->report->addStatement($statement);
        $this->report->reason === '' || $this->giveUp($this->report->reason);
    }

    /**
     * Compares the server of a connection with that of the others. Returns whether it is the same.
     *
     * @param list<string> $server its identifier, and other names that it gives itself
     */
    public function isServer(array $server): bool
    {
        return ($this->server ??= $server) === $server;
    }

    private function known(\PDO $pdo): ?CapturedConnection
    {
        foreach ($this->connections as $connection) {
            if ($connection->isOf($pdo)) {
                return $connection;
            }
        }
        return null;
    }

    /** Reports the statements. */
    private function end(): void
    {
        if ($this->report->reason === '') {
            foreach ($this->connections as $connection) {
                $connection->finish();
            }
        }
        $flaw = $this->flaw();
        $flaw === '' || $this->giveUp($flaw);
        if (self::$running === $this) {
            self::$running = null;
        }
        $this->report->addServer($this->server[0] ?? '');
        $this->report->send($this->socket, $this->token, '');
    }

    /** Why the list is incomplete, at the end; empty if it is not. */
    private function flaw(): string
    {
        if ($this->rules->hasFatalError()) {
            return 'a fatal error ended the script';
        }
        if ($this->statements === 0) {
            return 'no statement passed through the library';
        }
        $others = (int) ClientCommands::count($this->rules) - (int) $this->before - $this->commands;
        return match (true) {
            $others > 0 => "$others statements did not pass through the library",
            $others < 0 => abs($others) . ' statements of the library were not sent',
            default => '',
        };
    }
}
