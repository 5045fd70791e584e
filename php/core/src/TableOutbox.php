<?php

/**
 * An outbox in a table, for sites whose machines share a database but no directory.
 *
 *     (new TableOutbox($pdo))->create();                    // once, in a migration
 *     Configuration::set(outbox: new TableOutbox($pdo));
 *
 * It needs a connection of its own: what is stored within a transaction of the application would
 * disappear with its rollback. MariaDB, MySQL, PostgreSQL and SQLite. Bounded: above ROWS_MAX the
 * calls are replaced by one for everything, for each of their sites. Two processes may make the same
 * call.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** Keeps calls in a table of a database. */
final class TableOutbox implements Outbox
{
    /** Maximum number of calls. */
    public const ROWS_MAX = 1000;

    /**
     * @param \PDO   $database     a connection that the application does not use itself
     * @param string $table        its name, perhaps with a schema
     * @param int    $pauseSeconds seconds after a failure, or a new call, in which nothing is tried
     */
    public function __construct(private readonly \PDO $database, private readonly string $table = 'pagewell_outbox', private readonly int $pauseSeconds = FileOutbox::PAUSE_SECONDS)
    {
        if (preg_match('/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/D', $table) !== 1) {
            throw new \InvalidArgumentException("'$table' is not the name of a table: write letters, digits and underscores.");
        }
    }

    /** Creates the table. */
    public function create(): void
    {
        [$key, $text] = match ($this->database->getAttribute(\PDO::ATTR_DRIVER_NAME)) {
            'mysql' => ['BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY', 'MEDIUMTEXT'],
            'pgsql' => ['BIGSERIAL PRIMARY KEY', 'TEXT'],
            default => ['INTEGER PRIMARY KEY AUTOINCREMENT', 'TEXT'],
        };
        $this->run("CREATE TABLE $this->table (id $key, call_body $text NOT NULL, due_at BIGINT NOT NULL)");
    }

    public function store(Invalidation ...$calls): void
    {
        if ($this->database->inTransaction()) {
            throw new \RuntimeException("The outbox $this->table cannot store a call, because a transaction is open on its connection: give TableOutbox a connection of its own.");
        }
        $this->database->beginTransaction();
        try {
            $this->insert($calls);
            $this->database->commit();
        } catch (\Throwable $fault) {
            $this->database->inTransaction() && $this->database->rollBack();
            throw $fault;
        }
    }

    /** @param array<Invalidation> $calls */
    private function insert(array $calls): void
    {
        if ((int) $this->run("SELECT COUNT(*) FROM $this->table")->fetchColumn() + count($calls) > self::ROWS_MAX) {
            $waiting = $this->run("SELECT id, call_body FROM $this->table")->fetchAll(\PDO::FETCH_KEY_PAIR);
            // Only these: another process may have added a call since.
            foreach (array_chunk(array_keys($waiting), 500) as $ids) {
                $this->run("DELETE FROM $this->table WHERE id IN (" . implode(', ', array_map('intval', $ids)) . ')');
            }
            $calls = Invalidation::everythingInPlaceOf([...array_map(Invalidation::ofJson(...), array_values($waiting)), ...$calls]);
        }
        foreach ($calls as $call) {
            $this->run("INSERT INTO $this->table (call_body, due_at) VALUES (?, ?)", [$call->json(), time() + $this->pauseSeconds]);
        }
    }

    public function isDue(): bool
    {
        return $this->run("SELECT 1 FROM $this->table WHERE due_at <= ? LIMIT 1", [time()])->fetchColumn() !== false;
    }

    public function deliver(callable $send): void
    {
        $rows = $this->run("SELECT id, call_body FROM $this->table ORDER BY id")->fetchAll(\PDO::FETCH_NUM);
        foreach ($rows as [$id, $body]) {
            try {
                $send(Invalidation::ofJson((string) $body) ?? new Invalidation(all: true));
            } catch (\Throwable $failure) {
                $this->run("UPDATE $this->table SET due_at = ?", [time() + $this->pauseSeconds]);
                throw $failure;
            }
            $this->run("DELETE FROM $this->table WHERE id = ?", [$id]);
        }
    }

    /** @param list<mixed> $values */
    private function run(string $sql, array $values = []): \PDOStatement
    {
        $statement = $this->database->prepare($sql);
        if ($statement === false || !$statement->execute($values)) {
            throw new \RuntimeException("The outbox {$this->table} cannot be used: " . ($this->database->errorInfo()[2] ?? 'unknown error'));
        }
        return $statement;
    }
}
