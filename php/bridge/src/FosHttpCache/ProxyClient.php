<?php

/**
 * The proxy client of FOSHttpCache 2 and 3 for Pagewell: an application that has this library switches
 * by one setting.
 *
 *     # config/packages/fos_http_cache.yaml, with FOSHttpCacheBundle
 *     fos_http_cache:
 *         cache_manager:
 *             custom_proxy_client: Pagewell\Bridge\FosHttpCache\ProxyClient
 *         tags:
 *             enabled: true           # not with PagewellBundle, which sets it; `auto` leaves pages without tags
 *
 *     $manager = new CacheInvalidator(new Pagewell\Bridge\FosHttpCache\ProxyClient());      // without it
 *
 *     invalidateTags()          as changedTags(): on the response to the write, or when it ends
 *     invalidatePath(), purge   at flush(), by the control interface; the bundle calls it when the request ends
 *     refreshPath(), refresh    the same: the page is rendered for its next visitor
 *     clear                     the same, every page
 *     regular expressions       not supported: FOSHttpCache then throws UnsupportedProxyOperationException
 *
 * A purge that cannot be sent is put into the outbox, or logged; it throws nothing, because the bundle
 * flushes after the response. Pagewell reads the tags of pages from FOSHttpCache's own field, X-Cache-Tags.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\FosHttpCache;

use FOS\HttpCache\ProxyClient\Invalidation\ClearCapable;
use FOS\HttpCache\ProxyClient\Invalidation\PurgeCapable;
use FOS\HttpCache\ProxyClient\Invalidation\RefreshCapable;
use FOS\HttpCache\ProxyClient\Invalidation\TagCapable;
use Pagewell\Bridge\PurgeDelivery;
use Pagewell\Core\Invalidation;
use Pagewell\RequestScope;

/** Purges pages for FOSHttpCache. */
final class ProxyClient implements ClearCapable, PurgeCapable, RefreshCapable, TagCapable
{
    /** @var array<string, true> */
    private array $urls = [];

    private bool $isAll = false;

    public function invalidateTags(array $tags): static
    {
        $tags = array_filter(array_map(strval(...), array_values($tags)), static fn (string $tag): bool => $tag !== '');
        $tags === [] || RequestScope::current()->changedTags(...array_values($tags));
        return $this;
    }

    /** @param mixed $url version 2 declares no type */
    public function purge($url, array $headers = []): static
    {
        $this->urls[(string) $url] = true;
        return $this;
    }

    /** @param mixed $url version 2 declares no type */
    public function refresh($url, array $headers = []): static
    {
        return $this->purge($url);
    }

    public function clear(): static
    {
        $this->isAll = true;
        return $this;
    }

    public function flush(): int
    {
        $call = new Invalidation(urls: array_map(strval(...), array_keys($this->urls)), all: $this->isAll);
        [$this->urls, $this->isAll] = [[], false];
        if ($call->isEmpty()) {
            return 0;
        }
        PurgeDelivery::send($call);
        return count($call->urls) + (int) $call->all;
    }
}
