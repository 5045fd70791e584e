<?php

/**
 * Whether a page is cached, as its visitors get it, for those who administrate the site.
 *
 *     AdminBar      asks for the page that is shown, with a short deadline
 *     Screen, Cli   ask for a URL, with the deadline of any call
 *
 * After a failure the admin bar does not ask for a minute, so that an interface that does not
 * answer slows no page down.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Admin;

use Pagewell\WordPress\Core\Explanation;
use Pagewell\WordPress\Core\Invalidation;
use Pagewell\WordPress\Purge\ControlClient;
use Pagewell\WordPress\Purge\Journal;
use Pagewell\WordPress\Purge\Pending;

/**
 * Explains and purges single pages.
 *
 * @internal
 */
final class PageState
{
    private const AWAY = 'pagewell_away';
    private const AWAY_SECONDS = 60;

    /** Returns the URL of the running request, as Pagewell knows it. */
    public static function url(): string
    {
        $host = (string) ($_SERVER['HTTP_HOST'] ?? wp_parse_url(home_url(), PHP_URL_HOST));
        return esc_url_raw((is_ssl() ? 'https://' : 'http://') . $host . ($_SERVER['REQUEST_URI'] ?? '/'));
    }

    /** Explains a page quickly; a text if that is not possible. */
    public static function quickly(string $url): Explanation|string
    {
        $away = get_transient(self::AWAY);
        if (is_string($away)) {
            return $away;
        }
        $found = ControlClient::explain($url, ControlClient::PAGE_SECONDS);
        is_string($found) && set_transient(self::AWAY, $found, self::AWAY_SECONDS);
        return $found;
    }

    /**
     * Returns the whole URL of a page that a user names, by a path or a URL. Pagewell ignores the host of
     * a URL, so that of another site would purge a page of this one.
     *
     * @return string|null null: it is neither a path nor a URL of this site, or of a blog of the network
     */
    public static function urlOf(string $page): ?string
    {
        $home = untrailingslashit(home_url());
        if (str_starts_with($page, '/') && !str_starts_with($page, '//')) {
            // WordPress may be in a directory, which the path may have already.
            $directory = untrailingslashit((string) wp_parse_url($home, PHP_URL_PATH));
            $isWhole = $directory !== '' && preg_match('~^' . preg_quote($directory, '~') . '(?=[/?#]|$)~', $page) === 1;
            return ($isWhole ? substr($home, 0, -strlen($directory)) : $home) . $page;
        }
        $host = preg_match('~^https?://~i', $page) === 1 ? strtolower((string) wp_parse_url($page, PHP_URL_HOST)) : '';
        $isOurs = $host !== '' && ($host === strtolower((string) wp_parse_url($home, PHP_URL_HOST)) || (is_multisite() && get_sites(['domain' => $host, 'number' => 1, 'fields' => 'ids']) !== []));
        return $isOurs ? $page : null;
    }

    /** Whether this URL is one of the site, so that it may be purged and returned to. */
    public static function isOurs(string $url): bool
    {
        return $url !== '' && wp_validate_redirect($url, '') === $url && preg_match('~^https?://~', $url) === 1;
    }

    /**
     * Purges one URL with all its variants.
     *
     * @return int|string how many pages were purged, or the failure
     */
    public static function purge(string $url): int|string
    {
        $purged = ControlClient::purge(new Invalidation(urls: [$url]));
        is_int($purged) && Journal::sent('control', [$url], new Pending());
        return $purged;
    }

    /** Returns the state of a page as one sentence. */
    public static function sentence(Explanation|string $found): string
    {
        if (is_string($found)) {
            /* translators: %s: why the control interface did not answer */
            return sprintf(__('Unknown: %s', 'pagewell'), $found);
        }
        if ($found->isHit()) {
            /* translators: %s: a time, such as 10 hours */
            return sprintf(__('Cached for visitors, for another %s', 'pagewell'), human_time_diff(0, (int) $found->ttlSeconds));
        }
        $why = $found->notStored ?? $found->reason;
        /* translators: %s: a reason, such as set-cookie */
        return $why === null || $found->reason === 'uri-miss' ? __('Not cached yet: the next visitor gets it from PHP', 'pagewell') : sprintf(__('Not cached: %s', 'pagewell'), $why);
    }
}
