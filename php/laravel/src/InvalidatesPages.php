<?php

/**
 * A trait for Eloquent's models: their changes purge the pages that depend on them.
 *
 *     class Comment extends Model
 *     {
 *         use InvalidatesPages;
 *
 *         public function news() { return $this->belongsTo(News::class); }
 *
 *         public function pagewellParents(): array { return ['news']; }
 *     }
 *
 *     $comment->update([…])   changed('comments', 17, news: 4); a comment that is moved also changes its old news
 *     $comment->increment(…)  the same
 *     a row of a pivot        the same, if the pivot has a model (`->using(NewsTag::class)`) with this trait
 *
 * Models that are saved quietly and mass updates fire no event: call changed() beside them.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Database\Eloquent\Model;

/**
 * Publishes the changes of a model.
 *
 * @mixin Model
 */
trait InvalidatesPages
{
    /** Called by Eloquent when the class is used for the first time. */
    public static function bootInvalidatesPages(): void
    {
        foreach (ModelChanges::EVENTS as $event) {
            static::registerModelEvent($event, static fn (Model $model) => ModelChanges::publish($model, $event));
        }
        static::registerModelEvent('retrieved', static fn (Model $model) => ModelChanges::retrieved($model));
        $events = static::getEventDispatcher();
        $events === null || Increments::listen($events, static::class);
    }

    /** The kind, as in uses() and changed(). */
    public function pagewellKind(): string
    {
        return $this->getTable();
    }

    /** @return list<string> relations of the kind belongsTo or morphTo; their rows count as changed as well */
    public function pagewellParents(): array
    {
        return [];
    }

    /** @return list<string> columns that no page shows: a write to these alone is no change */
    public function pagewellIgnored(): array
    {
        return [];
    }

    /** Whether a page that reads this row depends on it. It still has to declare its lists, or it is not cached. */
    public function pagewellUsesRetrieved(): bool
    {
        return false;
    }
}
