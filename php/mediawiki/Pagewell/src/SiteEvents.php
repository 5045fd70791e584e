<?php

/** MediaWiki's hooks after a log entry, a change of users, or of the tags of revisions. */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * Handlers of hooks. They have MediaWiki's parameters, whose classes differ between its versions.
 *
 * @internal
 */
final class SiteEvents
{
    /** Logs whose entries have hooks of their own, or change no page. */
    private const SEPARATE = ['block', 'delete', 'import', 'merge', 'move', 'newusers', 'patrol', 'protect', 'rights', 'upload'];

    /** An entry was added to the recent changes: an edit, or an entry of a log. */
    public function onRecentChange_save($change): void // phpcs:ignore PSR1.Methods.CamelCapsMethodName
    {
        ChangeQueue::add('recent');
        if ((int) $change->getAttribute('rc_type') !== RC_LOG) {
            return;
        }
        ChangeQueue::add('log');
        // A command may write as a user whom it has just created, without a hook.
        PHP_SAPI === 'cli' && ChangeQueue::add('users');
        $namespace = (int) $change->getAttribute('rc_namespace');
        if ($namespace >= 0 && !in_array($change->getAttribute('rc_log_type'), self::SEPARATE, true)) {
            ChangeQueue::add('page', Tags::named($namespace, (string) $change->getAttribute('rc_title')));
        }
    }

    public function onChangeTagsAfterUpdateTags($added, $removed, $before, $changeId, $revisionId, $logId, $params, $change, $user): void
    {
        if ($added === [] && $removed === []) {
            return;
        }
        ChangeQueue::add('recent');
        // Manual changes are logged, but not as recent changes.
        ChangeQueue::add('log');
        $revision = $revisionId ? MediaWikiServices::getInstance()->getRevisionLookup()->getRevisionById((int) $revisionId) : null;
        if ($revision !== null) {
            ChangeQueue::add('history', Tags::title($revision->getPageAsLinkTarget()));
        }
        self::changeTags([...$added, ...$removed]);
    }

    /**
     * Lists offer the change tags that are in use. The counts are written at the end of the transaction.
     *
     * @param list<string> $tags added or removed ones
     */
    private static function changeTags(array $tags): void
    {
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_PRIMARY);
        $rare = $database->selectFieldValues('change_tag_def', 'ctd_name', ['ctd_name' => $tags, 'ctd_count <= 1'], __METHOD__);
        if ($rare === []) {
            return;
        }
        // MediaWiki itself keeps the list for a day, and the counts for five minutes.
        $language = MediaWikiServices::getInstance()->getContentLanguage()->getCode();
        ObjectCache::forget('changetags', [['tags-list-summary', $language], ['tags-usage-statistics']]);
    }

    public function onLocalUserCreated($user, $isAutomatic): void
    {
        self::user($user->getName());
        ChangeQueue::add('statistics');
        ChangeQueue::add('log');
    }

    public function onUserGroupsChanged($user, $added, $removed, $performer, $reason, $before, $after): void
    {
        self::user($user->getName());
        // MediaWiki keeps the number of members for an hour.
        ObjectCache::forget('statistics', array_map(static fn (string $group): array => ['SiteStats', 'groupcounts', $group], [...$added, ...$removed]));
    }

    public function onBlockIpComplete($block, $user, $earlier): void
    {
        self::blocked($block);
    }

    public function onUnblockUserComplete($block, $user): void
    {
        self::blocked($block);
    }

    /** A block can hide the name of the user, on all histories, logs and lists. */
    private static function blocked($block): void
    {
        $block->getHideName() && ChangeQueue::addEverything();
        self::user((string) $block->getTargetName());
    }

    /** The name of a user is on all histories and lists. */
    public function onRenameUserComplete($id, $old, $new): void
    {
        ChangeQueue::addEverything();
    }

    private static function user(string $name): void
    {
        $name === '' || ChangeQueue::add('user', Tags::name($name));
        ChangeQueue::add('users');
    }
}
