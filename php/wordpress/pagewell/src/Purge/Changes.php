<?php

/**
 * The changes of the running request, and how they are sent to Pagewell.
 *
 *     a write (POST, PUT …) that came through Pagewell,      Cache-Group-Invalidation on the response,
 *     before the header section is sent                      RFC 9875: without a connection
 *     the same by `Via` alone, which can be forged           both: the response and the control interface
 *     links in wp-admin that write by GET, requests past     the control interface, once, as the
 *     Pagewell, changes after the headers                    request ends
 *     wp-cron, WP-CLI                                        the same, and while they run (Queue)
 *     blogs of a network at another host                     the control interface, all sites of Pagewell;
 *     data that all blogs share                              the same, and on the response
 *     Pagewell does not answer                               stored (Journal), sent with the next ones
 *
 * A change is added to the response at once, so the response reports it whatever fails afterwards.
 * Changes after WordPress has ended are sent after all other shutdown functions. Nothing here
 * throws, and no page or write is prevented.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Purge;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Core\Tag;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;
use Pagewell\WordPress\Write\Events;

/**
 * Collects and sends changes.
 *
 * @internal
 */
final class Changes
{
    private const RETRY_SECONDS = 60;

    /** @var array<string, true> the names on the response */
    private static array $carried = [];

    /** @var array<string, true> those of them in the journal */
    private static array $noted = [];

    /** Changes that could not be sent before, and are on the response; null: not looked up yet. */
    private static ?Pending $pending = null;

    /** Whether WordPress has ended; shutdown functions may still write. */
    private static bool $isOver = false;

    /** Registers the WordPress hooks, and sends changes when the request ends. */
    public static function listen(): void
    {
        Events::listen();
        Queue::listen();
        // Before the output is sent, if it is still buffered; and once more for writes of other
        // plugins while the request ends.
        add_action('shutdown', self::tell(...), PHP_INT_MIN);
        add_action('shutdown', self::last(...), PHP_INT_MAX);
        add_action('pagewell_retry', static fn () => self::safely(static fn () => self::retry(0)));
        add_action('admin_init', static fn () => self::safely(static fn () => self::retry(self::RETRY_SECONDS)));
    }

    /** Adds these names to the changes. */
    public static function add(string ...$tags): void
    {
        $added = array_fill_keys(array_map(Tags::full(...), $tags), true);
        if (Front::canCarry()) {
            self::$pending ??= self::carriable(Journal::pending());
            $elsewhere = array_filter($added, static fn (string|int $tag): bool => !Tags::isHere((string) $tag), ARRAY_FILTER_USE_KEY);
            $shared = array_filter($elsewhere, static fn (string|int $tag): bool => Tags::isShared((string) $tag), ARRAY_FILTER_USE_KEY);
            $here = array_diff_key($added, $elsewhere) + $shared + array_fill_keys(self::$pending->tags, true);
            $added = $elsewhere;
            if ($here !== []) {
                self::$carried = TagBounds::onResponse(self::$carried + $here);
                self::setHeader();
            }
        }
        $added === [] || Queue::add($added);
        self::comes();
    }

    /** Prepares the sending of changes, now or when the request ends. */
    public static function comes(): void
    {
        if (self::$isOver) {
            self::$isOver = false;
            register_shutdown_function(self::last(...));
        }
    }

    private static function last(): void
    {
        self::safely(Events::end(...));
        self::tell();
        self::$isOver = true;
    }

    /** Selects the pending changes for this host; those for other hosts wait for the control interface. */
    private static function carriable(Pending $pending): Pending
    {
        return array_filter($pending->tags, Tags::isHere(...)) === $pending->tags ? $pending : new Pending();
    }

    /**
     * Sends changes that could not be sent before.
     *
     * @param int $seconds do nothing if the last attempt was within this time, so that an
     * unreachable interface delays no request
     */
    private static function retry(int $seconds): void
    {
        $pending = ControlClient::isOff() ? new Pending() : Journal::pending();
        if ($pending->rows !== [] && Journal::failedSecondsAgo() >= $seconds) {
            self::tellOver([], $pending);
        }
    }

    /**
     * Sent changes are remembered: a further change, before the header section is sent, is added to
     * them. The lines are checked each time, because header lines may be removed until they are
     * sent.
     */
    private static function tell(): void
    {
        // If one step fails, the others are made.
        self::safely(SitemapPages::end(...));
        self::safely(self::tellCarried(...));
        self::safely(static function (): void {
            $sent = Queue::takeSent();
            $sent === [] || Journal::sent('control', $sent, new Pending());
        });
        self::safely(static function (): void {
            $waiting = Queue::take();
            $waiting === [] || self::tellOver($waiting, Journal::pending());
        });
    }

    /** Code of other plugins runs here, too: filters of options. If it fails, all pages are purged, and the request goes on. */
    private static function safely(\Closure $step): void
    {
        try {
            $step();
        } catch (\Throwable $fault) {
            error_log("pagewell: changes could not be sent as usual; all pages are purged: {$fault->getMessage()} in {$fault->getFile()}:{$fault->getLine()}");
            $all = Tags::everything([...self::names(self::$carried), ...Queue::take()]);
            try {
                ControlClient::invalidate($all) === null || Journal::keep($all);
            } catch (\Throwable) {
                error_log('pagewell: changes could be neither sent nor stored; run: pagewell purge --all');
            }
        }
    }

    private static function tellCarried(): void
    {
        $carried = self::$carried;
        $fresh = self::names(array_diff_key($carried, self::$noted));
        $pending = self::$pending ?? new Pending();
        [self::$noted, self::$pending] = [$carried, self::$pending === null ? null : new Pending()];
        if ($carried !== [] && !self::isOnAnswer()) {
            self::$carried = self::$noted = [];
            self::tellOver(self::names($carried), $pending);
        } elseif ($fresh !== [] && !Front::isGivenByIt()) {
            self::tellOver($fresh, $pending, isOnAnswer: true);
        } elseif ($fresh !== []) {
            Journal::sent('answer', $fresh, $pending);
            $pending->isAll || self::planRetry();
        }
    }

    /**
     * @param list<string> $tags       the changes
     * @param Pending      $pending    changes that could not be sent before
     * @param bool         $isOnAnswer the response reports it; if no control interface is configured or found,
     *                                 or it is switched off, that has to suffice
     */
    private static function tellOver(array $tags, Pending $pending, bool $isOnAnswer = false): void
    {
        $all = self::names(TagBounds::inCall(array_fill_keys([...$tags, ...$pending->tags], true)));
        $fault = ControlClient::invalidate($all);
        $isEnough = $fault !== null && $isOnAnswer && (!ControlClient::isNamed() || ControlClient::isOff());
        $fault = $isEnough ? null : $fault;
        if ($fault !== null) {
            self::postpone($tags, $fault);
            return;
        }
        Journal::sent($isEnough ? 'answer' : 'control', $all, $pending);
        $pending->isAll || self::planRetry();
    }

    /**
     * Stores names that could not be sent: they are sent with the next ones, or within a minute.
     *
     * @param list<string> $tags
     */
    public static function postpone(array $tags, string $fault): void
    {
        Journal::keep($tags);
        error_log("pagewell: changes could not be sent; they are sent with the next ones: $fault");
        self::planRetry();
    }

    private static function planRetry(): void
    {
        if (!ControlClient::isOff() && !wp_next_scheduled('pagewell_retry')) {
            wp_schedule_single_event(time() + self::RETRY_SECONDS, 'pagewell_retry');
        }
    }

    /** Whether the response still has the lines: another plugin may have removed them. */
    private static function isOnAnswer(): bool
    {
        if (!headers_sent()) {
            self::setHeader();
            return true;
        }
        return array_diff(self::lines(), headers_list()) === [];
    }

    private static function setHeader(): void
    {
        foreach (self::lines() as $number => $line) {
            header($line, $number === 0);
        }
    }

    /** @return list<string> RFC 9651 section 3.1: a List of Strings; several lines are one List */
    private static function lines(): array
    {
        return Tag::lines('Cache-Group-Invalidation', self::names(self::$carried));
    }

    /**
     * @param array<string, true> $tags
     *
     * @return list<string>
     */
    private static function names(array $tags): array
    {
        return array_map('strval', array_keys($tags));
    }
}
