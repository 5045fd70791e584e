<?php

/**
 * MediaWiki's job that counts the active users and removes old recent changes. It has no hook, so
 * this class takes its place (Setup), and reports the change when the job has run.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/**
 * The job `recentChangesUpdate`.
 *
 * @internal
 */
final class StatisticsJob extends \RecentChangesUpdateJob
{
    public function run(): bool
    {
        $isDone = parent::run();
        ChangeQueue::add(($this->params['type'] ?? '') === 'purge' ? 'recent' : 'statistics');
        return $isDone;
    }
}
