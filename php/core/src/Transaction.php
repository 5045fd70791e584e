<?php

/**
 * The changes of a database transaction: those declared while it is open wait for its commit.
 *
 *     begin()                 opens it; if it is open: a nested level, as frameworks count them
 *     savepoint(), release()  a savepoint, and its end
 *     rollBackTo(), rollBack()  discards the changes since that savepoint, or that begin()
 *     commit()                of the outermost level: waiting changes are sent
 *
 * It accesses no database: Pagewell\Pdo and the glue for frameworks call it when their connection
 * does. In doubt no change is discarded, as after an unknown savepoint or an undetected end. An
 * unnecessary purge costs a render; a missing one shows old data.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** Holds changes until the commit. */
final class Transaction
{
    /** Maximum number of marks; further ones are ignored, and a rollback to them discards nothing. */
    private const MARKS_MAX = 1000;

    private const COMMENTS = '(?:\s|\/\*[^*]*+(?:\*(?!\/)[^*]*+)*+\*\/|(?:--|#)[^\n]*+(?:\n|$))*+';

    /**
     * Matches the beginning of a transaction, not of a block (`BEGIN NOT ATOMIC … END` in MariaDB,
     * `BEGIN work_of_mine(); END;` in Oracle).
     */
    private const BEGIN = '(?:START\s+TRANSACTION\b|BEGIN\b(?=' . self::COMMENTS
        . '(?:;|$|(?:WORK|TRAN|TRANSACTION|DEFERRED|IMMEDIATE|EXCLUSIVE|ISOLATION|READ\s+(?:ONLY|WRITE)|(?:NOT\s+)?DEFERRABLE)\b)))';

    private const STATEMENT = '/^' . self::COMMENTS . '(?:(?<begin>' . self::BEGIN . ')|SAVEPOINT\s+(?<mark>\S+)|RELEASE\s+(?:SAVEPOINT\s+)?(?<release>\S+)'
        . '|ROLLBACK\s+(?:TRANSACTION\s+|WORK\s+)?TO\s+(?:SAVEPOINT\s+)?(?<back>\S+)|(?<end>COMMIT|ROLLBACK|END)\b)/i';

    /** Matches a call that ends its transaction. */
    private const ENDS_LAST = '/;\s*(?:COMMIT|END|ROLLBACK)\b[^;]*;?\s*$/Di';

    /** Matches a call that ends a transaction and begins the next: only the end precedes the beginning. */
    private const BEGINS_NEXT = '/^' . self::COMMENTS . '(?:COMMIT|ROLLBACK|END)\b[\w\s]*;' . self::COMMENTS . self::BEGIN . '/i';

    /** @var list<array{string|null, PendingChanges}> mark (null: a begin()) and the changes since */
    private array $marks = [];

    /** Number of begin() calls beyond MARKS_MAX. */
    private int $beyond = 0;

    /** @param \Closure(PendingChanges): void $send receives the committed changes */
    public function __construct(private readonly \Closure $send)
    {
    }

    /** Whether changes are held. */
    public function isOpen(): bool
    {
        return $this->marks !== [];
    }

    /** Returns the number of open levels. */
    public function level(): int
    {
        return $this->beyond + count(array_filter($this->marks, static fn (array $mark): bool => $mark[0] === null));
    }

    /** Call right after the database began a transaction, or a level of a nested one. */
    public function begin(): void
    {
        $this->mark(null);
    }

    /** Like begin(), for the outermost level: the previous transaction ended undetected, or by this one. */
    public function beginAnew(): void
    {
        $this->commitAll();
        $this->begin();
    }

    /**
     * Call after the database has executed this SQL, whatever it is.
     *
     * @param bool $undoable whether a rollback could undo anything, determined before the SQL ran
     */
    public function saw(string $sql, bool $undoable = true): void
    {
        if (preg_match(self::STATEMENT, $sql, $found) !== 1) {
            return;
        }
        $found = array_filter($found, static fn (string $part): bool => $part !== '') + ['begin' => '', 'mark' => '', 'release' => '', 'back' => ''];
        $name = strtolower(trim($found['mark'] . $found['release'] . $found['back'], " \t\n\r;\"'`[]"));
        match (true) {
            // Later changes come after the whole statement.
            $found['begin'] !== '' => preg_match(self::ENDS_LAST, $sql) === 1 ? $this->commitAll() : $this->beginAnew(),
            $found['mark'] !== '' => $this->savepoint($name),
            $found['release'] !== '' => $this->release($name),
            $found['back'] !== '' => $this->rollBackTo($name),
            strcasecmp($found['end'], 'ROLLBACK') === 0 && $undoable => $this->rollBackAll(),
            default => $this->commitAll(),
        };
        if (isset($found['end']) && self::beginsNext($sql)) {
            $this->begin();
        }
    }

    /** Call after the database has committed; with nested levels, for each of them. */
    public function commit(): void
    {
        if ($this->beyond > 0) {
            $this->beyond--;
            return;
        }
        $this->fold(null);
    }

    /** Call after the database has rolled back; with nested levels, for each of them. */
    public function rollBack(): void
    {
        if ($this->beyond > 0) {
            $this->beyond--;
            return;
        }
        $at = $this->last(null);
        $this->marks = array_slice($this->marks, 0, $at ?? 0);
    }

    /** Commits all levels. */
    public function commitAll(): void
    {
        $this->beyond = 0;
        while ($this->isOpen()) {
            $this->fold(null);
        }
    }

    /** Rolls back all levels. */
    public function rollBackAll(): void
    {
        $this->beyond = 0;
        $this->marks = [];
    }

    /** Handles SAVEPOINT name. */
    public function savepoint(string $name): void
    {
        if ($this->isOpen()) {
            $this->mark($name);
        }
    }

    /** Handles RELEASE SAVEPOINT name: the changes since then belong to the outer level. */
    public function release(string $name): void
    {
        if ($this->last($name) !== null) {
            $this->fold($name);
        }
    }

    /** Handles ROLLBACK TO SAVEPOINT name; the mark itself remains. */
    public function rollBackTo(string $name): void
    {
        $at = $this->last($name);
        if ($at !== null) {
            $this->marks = [...array_slice($this->marks, 0, $at), [$name, new PendingChanges()]];
        }
    }

    /** Holds changes; only call it while the transaction is open. */
    public function hold(PendingChanges $pending): void
    {
        $this->marks[array_key_last($this->marks) ?? 0][1]->add($pending);
    }

    /** Sends the waiting changes, and retains them: it is unknown whether the commit succeeded. */
    public function sendEarly(): void
    {
        foreach ($this->marks as [, $pending]) {
            ($this->send)($pending);
        }
    }

    private static function beginsNext(string $sql): bool
    {
        return preg_match(self::BEGINS_NEXT, $sql) === 1 ? preg_match(self::ENDS_LAST, $sql) !== 1 : preg_match('/\bAND\s+CHAIN\b/i', $sql) === 1;
    }

    private function mark(?string $name): void
    {
        if (count($this->marks) < self::MARKS_MAX) {
            $this->marks[] = [$name, new PendingChanges()];
        } elseif ($name === null) {
            $this->beyond++;
        }
    }

    /** Ends the last mark of this name and all after it; their changes move to the outer level. */
    private function fold(?string $name): void
    {
        $at = $this->last($name);
        if ($at === null) {
            return;
        }
        $ended = new PendingChanges();
        foreach (array_splice($this->marks, $at) as [, $pending]) {
            $ended->add($pending);
        }
        if ($this->marks === []) {
            ($this->send)($ended);
        } else {
            $this->hold($ended);
        }
    }

    private function last(?string $name): ?int
    {
        for ($at = count($this->marks) - 1; $at >= 0; $at--) {
            if ($this->marks[$at][0] === $name) {
                return $at;
            }
        }
        return null;
    }
}
