<?php

/**
 * PDO that reports its statements, for automatic dependencies.
 *
 * In a request that Pagewell does not capture it is a plain \PDO. Pagewell\Pdo extends it.
 */

declare(strict_types=1);

namespace Pagewell\Capture;

/**
 * A PDO connection whose statements are captured.
 *
 * @internal
 */
class CapturingPdo extends \PDO
{
    public function __construct(string $dsn, ?string $username = null, #[\SensitiveParameter] ?string $password = null, ?array $options = null)
    {
        // The command of MYSQL_ATTR_INIT_COMMAND, and that of ATTR_AUTOCOMMIT.
        self::own(fn () => parent::__construct($dsn, $username, $password, $options), most: 2);
        StatementCapture::running()?->connection($this);
    }

    /** The connection is closed: its statements are counted while it can still be asked. */
    public function __destruct()
    {
        StatementCapture::running()?->close($this);
    }

    public function prepare(string $query, array $options = []): \PDOStatement|false
    {
        $connection = StatementCapture::running()?->connection($this);
        if ($connection === null) {
            return parent::prepare($query, $options);
        }
        if (isset($options[\PDO::ATTR_STATEMENT_CLASS]) || $this->getAttribute(\PDO::ATTR_STATEMENT_CLASS)[0] !== \PDOStatement::class) {
            StatementCapture::running()->giveUp('the application has a class of its own for statements of PDO');
            return parent::prepare($query, $options);
        }
        return parent::prepare($query, $options + [\PDO::ATTR_STATEMENT_CLASS => self::statementClass($connection, $this)]);
    }

    public function exec(string $statement): int|false
    {
        $connection = StatementCapture::running()?->connection($this);
        $send = fn () => parent::exec($statement);
        return $connection === null ? $send() : $connection->run($statement, $send);
    }

    public function query(string $query, ?int $fetchMode = null, mixed ...$fetchModeArgs): \PDOStatement|false
    {
        $connection = StatementCapture::running()?->connection($this);
        $send = fn () => parent::query($query, $fetchMode, ...$fetchModeArgs);
        return $connection === null ? $send() : $connection->run($query, $send);
    }

    public function beginTransaction(): bool
    {
        return self::own(fn (): bool => parent::beginTransaction());
    }

    public function commit(): bool
    {
        return self::own(fn (): bool => parent::commit());
    }

    public function rollBack(): bool
    {
        return self::own(fn (): bool => parent::rollBack());
    }

    public function setAttribute(int $attribute, mixed $value): bool
    {
        return self::own(fn (): bool => parent::setAttribute($attribute, $value));
    }

    /** The value of \PDO::ATTR_STATEMENT_CLASS with which a connection reports its prepared statements. */
    public static function statementClass(CapturedConnection $connection, \PDO $pdo): array
    {
        $weak = \WeakReference::create($pdo);
        return [CapturedStatement::class, [$connection, static fn (string $text) => $weak->get()?->quote($text) ?? false]];
    }

    private static function own(callable $call, int $most = 1): mixed
    {
        $capture = StatementCapture::running();
        return $capture === null ? $call() : $capture->own($call, $most);
    }
}
