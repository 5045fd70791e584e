<?php

/**
 * Names that wait for a call of the control interface.
 *
 *     a web request              sent at its end
 *     a command, wp-cron         sent while it runs: a name is sent between one second and a little over two
 *                                after the change, or earlier once there are MANY younger ones; the rest
 *                                at its end
 *     a hook before the write    waits for the hook after it (BEFORE), or for the end
 *     a transaction is open      waits for its end
 *     Pagewell does not answer   stays; retried after ten seconds, and at the end of the process
 *
 * A hook may run before WordPress has emptied its caches, so a new name is never sent at once. A
 * page that is rendered in between would be stored with old data. Bounded: above TagBounds::IN_CALL_MAX names,
 * they are replaced by `site`.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Purge;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Observer;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tables;
use Pagewell\WordPress\Write\DirectPostWrites;
use Pagewell\WordPress\Write\WrittenPosts;

/**
 * Stores names, and sends those that are old enough.
 *
 * @internal
 */
final class Queue
{
    /** The number of young names above which older ones are sent earlier. */
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

    /** The hook that is running, if it is one of these. */
    private static ?string $holder = null;

    /** @var array<string, true> sent while the process runs, for the journal */
    private static array $sent = [];

    private static int $turned = 0;

    private static int $pausedUntil = 0;

    /** Null: queries are not looked at. */
    private static ?bool $isInTransaction = null;

    private static bool $isTurning = false;

    private static bool $isAdding = false;

    /** Registers the hooks where something may be written; only a long-running process sends names while it runs. */
    public static function listen(): void
    {
        if (self::mayWrite() || isset($_GET['_wpnonce'])) {
            self::$isInTransaction = false;
            WrittenPosts::begin();
            add_filter('query', Observer::of('query', self::queried(...)), PHP_INT_MAX);
        }
        if (self::isLong()) {
            foreach (array_filter(self::BEFORE) as $before => $after) {
                add_action($after, Observer::of($after, static fn (mixed $id) => self::release($before, $id)), PHP_INT_MAX);
            }
        }
    }

    /** Whether the request is none that only shows a page. */
    private static function mayWrite(): bool
    {
        return self::isLong() || Front::isUnsafe() || is_admin();
    }

    /** Whether a query may find the database as it was when a transaction began. */
    public static function mayBeInTransaction(): bool
    {
        return self::$isInTransaction !== false;
    }

    /** @param array<string, true> $tags full names, see Tags::full() */
    public static function add(array $tags): void
    {
        if (self::$young === [] && self::$ripe === []) {
            self::$turned = hrtime(true);
        }
        if (self::$holder !== null) {
            self::$held[self::$holder] = $tags + (self::$held[self::$holder] ?? []);
            $held = array_replace(...array_values(self::$held));
            self::$held = count($held) <= TagBounds::IN_CALL_MAX ? self::$held : ['' => TagBounds::whole($held)];
        } else {
            // Before the new names are added, because they are too young.
            self::poll();
            self::$young += $tags;
        }
        if (count(self::$young) + count(self::$ripe) > TagBounds::IN_CALL_MAX) {
            [self::$young, self::$ripe] = [TagBounds::whole(self::$young + self::$ripe), []];
        }
    }

    /** Sends names that are old enough. */
    public static function poll(): void
    {
        if (self::$holder === null && self::turn()) {
            DirectPostWrites::turn();
            SitemapPages::end();
        }
    }

    /** Runs the listener of a hook. Its names wait if WordPress has not written yet. */
    public static function during(string $hook, array $given, callable $does): void
    {
        // A filter passes the new comment, then the existing one.
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
     * Returns all waiting names, because the process ends.
     *
     * @return list<string>
     */
    public static function take(): array
    {
        // A name may be a number, which array_merge() would renumber.
        $all = array_replace(self::$ripe, self::$young, ...array_values(self::$held));
        [self::$ripe, self::$young, self::$held] = [[], [], []];
        return array_map('strval', array_keys($all));
    }

    /**
     * Returns the names that were sent while the process ran.
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

    /** Called for each query, because a job may change nothing for a while. Must not query the database itself. */
    private static function queried(mixed $query): mixed
    {
        if (is_string($query) && preg_match('/^\s*(?:(START\s+TRANSACTION|BEGIN|SET\s+autocommit\s*=\s*0)|COMMIT|ROLLBACK(?!\s+TO)|SET\s+autocommit\s*=\s*1)\b/i', $query, $found) === 1) {
            self::$isInTransaction = isset($found[1]);
        }
        if (is_string($query)) {
            WrittenPosts::see($query);
            self::written(Tables::written($query));
        }
        self::turn();
        return $query;
    }

    /** @param list<string> $tables that a statement is about to write; a change may read the journal, by a further statement */
    private static function written(array $tables): void
    {
        // By a link with a nonce, a member writes in a page view: joins a group, deletes an entry.
        if ($tables !== [] && !self::$isTurning && !self::$isAdding && (self::mayWrite() || (did_action('init') > 0 && is_user_logged_in()))) {
            self::$isAdding = true;
            try {
                Changes::add(...$tables);
            } finally {
                self::$isAdding = false;
            }
        }
    }

    /**
     * Sends the names that were added before the last turn, if it is time.
     *
     * @return bool whether it was time
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
        $fault = $sent === [] ? null : ControlClient::invalidate(array_map('strval', array_keys($sent)));
        if ($fault === null) {
            self::$sent = array_slice(self::$sent + $sent, 0, TagBounds::IN_CALL_MAX, true);
        } else {
            self::$ripe += $sent;
            self::$pausedUntil = hrtime(true) + self::PAUSE_NANOSECONDS;
        }
        self::$isTurning = false;
        return true;
    }
}
