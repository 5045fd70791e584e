<?php

/**
 * PageCache for the running request.
 *
 * It has no state: each call goes to RequestScope::current(). So one object serves all requests of
 * a process, and a container may share it.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Invalidation;
use Pagewell\Core\Refusal;

/** The page cache of whichever request is running. */
final class RequestPageCache implements PageCache
{
    public function uses(string $kind, int|string|object ...$ids): void
    {
        RequestScope::current()->uses($kind, ...$ids);
    }

    public function usesList(string $kind, array $ids, int $seconds): void
    {
        RequestScope::current()->usesList($kind, $ids, $seconds);
    }

    public function usesTags(string ...$tags): void
    {
        RequestScope::current()->usesTags(...$tags);
    }

    public function freshFor(int $seconds): void
    {
        RequestScope::current()->freshFor($seconds);
    }

    public function notCached(): void
    {
        RequestScope::current()->notCached();
    }

    public function signedIn(): void
    {
        RequestScope::current()->signedIn();
    }

    public function changed(int|string|object|null ...$said): void
    {
        RequestScope::current()->changed(...$said);
    }

    public function changedTags(string ...$tags): void
    {
        RequestScope::current()->changedTags(...$tags);
    }

    public function changedSoftly(int|string|object|null ...$said): void
    {
        RequestScope::current()->changedSoftly(...$said);
    }

    public function changedNow(int|string|object|null ...$said): int
    {
        return RequestScope::current()->changedNow(...$said);
    }

    public function invalidate(array $urls = [], array $tags = [], bool $all = false, bool $soft = false): int
    {
        return RequestScope::current()->invalidate(new Invalidation($tags, $urls, $all, $soft))->pages;
    }

    public function flush(): int
    {
        return RequestScope::current()->flush();
    }

    public function refusal(): ?Refusal
    {
        return RequestScope::current()->refusal();
    }

    public function tags(): array
    {
        return RequestScope::current()->tags();
    }
}
