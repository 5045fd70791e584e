<?php

/**
 * Names that wait for the control interface.
 *
 *     a web request              told as it ends
 *     a command, wp-cron         told while it runs: a name is sent between one second and a little over two
 *                                after the change, or earlier once there are MANY younger ones; the rest
 *                                as it ends
 *     a hook before the write    waits for the hook after it (BEFORE), or for the end
 *     a transaction is open      waits for its end
 *     Pagewell does not answer   stays; tried again after ten seconds, and as the process ends
 *
 * A hook may come before WordPress has emptied its caches, so a name that was just added is never sent at
 * once: a page that is rendered in between would be stored with the old data. Bounded: over TAGS_MAX
 * names, those that stand for everything take their place.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Keeps names, and tells of those that are ripe. */
final class Queue
{
    /** The most names that wait, and that one call sends. */
    public const TAGS_MAX = 5000;

    /** Names of the last operations that are not sent yet, however fast a job is. */
    private const MANY = 1500;

    private const TURN_NANOSECONDS = 1_000_000_000;
    private const PAUSE_NANOSECONDS = 10_000_000_000;

    /** Hook before a write → hook after it, each with the id. */
    private const BEFORE = [
        'before_delete_post' => 'after_delete_post',
        'delete_attachment' => 'clean_post_cache',
        'pre_delete_term' => 'delete_term',
        'edit_terms' => 'edited_term',
        'wp_update_comment_data' => 'edit_comment',
        'delete_user' => 'deleted_user',
        'wpmu_delete_user' => 'deleted_user',
        'remove_user_from_blog' => '',
        'delete_option' => 'deleted_option',
        'delete_link' => 'deleted_link',
    ];

    /** @var array<string, true> added since the last turn */
    private static array $young = [];

    /** @var array<string, true> added before it: sent with the next turn */
    private static array $ripe = [];

    /** @var array<string, array<string, true>> by the hook before a write, and the id */
    private static array $held = [];

    /** Which of these hooks is running. */
    private static ?string $holder = null;

    /** @var array<string, true> sent while the process runs, for the journal */
    private static array $sent = [];

    private static int $turned = 0;

    private static int $pausedUntil = 0;

    private static bool $isInTransaction = false;

    private static bool $isTurning = false;

    /** Only a process that may run for long tells while it runs. */
    public static function listen(): void
    {
        if (self::isLong()) {
            add_filter('query', self::queried(...), PHP_INT_MAX);
            foreach (array_filter(self::BEFORE) as $before => $after) {
                add_action($after, static fn (mixed $id) => self::release($before, $id), PHP_INT_MAX);
            }
        }
    }

    /** @param array<string, true> $tags as they travel */
    public static function add(array $tags): void
    {
        if (self::$young === [] && self::$ripe === []) {
            self::$turned = hrtime(true);
        }
        if (self::$holder !== null) {
            self::$held[self::$holder] = $tags + (self::$held[self::$holder] ?? []);
            $held = array_replace(...array_values(self::$held));
            self::$held = count($held) <= self::TAGS_MAX ? self::$held : ['' => Changes::bounded($held, self::TAGS_MAX)];
        } else {
            // Before what is new is added: that is not ripe.
            self::poll();
            self::$young += $tags;
        }
        if (count(self::$young) + count(self::$ripe) > self::TAGS_MAX) {
            [self::$young, self::$ripe] = [Changes::bounded(self::$young + self::$ripe, 0), []];
        }
    }

    /** Sends what is ripe, and what nothing more was said of. */
    public static function poll(): void
    {
        if (self::$holder === null && self::turn()) {
            Strays::turn();
        }
    }

    /** Runs what listens to a hook. What it names waits, if WordPress has not written yet. */
    public static function during(string $hook, array $given, callable $does): void
    {
        // A filter gives what will be written, and behind it the comment as it is.
        $id = array_filter([$given[0] ?? null, is_array($given[1] ?? null) ? $given[1]['comment_ID'] ?? null : null], is_scalar(...));
        $outer = self::$holder;
        self::$holder = isset(self::BEFORE[$hook]) && self::isLong() ? "$hook " . reset($id) : null;
        try {
            $does();
        } finally {
            self::$holder = $outer;
        }
    }

    /**
     * All that waits: the process ends.
     *
     * @return list<string>
     */
    public static function take(): array
    {
        // A name may be a number, which array_merge() would count anew.
        $all = array_replace(self::$ripe, self::$young, ...array_values(self::$held));
        [self::$ripe, self::$young, self::$held] = [[], [], []];
        return array_map('strval', array_keys($all));
    }

    /**
     * What was sent while the process ran.
     *
     * @return list<string>
     */
    public static function takeSent(): array
    {
        [$sent, self::$sent] = [self::$sent, []];
        return array_map('strval', array_keys($sent));
    }

    private static function isLong(): bool
    {
        return PHP_SAPI === 'cli' || wp_doing_cron();
    }

    private static function release(string $before, mixed $id): void
    {
        $place = $before . ' ' . (is_scalar($id) ? $id : '');
        self::$young += self::$held[$place] ?? [];
        unset(self::$held[$place]);
    }

    /** A job that changes nothing for a while still asks the database. Asks it nothing itself: this runs within a question. */
    private static function queried(mixed $query): mixed
    {
        if (is_string($query) && preg_match('/^\s*(?:(START\s+TRANSACTION|BEGIN|SET\s+autocommit\s*=\s*0)|COMMIT|ROLLBACK(?!\s+TO)|SET\s+autocommit\s*=\s*1)\b/i', $query, $found) === 1) {
            self::$isInTransaction = isset($found[1]);
        }
        self::turn();
        return $query;
    }

    /**
     * What was added before the last turn is sent, if it is time.
     *
     * @return bool whether it was
     */
    private static function turn(): bool
    {
        $now = hrtime(true);
        $isDue = $now - self::$turned >= self::TURN_NANOSECONDS || count(self::$young) >= self::MANY;
        if (!$isDue || self::$isTurning || self::$isInTransaction || $now < self::$pausedUntil || !self::isLong()) {
            return false;
        }
        self::$isTurning = true;
        [$sent, self::$ripe, self::$young, self::$turned] = [self::$ripe, self::$young, [], $now];
        $fault = $sent === [] ? null : Control::invalidate(array_map('strval', array_keys($sent)));
        if ($fault === null) {
            self::$sent = array_slice(self::$sent + $sent, 0, self::TAGS_MAX, true);
        } else {
            self::$ripe += $sent;
            self::$pausedUntil = hrtime(true) + self::PAUSE_NANOSECONDS;
        }
        self::$isTurning = false;
        return true;
    }
}
