<?php

/**
 * The events of a model with InvalidatesPages, as calls of changed() and uses().
 *
 *     saved, updated, deleted, restored    changed(kind, key), and the parents before and after the write
 *     retrieved                            RetrievedRows, if the model wants it
 *
 * `saved` is fired for the owner of a touched relation as well, `updated` for increment().
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;
use Illuminate\Database\Eloquent\Relations\MorphTo;
use Pagewell\Configuration;
use Pagewell\Core\Exception\ChangeAfterHeaders;
use Pagewell\Core\Exception\ChangeOnSafeMethod;
use Pagewell\Core\Exception\ChangeOutsideRequest;
use Pagewell\RequestScope;

/**
 * Publishes what happened to a model.
 *
 * @internal
 */
final class ModelChanges
{
    /** Events with visible effects. */
    public const EVENTS = ['saved', 'updated', 'deleted', 'restored'];

    /** @var \WeakReference<RequestScope>|null the request or process in which a change was refused */
    private static ?\WeakReference $refusedIn = null;

    private function __construct()
    {
    }

    /** Publishes an event of a model that has the trait. */
    public static function publish(Model $model, string $event): void
    {
        // Until these two events are over, what was written is still dirty. The owner of a touched relation is not.
        $written = in_array($event, ['saved', 'updated'], true) ? array_keys($model->getDirty()) : [];
        if ($written !== [] && array_diff($written, $model->pagewellIgnored()) === []) {
            return;
        }
        [$kind, $key] = [$model->pagewellKind(), self::id($model->getKey())];
        self::changed($kind, $key);
        foreach ($model->pagewellParents() as $relation) {
            foreach (self::parents($model, $relation) as [$parent, $id]) {
                self::changed($kind, $key, ...[$parent => $id]);
            }
        }
    }

    /**
     * Calls changed(). If the change is refused, because the control interface is off and no response carries it, the
     * log has the first one of the request or the process: the row is stored, and saving it must not fail then.
     *
     * @param int|string|object|null ...$said as changed() takes it
     */
    public static function changed(int|string|object|null ...$said): void
    {
        $scope = RequestScope::current();
        try {
            $scope->changed(...$said);
        } catch (ChangeOutsideRequest | ChangeOnSafeMethod | ChangeAfterHeaders $refused) {
            if (self::$refusedIn?->get() !== $scope) {
                self::$refusedIn = \WeakReference::create($scope);
                Configuration::log()->warn("pagewell: {$refused->getMessage()} Further changes of models are not logged. Without Pagewell, set PAGEWELL_ENABLED=false.", $refused);
            }
        }
    }

    /** A row was read. */
    public static function retrieved(Model $model): void
    {
        $id = $model->pagewellUsesRetrieved() ? self::id($model->getKey()) : null;
        $id === null || RetrievedRows::add($model->pagewellKind(), $id);
    }

    /**
     * The rows to which a model belongs now, and belonged before the write.
     *
     * @return list<array{string, int|string}> kind and id
     */
    private static function parents(Model $model, string $name): array
    {
        $relation = $model->$name();
        if (!$relation instanceof BelongsTo) {
            throw new \LogicException($model::class . "::pagewellParents() names '$name': write relations of the kind belongsTo or morphTo.");
        }
        $parents = [];
        foreach ([$model->getAttributes(), $model->getRawOriginal()] as $row) {
            $parent = self::parent($relation, is_array($row) ? $row : []);
            $parents[$parent === null ? '' : "$parent[0]:$parent[1]"] = $parent;
        }
        return array_values(array_filter($parents));
    }

    /**
     * @param array<string, mixed> $row
     *
     * @return array{string, int|string}|null
     */
    private static function parent(BelongsTo $relation, array $row): ?array
    {
        $related = $relation->getRelated();
        if ($relation instanceof MorphTo) {
            $class = Model::getActualClassNameForMorph((string) ($row[$relation->getMorphType()] ?? ''));
            $related = is_a($class, Model::class, true) ? new $class() : null;
        }
        $id = self::id($row[$relation->getForeignKeyName()] ?? null);
        $owner = $relation->getOwnerKeyName();
        if ($related === null || $id === null) {
            return null;
        }
        if ($owner !== null && $owner !== '' && $owner !== $related->getKeyName()) {
            $id = self::id($related->newQueryWithoutScopes()->where($owner, $id)->value($related->getKeyName()));
        }
        return $id === null ? null : [self::kindOf($related), $id];
    }

    /** The kind of a model: of the trait, of config/pagewell.php, or the table. */
    private static function kindOf(Model $model): string
    {
        return method_exists($model, 'pagewellKind') ? $model->pagewellKind() : PagewellProvider::kindOf($model) ?? $model->getTable();
    }

    private static function id(mixed $value): int|string|null
    {
        $value = $value instanceof \Stringable ? (string) $value : $value;
        return is_int($value) || (is_string($value) && $value !== '') ? $value : null;
    }
}
