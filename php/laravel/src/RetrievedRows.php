<?php

/**
 * Rows that were read while a page was rendered, of models with pagewellUsesRetrieved().
 *
 *     the page declares something itself      it also depends on these rows
 *     it declares nothing                     it is not cached: which rows a list will have is not known from those it has
 *     more than IDS_MAX rows of a kind        it depends on the kind as a whole
 *
 * Belongs to one request: Declaring begins and ends it. Rows that are read elsewhere are ignored.
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Pagewell\Core\Refusal;
use Pagewell\RequestScope;

/**
 * Collects the rows of one request.
 *
 * @internal
 */
final class RetrievedRows
{
    /** Maximum number of rows of one kind that are named individually. */
    public const IDS_MAX = 200;

    /** @var array<string, array<int|string, true>>|null ids by kind; null: no request is running */
    private static ?array $rows = null;

    private function __construct()
    {
    }

    public static function begin(): void
    {
        self::$rows = [];
    }

    public static function add(string $kind, int|string $id): void
    {
        if (self::$rows !== null && count(self::$rows[$kind] ?? []) <= self::IDS_MAX) {
            self::$rows[$kind][$id] = true;
        }
    }

    /** Forgets the rows, after an exception. */
    public static function end(): void
    {
        self::$rows = null;
    }

    /** Adds the rows to the dependencies of a page that declares some itself. */
    public static function declare(RequestScope $scope): void
    {
        [$rows, self::$rows] = [self::$rows ?? [], null];
        if ($scope->refusal() === Refusal::Nothing) {
            return;
        }
        foreach ($rows as $kind => $ids) {
            $scope->uses($kind, ...(count($ids) > self::IDS_MAX ? [] : array_keys($ids)));
        }
    }
}
