<?php

/**
 * Says on the response that its page may show values of a cache that no SQL statement shows.
 *
 * PHP runs this file before each script (`auto_prepend_file`) where Pagewell sees the statements of an application
 * on their way to the database. A value from another cache is a read without a statement: the page would stay as it
 * is when the data change. So the response gets
 *
 *     X-Pagewell-Refusal: reads-hidden
 *
 * and Pagewell does not store it, unless the page has a reason of its own there. The field is added when the page
 * begins to be sent, by an output buffer that holds nothing back. Known by then:
 *
 *     MediaWiki    the kinds of caches in its settings; APCu, which it uses for its servers' own values if it is there
 *     WordPress    object-cache.php
 *     others       classes of Laravel, Symfony, Doctrine, Drupal and Predis for caches outside of the process, once
 *                  they are loaded
 *
 * The counters of APCu, Redis and memcached are those of all requests, and say nothing about one. Not seen: code that
 * calls the functions of an extension itself. `php.ini`'s own auto_prepend_file, which this one replaces, is loaded.
 *
 * PHP 7.4 to 8.4.
 */

(static function (): void {
    if (PHP_SAPI === 'cli' || !in_array($_SERVER['REQUEST_METHOD'] ?? '', ['GET', 'HEAD'], true)) {
        return;
    }
    // Loaded only where they are used. Those of Doctrine and Symfony for the application's own code are not among them.
    $classes = [
        'Illuminate\Cache\ApcStore', 'Illuminate\Cache\MemcachedStore', 'Illuminate\Cache\RedisStore', 'Illuminate\Cache\FileStore',
        'Symfony\Component\Cache\Adapter\RedisAdapter', 'Symfony\Component\Cache\Adapter\MemcachedAdapter',
        'Doctrine\Common\Cache\ApcuCache', 'Doctrine\Common\Cache\MemcachedCache', 'Doctrine\Common\Cache\RedisCache',
        'Drupal\Core\Cache\ApcuBackend', 'Drupal\memcache\MemcacheBackend', 'Drupal\redis\Cache\PhpRedis',
        'Predis\Client', 'Cm_Cache_Backend_Redis', 'Phpfastcache\CacheManager',
    ];
    $name = static function () use ($classes): string {
        // Switched off for a pool only, it still stores values.
        $hasApcu = function_exists('apcu_store') && (apcu_enabled() || @apcu_store('pagewell', 1, 1) === true);
        if (isset($GLOBALS['wgMainCacheType'], $GLOBALS['wgVersion']) || defined('MW_VERSION')) {
            // CACHE_ANYTHING, CACHE_NONE, CACHE_DB (its rows are read by statements), CACHE_HASH (of one request).
            foreach (['wgMainCacheType', 'wgMessageCacheType', 'wgParserCacheType'] as $setting) {
                $type = $GLOBALS[$setting] ?? 0;
                if (!in_array($type, [-1, 0, 1, 'hash', false, null, '-1', '0', '1'], true) && ($hasApcu || (string) $type !== '3')) {
                    return "mediawiki:$setting";
                }
            }
            return $hasApcu ? 'mediawiki:apcu' : '';
        }
        if (function_exists('wp_using_ext_object_cache') && wp_using_ext_object_cache()) {
            return 'object-cache.php';
        }
        foreach ($classes as $class) {
            if (class_exists($class, false)) {
                return $class;
            }
        }
        return '';
    };
    $isDone = false;
    ob_start(static function (string $content) use ($name, &$isDone): string {
        if (!$isDone && !headers_sent()) {
            $isDone = true;
            // A page with tags does not rely on its statements.
            $has = preg_grep('/^(x-pagewell-refusal|surrogate-key|cache-groups|cache-tag|xkey)\s*:/i', headers_list());
            if (!$has && $name() !== '') {
                header('X-Pagewell-Refusal: reads-hidden');
            }
        }
        return $content;
    }, 1);
})();

// PHP would have loaded the file of php.ini if the pool had not named this one instead.
if (
    (string) get_cfg_var('auto_prepend_file') !== ''
    && stream_resolve_include_path(ini_get('auto_prepend_file') ?: '') === __FILE__
) {
    require_once get_cfg_var('auto_prepend_file');
}
