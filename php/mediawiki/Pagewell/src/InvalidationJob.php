<?php

/**
 * Changes that could not be sent: the job queue sends them again, until Pagewell answers.
 *
 *     it runs          takes all jobs of its type from the queue, and sends their changes in one call
 *     that fails       one new job has the changes of all; only then the queue forgets the others
 *     more than 64 KB  becomes one change of every page
 *
 * MediaWiki would repeat a failed job after an hour, and three times at most. Its throttle of job types
 * leaves PAUSE_SECONDS between two calls. A process without it (`runJobs.php --nothrottle`) holds the changes
 * for as long, and puts them back when it ends. A process that is killed in between leaves its jobs claimed:
 * these are the ones that MediaWiki repeats after an hour.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use Pagewell\MediaWiki\Core\Changes;
use Pagewell\MediaWiki\Core\Invalidation;

/**
 * The job `pagewellInvalidate`.
 *
 * @internal
 */
final class InvalidationJob extends \Job implements \GenericParameterJob
{
    public const TYPE = 'pagewellInvalidate';

    /** Time between two calls. */
    public const PAUSE_SECONDS = 30;

    /** Maximum number of jobs for one call. */
    private const JOBS_MAX = 1000;

    /** When a call of this process failed, in nanoseconds of hrtime(). */
    private static ?int $failedAt = null;

    /** @var list<self> jobs that are put back when the process ends */
    private static array $held = [];

    public function __construct(array $params)
    {
        parent::__construct(self::TYPE, $params);
        $this->executionFlags |= self::JOB_NO_EXPLICIT_TRX_ROUND;
    }

    /** Creates the job for changes that could not be sent since a time (Unix). */
    public static function push(Invalidation $changes, ?int $since = null): void
    {
        $job = new \JobSpecification(self::TYPE, ['body' => $changes->json(), 'since' => $since ?? time()]);
        MediaWikiServices::getInstance()->getJobQueueGroup()->push($job);
    }

    public function run(): bool
    {
        [$held, self::$held] = [self::$held, []];
        for ($jobs = [$this, ...$held, ...self::others()]; $jobs !== []; $jobs = self::others()) {
            if (self::$failedAt !== null && hrtime(true) - self::$failedAt < self::PAUSE_SECONDS * 1_000_000_000) {
                array_push(self::$held, ...$jobs);
                $this->setLastError('Pagewell did not answer a moment ago');
                return false;
            }
            $changes = self::together($jobs);
            $fault = ControlClient::invalidate($changes);
            if ($fault !== null) {
                self::$failedAt = (int) hrtime(true);
                $this->setLastError($fault);
                self::putBack($jobs, $changes, $fault);
                return !in_array($this, $jobs, true);
            }
            self::forget(array_filter($jobs, fn (self $job): bool => $job !== $this));
        }
        return true;
    }

    /** Puts back what this process could not send. Called when it ends. */
    public static function end(): void
    {
        [$jobs, self::$held] = [self::$held, []];
        $jobs === [] || self::putBack($jobs, self::together($jobs), 'it did not answer a moment ago');
    }

    /** @return list<self> other jobs of this type, which are claimed now */
    private static function others(): array
    {
        $jobs = [];
        $queue = self::queue();
        while (count($jobs) < self::JOBS_MAX && ($job = $queue->pop()) instanceof self) {
            $jobs[] = $job;
        }
        return $jobs;
    }

    /** @param list<self> $jobs */
    private static function together(array $jobs): Invalidation
    {
        $changes = new Changes();
        foreach ($jobs as $job) {
            $one = Invalidation::ofJson((string) ($job->params['body'] ?? ''));
            // A damaged job purges everything: its names are not known.
            if ($one === null || $one->all || in_array('', $one->tags, true)) {
                return new Invalidation(all: true);
            }
            $changes->changedTags(...$one->tags);
        }
        return $changes->invalidation();
    }

    /** @param list<self> $jobs */
    private static function putBack(array $jobs, Invalidation $changes, string $fault): void
    {
        $since = min(array_map(static fn (self $job): int => (int) ($job->params['since'] ?? time()), $jobs));
        try {
            self::push($changes, $since);
            self::forget($jobs);
        } catch (\Throwable $failure) {
            error_log("pagewell: the job could not be repeated, so old pages may be served for an hour: {$failure->getMessage()}");
            return;
        }
        $what = $changes->all ? 'a change of every page' : count($changes->tags) . ' changed names';
        error_log("pagewell: $what could not be sent since " . gmdate('Y-m-d H:i:s', $since) . " UTC, and old pages may be served; the job queue tries again: $fault");
    }

    /** @param array<self> $jobs jobs that the queue removes */
    private static function forget(array $jobs): void
    {
        array_map(self::queue()->ack(...), $jobs);
    }

    /** Returns the queue. On SQLite each one has a connection, which its jobs keep open. */
    private static function queue(): \JobQueue
    {
        return MediaWikiServices::getInstance()->getJobQueueGroup()->get(self::TYPE);
    }
}
