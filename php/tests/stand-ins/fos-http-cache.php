<?php

/**
 * The interfaces of FOSHttpCache 3 that the proxy client implements, written from their signatures:
 * Debian has no package of it.
 */

declare(strict_types=1);

namespace FOS\HttpCache\ProxyClient {
    interface ProxyClient
    {
        public function flush(): int;
    }
}

namespace FOS\HttpCache\ProxyClient\Invalidation {
    use FOS\HttpCache\ProxyClient\ProxyClient;

    interface ClearCapable extends ProxyClient
    {
        public function clear(): static;
    }

    interface PurgeCapable extends ProxyClient
    {
        public function purge(string $url, array $headers = []): static;
    }

    interface RefreshCapable extends ProxyClient
    {
        public function refresh(string $url, array $headers = []): static;
    }

    interface TagCapable extends ProxyClient
    {
        public function invalidateTags(array $tags): static;
    }
}
