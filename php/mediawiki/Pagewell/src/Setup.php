<?php

/**
 * Starts the extension in each process: pages are offered when the header section is sent, and the
 * changes of a write are complete before its response.
 *
 *     GET                  CacheHeaders decides just before the header section is sent
 *     POST, PUT …          deferred updates run before the response, so that links, categories and
 *                          counters are changed, and reported, before the editor has the answer
 *     a command, a job     ChangeQueue reports after each commit
 *
 * PHP has one callback for the header section. MediaWiki has one of its own, which is called from
 * this one.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use Pagewell\MediaWiki\Core\Credentials;
use Pagewell\MediaWiki\Core\Front;

/**
 * Registers what has no hook.
 *
 * @internal
 */
final class Setup
{
    /** MediaWiki's own callback: since 1.40, and before. */
    private const CALLBACKS = ['MediaWiki\Request\HeaderCallback', 'MediaWiki\HeaderCallback'];

    /** Called by MediaWiki when its settings are complete. */
    public static function begin(): void
    {
        register_shutdown_function(self::end(...));
        Observer::watch('the start of the extension', false, self::prepare(...));
        if (PHP_SAPI === 'cli') {
            return;
        }
        if (Front::isReference()) {
            // No visitor sees the response: it runs no jobs.
            $GLOBALS['wgJobRunRate'] = 0;
        }
        if (Front::isUnsafe()) {
            $GLOBALS['wgForceDeferredUpdatesPreSend'] = true;
        }
        header_register_callback(self::headers(...));
        // Loaded now, because a class may not be found while the header section is sent.
        array_map(class_exists(...), [CacheHeaders::class, Credentials::class, Page::class, ChangeQueue::class, Reads::class, Modules::class, Observer::class, Refusal::class]);
    }

    private static function prepare(): void
    {
        if (($GLOBALS['wgJobClasses']['recentChangesUpdate'] ?? '') === 'RecentChangesUpdateJob') {
            $GLOBALS['wgJobClasses']['recentChangesUpdate'] = StatisticsJob::class;
        }
        // Calls that fail are repeated after this time. A setting of the administrator stays.
        $GLOBALS['wgJobBackoffThrottling'] += [InvalidationJob::TYPE => 1 / InvalidationJob::PAUSE_SECONDS];
        // Texts of old revisions are kept without a look at their templates, and no hook can refuse them.
        $GLOBALS['wgOldRevisionParserCacheExpireTime'] = 0;
        // For some seconds after a change, the object cache may return a value that is older than the change.
        $cache = MediaWikiServices::getInstance()->getMainWANObjectCache();
        method_exists($cache, 'useInterimHoldOffCaching') && $cache->useInterimHoldOffCaching(false);
    }

    private static function headers(): void
    {
        CacheHeaders::decide();
        Observer::watch('the sending of changes', true, ChangeQueue::atHeaders(...));
        foreach (self::CALLBACKS as $class) {
            if (class_exists($class, false)) {
                $class::callback();
                return;
            }
        }
    }

    /** PHP may send a short response after its shutdown functions, when MediaWiki's services are gone. */
    private static function end(): void
    {
        if (PHP_SAPI !== 'cli' && !headers_sent()) {
            CacheHeaders::decide();
            Observer::watch('the sending of changes', true, ChangeQueue::atHeaders(...));
        }
        Observer::watch('the sending of changes', true, ChangeQueue::flush(...));
        if (class_exists(InvalidationJob::class, false)) {
            Observer::watch('the end of jobs', true, InvalidationJob::end(...));
        }
    }
}
