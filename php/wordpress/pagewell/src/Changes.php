<?php

/**
 * What the running request has changed, and how Pagewell is told.
 *
 *     a write (POST, PUT …) that came through Pagewell,      Cache-Group-Invalidation on its answer,
 *     before the header section is sent                      RFC 9875: no connection, no waiting
 *     wp-cron, WP-CLI, links in wp-admin that write by GET,  the control interface, once, as the
 *     requests past Pagewell, changes after the headers      request ends
 *     Pagewell does not answer                               kept (Journal), told with the next ones
 *
 * A change is put on the answer at once: whatever goes wrong afterwards, the answer still says it.
 * Nothing here throws, and nothing keeps a page or a write from being done.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Collects, and tells. */
final class Changes
{
    /** The most names of one request; beyond, `site` stands for everything. */
    public const TAGS_MAX = 1000;

    private const RETRY_SECONDS = 60;
    private const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE'];

    /** @var array<string, true> on the answer already */
    private static array $carried = [];

    /** @var array<string, true> to be told as the request ends */
    private static array $waiting = [];

    /** Listens to WordPress, and tells when the request ends. */
    public static function listen(): void
    {
        Events::listen();
        // Before the output is sent, if there is still something that holds it; and once more for
        // what other plugins write while the request ends.
        add_action('shutdown', self::tell(...), PHP_INT_MIN);
        add_action('shutdown', self::tell(...), PHP_INT_MAX);
        add_action('pagewell_retry', self::retry(...));
        add_action('admin_init', self::retry(...));
    }

    /** These have changed. */
    public static function add(string ...$tags): void
    {
        foreach ($tags as $tag) {
            self::$waiting[Tags::full($tag)] = true;
        }
        if (self::canCarry()) {
            self::$carried = self::bounded(self::$carried + self::$waiting + array_fill_keys(Journal::pending(), true));
            self::$waiting = [];
            self::setHeader();
        }
    }

    /** Whether this request came through Pagewell: it signs what it passes on. */
    public static function isInFront(): bool
    {
        return str_starts_with((string) ($_SERVER['SERVER_SOFTWARE'] ?? ''), 'pagewell/')
            || preg_match('/\bpagewell\b/', (string) ($_SERVER['HTTP_VIA'] ?? '')) === 1;
    }

    /** What could not be told before; not so often that an address that does not answer holds anybody up. */
    private static function retry(): void
    {
        if (Journal::pending() !== [] && Journal::failedSecondsAgo() >= self::RETRY_SECONDS) {
            self::tellOver(Journal::pending());
        }
    }

    private static function tell(): void
    {
        if (self::$carried !== []) {
            Journal::told('answer', array_map('strval', array_keys(self::$carried)));
            self::$carried = [];
        }
        if (self::$waiting !== []) {
            $tags = self::bounded(self::$waiting + array_fill_keys(Journal::pending(), true));
            self::$waiting = [];
            self::tellOver(array_map('strval', array_keys($tags)));
        }
    }

    /** @param list<string> $tags */
    private static function tellOver(array $tags): void
    {
        $fault = Control::invalidate($tags);
        if ($fault === null) {
            Journal::told('control', $tags);
            return;
        }
        Journal::keep($tags);
        error_log("pagewell: changes could not be told, and will be with the next ones: $fault");
        if (!wp_next_scheduled('pagewell_retry')) {
            wp_schedule_single_event(time() + self::RETRY_SECONDS, 'pagewell_retry');
        }
    }

    private static function canCarry(): bool
    {
        return PHP_SAPI !== 'cli' && !headers_sent() && self::isInFront()
            && in_array(strtoupper((string) ($_SERVER['REQUEST_METHOD'] ?? '')), self::UNSAFE, true);
    }

    /** RFC 9651 section 3.1: a List of Strings; several lines are one List. */
    private static function setHeader(): void
    {
        $lines = [''];
        foreach (self::$carried as $tag => $_) {
            $item = '"' . addcslashes((string) $tag, '"\\') . '"';
            $last = count($lines) - 1;
            if (strlen($lines[$last]) + strlen($item) > 7900) {
                $lines[++$last] = '';
            }
            $lines[$last] .= ($lines[$last] === '' ? '' : ', ') . $item;
        }
        foreach ($lines as $number => $line) {
            header("Cache-Group-Invalidation: $line", $number === 0);
        }
    }

    /**
     * @param array<string, true> $tags
     *
     * @return array<string, true>
     */
    private static function bounded(array $tags): array
    {
        return count($tags) > self::TAGS_MAX ? [Tags::full(Tags::SITE) => true] : $tags;
    }
}
