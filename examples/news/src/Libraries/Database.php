<?php

/**
 * The connection to MariaDB, made when it is first needed.
 *
 * Configured by the environment: NEWS_DB_DSN (`mysql:unix_socket=/run/mysqld/mysqld.sock;dbname=news`
 * when not given), NEWS_DB_USER, NEWS_DB_PASSWORD. All values travel apart from the SQL
 * (prepared by the server). Times are UTC on both sides.
 */

declare(strict_types=1);

namespace News\Libraries;

/** Runs SQL. */
final class Database
{
    private ?\PDO $pdo = null;

    public function __construct(
        private readonly string $dsn,
        private readonly string $user = '',
        private readonly string $password = '',
    ) {
    }

    /** As the environment says. */
    public static function configured(): self
    {
        return new self(
            Environment::value('NEWS_DB_DSN', 'mysql:unix_socket=/run/mysqld/mysqld.sock;dbname=news'),
            Environment::value('NEWS_DB_USER', 'news'),
            Environment::value('NEWS_DB_PASSWORD', ''),
        );
    }

    /**
     * @param list<string|int|null> $values one for each `?`
     *
     * @return list<array<string, mixed>> rows by column
     *
     * @throws DatabaseAway when it cannot be reached
     */
    public function rows(string $sql, array $values = []): array
    {
        return array_values($this->run($sql, $values)->fetchAll());
    }

    /**
     * @param list<string|int|null> $values one for each `?`
     *
     * @return array<string, mixed>|null the first row, by column
     *
     * @throws DatabaseAway when it cannot be reached
     */
    public function row(string $sql, array $values = []): ?array
    {
        return $this->rows($sql, $values)[0] ?? null;
    }

    /**
     * Writes; committed when it returns.
     *
     * @param list<string|int|null> $values one for each `?`
     *
     * @return int how many rows were written
     *
     * @throws DatabaseAway when it cannot be reached
     */
    public function write(string $sql, array $values = []): int
    {
        return $this->run($sql, $values)->rowCount();
    }

    /**
     * Does several things as one: all of them once it returns, none when it throws.
     *
     * @template T
     *
     * @param callable(): T $work
     *
     * @return T what the work returned
     *
     * @throws DatabaseAway when it cannot be reached
     */
    public function transaction(callable $work): mixed
    {
        try {
            $pdo = $this->connected();
            $pdo->beginTransaction();
            $result = $work();
            $pdo->commit();
            return $result;
        } catch (\Throwable $fault) {
            if (isset($pdo) && $pdo->inTransaction()) {
                try {
                    $pdo->rollBack();
                } catch (\PDOException) {
                    // The connection is gone, and the transaction with it.
                }
            }
            throw $fault instanceof \PDOException ? self::blamed($fault) : $fault;
        }
    }

    /** The id that the last row written was given. */
    public function lastId(): int
    {
        return (int) $this->connected()->lastInsertId();
    }

    /** @param list<string|int|null> $values */
    private function run(string $sql, array $values): \PDOStatement
    {
        try {
            $statement = $this->connected()->prepare($sql);
            foreach ($values as $at => $value) {
                $statement->bindValue($at + 1, $value, is_int($value) ? \PDO::PARAM_INT : ($value === null ? \PDO::PARAM_NULL : \PDO::PARAM_STR));
            }
            $statement->execute();
            return $statement;
        } catch (\PDOException $exception) {
            throw self::blamed($exception);
        }
    }

    private function connected(): \PDO
    {
        try {
            return $this->pdo ??= new \PDO($this->dsn, $this->user, $this->password, [
                \PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION,
                \PDO::ATTR_DEFAULT_FETCH_MODE => \PDO::FETCH_ASSOC,
                \PDO::ATTR_EMULATE_PREPARES => false,
                \PDO::MYSQL_ATTR_INIT_COMMAND => "SET NAMES utf8mb4, time_zone = '+00:00'",
                // "Rows written" counts those that matched, also where nothing differs.
                \PDO::MYSQL_ATTR_FOUND_ROWS => true,
            ]);
        } catch (\PDOException $exception) {
            throw self::blamed($exception);
        }
    }

    /** Errors 2000–2999 are the client's: no server, or it went away; 1040, 1053, 1203: full, or stopping. */
    private static function blamed(\PDOException $exception): \Throwable
    {
        $code = (int) ($exception->errorInfo[1] ?? $exception->getCode());
        $away = ($code >= 2000 && $code < 3000) || in_array($code, [1040, 1053, 1203], true);
        return $away ? new DatabaseAway($exception->getMessage(), $code, $exception) : $exception;
    }
}
