<?php

/**
 * What was told to Pagewell lately, and what could not be told yet; kept among the blog's options.
 *
 *     pagewell_told              the last TOLD_MAX changes with a few of their names, for the settings page
 *     pagewell_tried             when something could not be told last, in Unix seconds
 *     pagewell_pending_<random>  what one request could not tell
 *     pagewell_pending           the same of many requests, as versions before this one kept it
 *
 * Requests run beside each other, each with its own copy of the options. So what is pending never
 * passes through WordPress's options: a row is inserted without a look at the others, read from the
 * table itself, never changed, and deleted when what it says was told. Nobody can write over what
 * another keeps, or delete what he has not told.
 *
 * Bounded: a row has the names of one request (Changes::TAGS_MAX); over ROWS_MAX rows, one that
 * stands for everything takes their place. One that cannot be read stands for everything, too.
 *
 * A database that cannot be written to, or has no such table, keeps nobody from anything: the log says
 * so, no page does, and what could not be deleted is told once more.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Remembers. */
final class Journal
{
    private const TOLD = 'pagewell_told';
    private const TRIED = 'pagewell_tried';
    private const PENDING = 'pagewell_pending';
    private const TOLD_MAX = 20;
    private const NAMES_MAX = 12;
    private const ROWS_MAX = 100;

    /**
     * Told: on an `answer`, or over the `control` interface; and with it what was pending, as it was read.
     *
     * @param list<string> $tags
     */
    public static function told(string $way, array $tags, Pending $pending): void
    {
        self::forget($pending);
        $entry = ['at' => time(), 'way' => $way, 'tags' => array_slice($tags, 0, self::NAMES_MAX), 'count' => count($tags)];
        update_option(self::TOLD, array_slice([$entry, ...self::lately()], 0, self::TOLD_MAX), false);
    }

    /**
     * Could not be told. What was pending before stays so.
     *
     * @param list<string> $tags
     */
    public static function keep(array $tags): void
    {
        update_option(self::TRIED, time(), false);
        if ($tags !== [] && !self::insert($tags) && !self::insert(Tags::everything($tags))) {
            error_log('pagewell: changes could be neither told nor kept; run: pagewell invalidate --all');
        }
        $pending = self::pending();
        if (count($pending->rows) > self::ROWS_MAX && self::insert(Tags::everything($pending->tags))) {
            self::forget($pending);
        }
    }

    /** What could not be told, by whichever request: as it stands in the database. */
    public static function pending(): Pending
    {
        global $wpdb;
        // Without an order: any other than that of the names would have the whole table read.
        $query = "SELECT option_name, option_value FROM `$wpdb->options` WHERE " . self::ours() . ' LIMIT ' . 2 * self::ROWS_MAX;
        $found = (array) self::unshown(static fn (): mixed => $wpdb->get_results($query, ARRAY_A));
        $rows = array_column($found, 'option_value', 'option_name');
        $tags = array_merge(...array_map(self::read(...), array_values($rows)));
        return new Pending($wpdb->options, $rows, array_values(array_unique($tags)), count($rows) < 2 * self::ROWS_MAX, get_current_blog_id());
    }

    /** How long ago something could not be told, in seconds. A time to come is one that the clock was set back from. */
    public static function failedSecondsAgo(): int
    {
        $seconds = time() - (int) get_option(self::TRIED);
        return $seconds < 0 ? PHP_INT_MAX : $seconds;
    }

    /** @return list<array{at: int, way: string, tags: list<string>, count: int}> newest first */
    public static function lately(): array
    {
        return array_values((array) get_option(self::TOLD, []));
    }

    /** Leaves nothing in the blog's options: for uninstall.php. */
    public static function remove(): void
    {
        global $wpdb;
        self::unshown(static fn (): mixed => $wpdb->query("DELETE FROM `$wpdb->options` WHERE " . self::ours()));
        self::forgetCopies();
        delete_option(self::TOLD);
        delete_option(self::TRIED);
        self::unshown(static fn (): mixed => $wpdb->query("DELETE FROM `$wpdb->options` WHERE option_name LIKE '\\_transient\\_%pagewell\\_dropped\\_%'"));
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
            // An earlier version, still running elsewhere, may have written it anew: then it stays.
            $row = ['option_name' => self::PENDING, 'option_value' => $pending->rows[self::PENDING]];
            self::unshown(static fn (): mixed => $wpdb->delete($pending->table, $row));
            $elsewhere = is_multisite() && $pending->blog !== get_current_blog_id();
            $elsewhere && switch_to_blog($pending->blog);
            self::forgetCopies();
            $elsewhere && restore_current_blog();
        }
    }

    /** WordPress keeps options in a cache, which may be outside of the process: the earlier version reads them there. */
    private static function forgetCopies(): void
    {
        wp_cache_delete(self::PENDING, 'options');
        wp_cache_delete('alloptions', 'options');
    }

    /** The condition for the rows of what is pending. */
    private static function ours(): string
    {
        global $wpdb;
        return $wpdb->prepare('(option_name = %s OR option_name LIKE %s)', self::PENDING, $wpdb->esc_like(self::PENDING . '_') . '%');
    }

    /** Asks the database. What it cannot do is said in the log, and not in the page that is being made. */
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
        // A name that is none could not be sent.
        return preg_grep('/^[\x21-\x7e]+$/D', $tags, PREG_GREP_INVERT) === [] ? array_values($tags) : Tags::everything([]);
    }
}
