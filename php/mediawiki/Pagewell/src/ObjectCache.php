<?php

/**
 * Values in MediaWiki's object cache that MediaWiki lets expire, and does not delete when their data
 * change. A page that is rendered after the change would show, and store, the old value.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * Deletes values.
 *
 * @internal
 */
final class ObjectCache
{
    /**
     * Deletes values after the commit of the open transaction, and reports a change of this kind.
     *
     * @param list<list<string>> $keys each as the arguments of makeKey()
     */
    public static function forget(string $kind, array $keys): void
    {
        ChangeQueue::add($kind);
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_PRIMARY);
        $database->onTransactionCommitOrIdle(static function () use ($kind, $keys): void {
            $cache = MediaWikiServices::getInstance()->getMainWANObjectCache();
            foreach ($keys as $parts) {
                $cache->delete($cache->makeKey(...$parts));
            }
            // Once more, because the change may have been sent before the values were deleted.
            ChangeQueue::add($kind);
        }, __METHOD__);
    }
}
