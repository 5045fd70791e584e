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
use Pagewell\WordPress\Tell\Control;
use Pagewell\WordPress\Tell\Journal;
use Pagewell\WordPress\Tell\Pending;

/** Explains and purges single pages. */
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
        $found = Control::explain($url, Control::PAGE_SECONDS);
        is_string($found) && set_transient(self::AWAY, $found, self::AWAY_SECONDS);
        return $found;
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
        $purged = Control::purge(new Invalidation(urls: [$url]));
        is_int($purged) && Journal::told('control', [$url], new Pending());
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
            /* translators: %s: a number of seconds */
            return sprintf(__('Cached for visitors, for another %s seconds', 'pagewell'), number_format_i18n((int) $found->ttlSeconds));
        }
        $why = $found->notStored ?? $found->reason;
        /* translators: %s: a reason, such as set-cookie */
        return $why === null || $found->reason === 'uri-miss' ? __('Not cached yet: the next visitor gets it from PHP', 'pagewell') : sprintf(__('Not cached: %s', 'pagewell'), $why);
    }
}
