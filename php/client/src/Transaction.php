<?php

/**
 * A database transaction as far as changes are concerned: what is said while it is open waits
 * for its commit.
 *
 *     begin()                 open; in an open one: a level further in, as frameworks count them
 *     savepoint(), release()  a mark, and its end
 *     rollBackTo(), rollBack()  forgets what was said since that mark, or that begin()
 *     commit()                of the outermost: what waits is told
 *
 * It touches no database: Pagewell\Pdo and the glue for frameworks call it when theirs does. In
 * doubt nothing is forgotten: a mark that is not known, and an end that was not seen, keep
 * everything, for dropping a page too many costs a render, and one too few shows old data.
 */

declare(strict_types=1);

namespace Pagewell;

/** Holds changes until the commit. */
final class Transaction
{
    /** The most marks; further ones are not noted, and a rollback to them forgets nothing. */
    private const MARKS_MAX = 1000;

    /** @var list<array{string|null, Held}> mark (null: a begin()) and what was said since */
    private array $marks = [];

    /** begin() calls beyond MARKS_MAX */
    private int $beyond = 0;

    /** @param \Closure(Held): void $tell is given what was committed */
    public function __construct(private readonly \Closure $tell)
    {
    }

    /** Whether changes are held. */
    public function isOpen(): bool
    {
        return $this->marks !== [];
    }

    /** How many levels are open. */
    public function level(): int
    {
        return $this->beyond + count(array_filter($this->marks, static fn (array $mark): bool => $mark[0] === null));
    }

    /** Call right after the database began a transaction, or a level of a nested one. */
    public function begin(): void
    {
        $this->mark(null);
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

    /** Everything of it is committed, whatever the levels. */
    public function commitAll(): void
    {
        $this->beyond = 0;
        while ($this->isOpen()) {
            $this->fold(null);
        }
    }

    /** Everything of it is rolled back, whatever the levels. */
    public function rollBackAll(): void
    {
        $this->beyond = 0;
        $this->marks = [];
    }

    /** SAVEPOINT name. */
    public function savepoint(string $name): void
    {
        if ($this->isOpen()) {
            $this->mark($name);
        }
    }

    /** RELEASE SAVEPOINT name: what was said since belongs to what is around it. */
    public function release(string $name): void
    {
        if ($this->last($name) !== null) {
            $this->fold($name);
        }
    }

    /** ROLLBACK TO SAVEPOINT name: the mark itself stays. */
    public function rollBackTo(string $name): void
    {
        $at = $this->last($name);
        if ($at !== null) {
            $this->marks = [...array_slice($this->marks, 0, $at), [$name, new Held()]];
        }
    }

    /** Holds what was said; only while it is open. */
    public function hold(Held $held): void
    {
        $this->marks[array_key_last($this->marks) ?? 0][1]->add($held);
    }

    /** What waits is told, and goes on waiting: for a commit of which nobody knows whether it was made. */
    public function tellEarly(): void
    {
        foreach ($this->marks as [, $held]) {
            ($this->tell)($held);
        }
    }

    private function mark(?string $name): void
    {
        if (count($this->marks) < self::MARKS_MAX) {
            $this->marks[] = [$name, new Held()];
        } elseif ($name === null) {
            $this->beyond++;
        }
    }

    /** Ends the last mark of this name and all after it, into what is around it. */
    private function fold(?string $name): void
    {
        $at = $this->last($name);
        if ($at === null) {
            return;
        }
        $ended = new Held();
        foreach (array_splice($this->marks, $at) as [, $held]) {
            $ended->add($held);
        }
        if ($this->marks === []) {
            ($this->tell)($ended);
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
