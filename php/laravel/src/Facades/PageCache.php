<?php

/**
 * The facade: the functions of the library in Laravel's usual form.
 *
 *     use Pagewell\Laravel\Facades\PageCache;
 *
 *     PageCache::uses('news', 4);
 *     PageCache::changed('news', 4);
 *     PageCache::invalidate(urls: ['/about']);
 */

declare(strict_types=1);

namespace Pagewell\Laravel\Facades;

use Illuminate\Support\Facades\Facade;

/**
 * The page cache of the running request.
 *
 * @method static void uses(string $kind, int|string|object ...$ids)
 * @method static void usesList(string $kind, array $ids, int $seconds)
 * @method static void usesTags(string ...$tags)
 * @method static void freshFor(int $seconds)
 * @method static void notCached()
 * @method static void signedIn()
 * @method static void changed(int|string|object|null ...$said)
 * @method static void changedTags(string ...$tags)
 * @method static void changedSoftly(int|string|object|null ...$said)
 * @method static int changedNow(int|string|object|null ...$said)
 * @method static int invalidate(array $urls = [], array $tags = [], bool $all = false, bool $soft = false)
 * @method static int flush()
 * @method static \Pagewell\Core\Refusal|null refusal()
 * @method static array tags()
 *
 * @see \Pagewell\PageCache
 */
final class PageCache extends Facade
{
    protected static function getFacadeAccessor(): string
    {
        return \Pagewell\PageCache::class;
    }
}
