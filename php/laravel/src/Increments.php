<?php

/**
 * Counters that Eloquent changes in the database: increment(), decrement(), incrementEach(), decrementEach().
 *
 *     update "news" set "views" = "views" + 1 where "id" = ?     changed('news', 4)
 *     the same with another condition, or with none              changed('news')
 *
 * On a query, on a model that is quiet or not stored, and for several columns Eloquent fires no
 * event of a model. So the SQL that Laravel has run is read; the event QueryExecuted brings it.
 * Other mass updates are left to the application.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Events\QueryExecuted;

/**
 * Publishes a change for each counter of a model that is incremented by SQL.
 *
 * @internal
 */
final class Increments
{
    /** A column that is set to itself plus or minus a number, as Laravel's grammars write it. */
    private const COUNTS = '/(?<column>["`\[][^"`\]]+["`\]]) = (?:\S+\.)?\k<column> [+-] /';

    /** The one condition that names a row by its key; soft-deleted rows may be left out. */
    private const ONE_ROW = '/ where (?:\S+\.)?(?<key>\S+) = \?(?: and \S+ is null)*$/D';

    private ?Model $model = null;

    /**
     * @param class-string<Model> $class
     * @param string|null         $kind what changed() calls it; null: as the trait InvalidatesPages says
     */
    private function __construct(private readonly string $class, private readonly ?string $kind)
    {
    }

    /**
     * Listens to the statements on the table of a model.
     *
     * @param class-string<Model> $class
     * @param string|null         $kind what changed() calls it; null: as the trait InvalidatesPages says
     */
    public static function listen(Dispatcher $events, string $class, ?string $kind = null): void
    {
        $increments = new self($class, $kind);
        $events->listen(QueryExecuted::class, static function (QueryExecuted $query) use ($increments): void {
            // Most statements are no updates: no more is done for them than this.
            if (strncasecmp($query->sql, 'update', 6) === 0 && !$query->connection->pretending()) {
                $increments->executed($query);
            }
        });
    }

    private function executed(QueryExecuted $query): void
    {
        $this->model ??= new $this->class();
        $grammar = $query->connection->getQueryGrammar();
        if (!str_contains($query->sql, $grammar->wrapTable($this->model->getTable())) || preg_match(self::COUNTS, $query->sql) !== 1) {
            return;
        }
        if ($this->kind === null && self::isIgnored($query->sql, array_map($grammar->wrap(...), $this->model->pagewellIgnored()))) {
            return;
        }
        $isOne = preg_match(self::ONE_ROW, $query->sql, $found) === 1 && $found['key'] === $grammar->wrap($this->model->getKeyName());
        $key = $isOne ? array_values($query->bindings)[count($query->bindings) - 1] ?? null : null;
        ModelChanges::changed($this->kind ?? $this->model->pagewellKind(), is_int($key) || (is_string($key) && $key !== '') ? $key : null);
    }

    /**
     * Whether a statement writes no other columns than these.
     *
     * @param list<string> $columns as the grammar writes them
     */
    private static function isIgnored(string $sql, array $columns): bool
    {
        preg_match_all('/(?:^.*? set |, )(?:\S+\.)?(["`\[][^"`\]]+["`\]]) = /', explode(' where ', $sql, 2)[0], $written);
        return $written[1] !== [] && array_diff($written[1], $columns) === [];
    }
}
