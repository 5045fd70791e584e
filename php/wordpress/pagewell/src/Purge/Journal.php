<?php

/**
 * The changes recently sent to Pagewell, and those not sent yet; stored in the blog's options.
 *
 *     pagewell_sent              the last SENT_MAX changes with a few of their names, for the settings page
 *     pagewell_tried             the time of the last failed attempt, in Unix seconds
 *     pagewell_pending_<random>  the unsent changes of one request
 *     pagewell_pending           the same of many requests, in the format of earlier versions
 *
 * Requests run concurrently, each with its own copy of the options. So pending changes bypass
 * WordPress's option functions. A row is inserted without a look at the others, read from the table
 * itself, never updated, and deleted after its changes were sent. No request can overwrite the
 * changes of another, or delete changes that it has not sent.
 *
 * Bounded: a row has the names of one request (TagBounds). Above ROWS_MAX rows, they are
 * replaced by one that stands for everything. So does an unreadable row.
 *
 * If the database cannot be written, or the table is missing, no page or write fails. The error is
 * only logged, and changes that could not be deleted are sent once more.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Purge;

use Pagewell\WordPress\Tags;

/**
 * Stores sent and pending changes.
 *
 * @internal
 */
final class Journal
{
    private const SENT = 'pagewell_sent';
    private const TRIED = 'pagewell_tried';
    private const PENDING = 'pagewell_pending';
    private const SENT_MAX = 20;
    private const NAMES_MAX = 12;
    private const ROWS_MAX = 100;

    /**
     * Records changes that were sent, on a response (`answer`) or over the `control` interface,
     * together with the pending ones.
     *
     * @param list<string> $tags
     */
    public static function sent(string $way, array $tags, Pending $pending): void
    {
        self::forget($pending);
        $entry = ['at' => time(), 'way' => $way, 'tags' => array_slice($tags, 0, self::NAMES_MAX), 'count' => count($tags)];
        update_option(self::SENT, array_slice([$entry, ...self::recent()], 0, self::SENT_MAX), false);
    }

    /**
     * Records changes that could not be sent. Earlier pending changes stay pending.
     *
     * @param list<string> $tags
     */
    public static function keep(array $tags): void
    {
        update_option(self::TRIED, time(), false);
        if ($tags !== [] && !self::insert($tags) && !self::insert(Tags::everything($tags))) {
            error_log('pagewell: changes could be neither sent nor stored; run: pagewell purge --all');
        }
        $pending = self::pending();
        if (count($pending->rows) > self::ROWS_MAX && self::insert(Tags::everything($pending->tags))) {
            self::forget($pending);
        }
    }

    /** Returns the pending changes of all requests, from the database. */
    public static function pending(): Pending
    {
        global $wpdb;
        // Without ORDER BY: any order but that of the names would read the whole table.
        $query = "SELECT option_name, option_value FROM `$wpdb->options` WHERE " . self::ours() . ' LIMIT ' . 2 * self::ROWS_MAX;
        $found = (array) self::unshown(static fn (): mixed => $wpdb->get_results($query, ARRAY_A));
        $rows = array_column($found, 'option_value', 'option_name');
        $tags = array_merge(...array_map(self::read(...), array_values($rows)));
        return new Pending($wpdb->options, $rows, array_values(array_unique($tags)), count($rows) < 2 * self::ROWS_MAX, get_current_blog_id());
    }

    /** Seconds since the last failed attempt. A time in the future means that the clock was set back. */
    public static function failedSecondsAgo(): int
    {
        $seconds = time() - (int) get_option(self::TRIED);
        return $seconds < 0 ? PHP_INT_MAX : $seconds;
    }

    /** @return list<array{at: int, way: string, tags: list<string>, count: int}> newest first */
    public static function recent(): array
    {
        return array_values((array) get_option(self::SENT, []));
    }

    /** Removes everything from the blog's options: for uninstall.php. */
    public static function remove(): void
    {
        global $wpdb;
        self::unshown(static fn (): mixed => $wpdb->query("DELETE FROM `$wpdb->options` WHERE " . self::ours()));
        self::forgetCopies();
        delete_option(self::SENT);
        delete_option(self::TRIED);
        self::unshown(static fn (): mixed => $wpdb->query("DELETE FROM `$wpdb->options` WHERE option_name LIKE '\\_transient\\_%pagewell\\_%'"));
    }

    /** @param list<string> $tags */
    private static function insert(array $tags): bool
    {
        global $wpdb;
        return (bool) self::unshown(static fn (): mixed => $wpdb->insert($wpdb->options, [
            'option_name' => self::PENDING . '_' . bin2hex(random_bytes(12)),
            'option_value' => serialize(['at' => time(), 'tags' => $tags]),
            'autoload' => 'no',
        ]));
    }

    private static function forget(Pending $pending): void
    {
        global $wpdb;
        $names = array_map('strval', array_keys($pending->rows));
        $ours = array_values(array_diff($names, [self::PENDING]));
        if ($ours !== []) {
            $places = implode(', ', array_fill(0, count($ours), '%s'));
            $query = $wpdb->prepare("DELETE FROM `$pending->table` WHERE option_name IN ($places)", ...$ours);
            self::unshown(static fn (): mixed => $wpdb->query($query));
        }
        if (count($names) > count($ours)) {
            // An earlier version, still running elsewhere, may have rewritten it: then it stays.
            $row = ['option_name' => self::PENDING, 'option_value' => $pending->rows[self::PENDING]];
            self::unshown(static fn (): mixed => $wpdb->delete($pending->table, $row));
            $elsewhere = is_multisite() && $pending->blog !== get_current_blog_id();
            $elsewhere && switch_to_blog($pending->blog);
            self::forgetCopies();
            $elsewhere && restore_current_blog();
        }
    }

    /** WordPress caches options, perhaps outside of the process: an earlier version reads them there. */
    private static function forgetCopies(): void
    {
        wp_cache_delete(self::PENDING, 'options');
        wp_cache_delete('alloptions', 'options');
    }

    /** The condition for the rows with pending changes. */
    private static function ours(): string
    {
        global $wpdb;
        return $wpdb->prepare('(option_name = %s OR option_name LIKE %s)', self::PENDING, $wpdb->esc_like(self::PENDING . '_') . '%');
    }

    /** Runs database queries. Errors are logged, and not printed into the page. */
    private static function unshown(callable $asks): mixed
    {
        global $wpdb;
        $shown = $wpdb->hide_errors();
        try {
            return $asks();
        } finally {
            $shown && $wpdb->show_errors();
        }
    }

    /** @return list<string> the names in a row */
    private static function read(string $value): array
    {
        $kept = @unserialize($value, ['allowed_classes' => false]);
        $tags = is_array($kept) && is_array($kept['tags'] ?? null) ? array_map('strval', array_filter($kept['tags'], is_scalar(...))) : [''];
        // An invalid name could not be sent.
        return preg_grep('/^[\x21-\x7e]+$/D', $tags, PREG_GREP_INVERT) === [] ? array_values($tags) : Tags::everything([]);
    }
}
