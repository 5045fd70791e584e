<?php

/**
 * An object cache outside of the process, as a site with one has it in wp-content/object-cache.php:
 * in memcached, Redis or Valkey (WP_MEMCACHED or WP_REDIS is the Unix socket of the server), with
 * what was read before kept for the running request.
 */

/** Values in memcached. */
final class MemcachedValues
{
    private Memcached $server;

    public function __construct(string $socket)
    {
        $this->server = new Memcached();
        $this->server->addServer($socket, 0);
    }

    /** @return array{mixed}|null null: there is none */
    public function read(string $name): ?array
    {
        $value = $this->server->get($name);
        return $this->server->getResultCode() === Memcached::RES_SUCCESS ? [$value] : null;
    }

    public function write(string $how, string $name, mixed $value, int $seconds): bool
    {
        return $this->server->$how($name, $value, $seconds);
    }

    public function delete(string $name): bool
    {
        return $this->server->delete($name);
    }

    public function flush(): bool
    {
        return $this->server->flush();
    }
}

/** The same in Redis or Valkey, as the usual plugins store them: serialized, one key each. */
final class RedisValues
{
    private Redis $server;

    public function __construct(string $socket)
    {
        $this->server = new Redis();
        $this->server->connect($socket);
    }

    public function read(string $name): ?array
    {
        $text = $this->server->get($name);
        return is_string($text) ? [unserialize($text)] : null;
    }

    public function write(string $how, string $name, mixed $value, int $seconds): bool
    {
        $options = ['add' => ['nx'], 'set' => [], 'replace' => ['xx']][$how] + ($seconds > 0 ? ['ex' => $seconds] : []);
        return $this->server->set($name, serialize($value), $options) === true;
    }

    public function delete(string $name): bool
    {
        return $this->server->del($name) === 1;
    }

    public function flush(): bool
    {
        return $this->server->flushDB();
    }
}

final class OutsideCache
{
    public static self $one;

    private MemcachedValues|RedisValues $store;

    /** @var array<string, mixed> */
    private array $read = [];

    /** @var array<string, true> */
    private array $passing = [];

    /** @var array<string, true> */
    private array $shared = [];

    public function __construct()
    {
        $redis = (string) getenv('WP_REDIS');
        $this->store = $redis === '' ? new MemcachedValues((string) getenv('WP_MEMCACHED')) : new RedisValues($redis);
    }

    public function groups(array $groups, bool $arePassing): void
    {
        $arePassing ? $this->passing += array_fill_keys($groups, true) : $this->shared += array_fill_keys($groups, true);
    }

    public function get(mixed $key, string $group, bool $force, ?bool &$found): mixed
    {
        $name = $this->name($key, $group);
        if (($force || !array_key_exists($name, $this->read)) && !isset($this->passing[$group])) {
            $stored = $this->store->read($name);
            if ($stored !== null) {
                $this->read[$name] = $stored[0];
            }
        }
        $found = array_key_exists($name, $this->read);
        $value = $this->read[$name] ?? false;
        return is_object($value) ? clone $value : $value;
    }

    /** @param string $how add, set or replace */
    public function put(string $how, mixed $key, mixed $value, string $group, int $seconds): bool
    {
        if ($how === 'add' && wp_suspend_cache_addition()) {
            return false;
        }
        $this->get($key, $group, false, $found);
        if ($how !== 'set' && $found !== ($how === 'replace')) {
            return false;
        }
        $name = $this->name($key, $group);
        $value = is_object($value) ? clone $value : $value;
        $done = isset($this->passing[$group]) || $this->store->write($how, $name, $value, $seconds);
        unset($this->read[$name]);
        $done && $this->read[$name] = $value;
        return $done;
    }

    public function delete(mixed $key, string $group): bool
    {
        $name = $this->name($key, $group);
        $had = array_key_exists($name, $this->read);
        unset($this->read[$name]);
        return isset($this->passing[$group]) ? $had : $this->store->delete($name);
    }

    public function step(mixed $key, int $step, string $group): mixed
    {
        $value = $this->get($key, $group, false, $found);
        $next = max(0, (int) $value + $step);
        return $found && $this->put('set', $key, $next, $group, 0) ? $next : false;
    }

    public function flush(bool $all): bool
    {
        $this->read = [];
        return !$all || $this->store->flush();
    }

    private function name(mixed $key, string $group): string
    {
        $blog = isset($this->shared[$group]) || !function_exists('get_current_blog_id') ? 0 : get_current_blog_id();
        return sha1("$blog\n$group\n$key");
    }
}

function wp_cache_init(): void
{
    $GLOBALS['wp_object_cache'] = OutsideCache::$one = new OutsideCache();
}

function wp_cache_get($key, $group = '', $force = false, &$found = null)
{
    return OutsideCache::$one->get($key, $group ?: 'default', $force, $found);
}

function wp_cache_get_multiple($keys, $group = '', $force = false)
{
    return array_combine($keys, array_map(static fn ($key) => wp_cache_get($key, $group, $force), $keys));
}

function wp_cache_add($key, $value, $group = '', $seconds = 0)
{
    return OutsideCache::$one->put('add', $key, $value, $group ?: 'default', (int) $seconds);
}

function wp_cache_set($key, $value, $group = '', $seconds = 0)
{
    return OutsideCache::$one->put('set', $key, $value, $group ?: 'default', (int) $seconds);
}

function wp_cache_replace($key, $value, $group = '', $seconds = 0)
{
    return OutsideCache::$one->put('replace', $key, $value, $group ?: 'default', (int) $seconds);
}

function wp_cache_add_multiple(array $values, $group = '', $seconds = 0)
{
    return array_combine(array_keys($values), array_map(static fn ($key) => wp_cache_add($key, $values[$key], $group, $seconds), array_keys($values)));
}

function wp_cache_set_multiple(array $values, $group = '', $seconds = 0)
{
    return array_combine(array_keys($values), array_map(static fn ($key) => wp_cache_set($key, $values[$key], $group, $seconds), array_keys($values)));
}

function wp_cache_delete($key, $group = '')
{
    return OutsideCache::$one->delete($key, $group ?: 'default');
}

function wp_cache_delete_multiple(array $keys, $group = '')
{
    return array_combine($keys, array_map(static fn ($key) => wp_cache_delete($key, $group), $keys));
}

function wp_cache_incr($key, $step = 1, $group = '')
{
    return OutsideCache::$one->step($key, (int) $step, $group ?: 'default');
}

function wp_cache_decr($key, $step = 1, $group = '')
{
    return OutsideCache::$one->step($key, -(int) $step, $group ?: 'default');
}

function wp_cache_flush()
{
    return OutsideCache::$one->flush(true);
}

function wp_cache_flush_runtime()
{
    return OutsideCache::$one->flush(false);
}

function wp_cache_add_global_groups($groups): void
{
    OutsideCache::$one->groups((array) $groups, false);
}

function wp_cache_add_non_persistent_groups($groups): void
{
    OutsideCache::$one->groups((array) $groups, true);
}

function wp_cache_switch_to_blog($blog): void
{
}

function wp_cache_close()
{
    return true;
}
