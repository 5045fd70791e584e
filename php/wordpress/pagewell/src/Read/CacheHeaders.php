<?php

/**
 * Sets the response headers by which Pagewell caches the page being rendered: its tags and its TTL.
 *
 *     Surrogate-Key: site post:4 user:1 …        read and removed by Pagewell
 *     Pagewell-Cache-Control: max-age=36000      RFC 9213: for Pagewell only, which removes it
 *     Pagewell-Tagged-Tables, -Table-Tags        with automatic dependencies: statements and tags that do not count
 *     Cache-Control: no-cache                    for browsers: revalidate, by ETag
 *
 * The page is buffered until it is complete, because only then are its dependencies known. The decision runs filters
 * and code of other plugins. So it is made when WordPress ends (`shutdown`), and never in the buffer's callback, where
 * ob_start() is fatal. That callback only refuses a page that is flushed early. A refused page has the reason, and
 * `Pagewell-Cache-Control: no-store`, so that no rule of the site stores it either.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Core\Refusal;
use Pagewell\WordPress\Observer;
use Pagewell\WordPress\Routes;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tables;
use Pagewell\WordPress\Tags;

/**
 * Decides whether one page may be cached, and sets its headers.
 *
 * @internal
 */
final class CacheHeaders
{
    /** TTL of missing pages and searches, in seconds, because there are very many of them. */
    public const PASSING_SECONDS = 600;

    private static bool $canonical = false;

    private static bool $visitorsNonce = false;

    private static bool $signedIn = false;

    /** The level of the buffer that holds the page; 0: there is none. */
    private static int $level = 0;

    /** Whether the decision is made. */
    private static bool $isDecided = false;

    /** Begins to collect dependencies, on a GET that may render a page. */
    public static function begin(): void
    {
        Sources::listen();
        RestSources::listen();
        PageCookies::begin();
        self::observe('nonce_user_logged_out', self::nonceOf(...));
        self::observe('nonce_life', self::nonceFor(...));
        self::observe('set_current_user', self::signs(...));
        self::observe('wp_is_mobile', DeviceQuestions::asked(...));
        self::observe('user_can_richedit', DeviceQuestions::editor(...));
        self::observe('redirect_canonical', self::redirects(...));
        // Before the REST API answers (10).
        self::observe('parse_request', self::forgetConditions(...), 0);
        self::observe('parse_request', static fn (mixed $request) => empty($request->query_vars['rest_route']) || self::hold(), 0);
        self::observe('template_redirect', self::hold(...), PHP_INT_MIN);
        // Before WordPress flushes all buffers (1), after the output of other plugins.
        self::observe('shutdown', self::end(...), 0);
    }

    private static function observe(string $hook, callable $function, int $priority = PHP_INT_MAX): void
    {
        add_filter($hook, Observer::of($hook, $function), $priority);
    }

    /**
     * WordPress answers a conditional request for a feed by the time of the last post, which does
     * not change with the name of a category. So the conditions are removed, and Pagewell compares
     * the contents. For the same reason send() removes the validators of a feed.
     */
    private static function forgetConditions(): void
    {
        unset($_SERVER['HTTP_IF_NONE_MATCH'], $_SERVER['HTTP_IF_MODIFIED_SINCE']);
    }

    /** Buffers the page from here on. */
    private static function hold(): void
    {
        ob_start(self::flushed(...));
        self::$level = ob_get_level();
    }

    /** A nonce is created for a visitor who is not signed in. Shops use an individual number for each. */
    private static function nonceOf(mixed $visitor): mixed
    {
        self::$visitorsNonce = self::$visitorsNonce || (string) $visitor !== '0';
        return $visitor;
    }

    /** WordPress sets the current user. Part of the page may then be personal, even if no user is set at the end. */
    private static function signs(): void
    {
        self::$signedIn = self::$signedIn || is_user_logged_in();
    }

    /** Limits the TTL: a nonce is valid for at least half its life, and the page has to expire before. */
    private static function nonceFor(mixed $seconds): mixed
    {
        Page::freshFor((int) ((int) $seconds * 5 / 12));
        return $seconds;
    }

    /** WordPress redirects to the canonical URL of the result, or of a post with a similar name. */
    private static function redirects(mixed $url): mixed
    {
        if (is_string($url) && $url !== '') {
            self::$canonical = true;
            Page::uses(...self::missing(), ...(is_404() ? [Tags::NOWHERE, 'list'] : []));
        }
        return $url;
    }

    /**
     * Whether the response is that redirect. WordPress also asks for a URL that differs in a port only, and then
     * does not redirect.
     */
    private static function isRedirect(): bool
    {
        return self::$canonical && in_array((int) http_response_code(), [301, 308], true);
    }

    /** Called by PHP with the buffer. Does not run code of other plugins, which cannot buffer output here. */
    private static function flushed(string $content): string
    {
        if (!self::$isDecided && !headers_sent()) {
            self::send(RefusalCheck::early());
        }
        self::$isDecided = true;
        return $content;
    }

    /** Decides, because the page is complete. */
    private static function end(): void
    {
        // Other plugins may have left buffers within ours, and their functions may still change the page.
        while (self::$level > 0 && ob_get_level() > self::$level && @ob_end_flush()) {
            continue;
        }
        if (self::$level === 0 || self::$isDecided || headers_sent()) {
            return;
        }
        try {
            self::finish();
            self::send(RefusalCheck::of(self::isRedirect(), self::$visitorsNonce, self::$signedIn));
        } catch (\Throwable $fault) {
            // The page is delivered anyway.
            self::send(Refusal::Failed);
            error_log("pagewell: a page could not be offered for caching: {$fault->getMessage()}");
        }
        self::$isDecided = true;
    }

    private static function finish(): void
    {
        Page::uses(Tags::SITE, ...(is_multisite() ? [Tags::NETWORK] : []));
        Queries::finish();
        OptionSources::finish();
        SitemapPages::finish();
        $shown = get_queried_object();
        if ($shown instanceof \WP_Post) {
            Page::usesText($shown->ID);
            ProductSources::uses($shown->ID);
        } elseif ($shown instanceof \WP_User) {
            Page::uses("user:$shown->ID");
        } elseif ($shown instanceof \WP_Term) {
            Page::uses("term:$shown->term_id");
        }
        Page::uses(...self::missing(), ...self::kinds());
        Page::uses(Routes::of((string) ($GLOBALS['wp']->request ?? '')));
        if (self::isRedirect() && is_archive()) {
            Page::forgetTexts();
        }
        Page::freshFor(ExistingHeaders::seconds() ?? Page::lifetimeSeconds());
        if (is_404() || is_search()) {
            Page::freshFor(self::PASSING_SECONDS);
        }
        if (Page::hasList()) {
            Moments::ofSchedule();
        }
        Moments::limit(Page::posts());
        Page::freshFor((int) apply_filters('pagewell_lifetime', Page::lifetimeSeconds()));
    }

    /**
     * The data whose creation would change a page that found nothing. That of its query is in Queries.
     *
     * @return list<string>
     */
    private static function missing(): array
    {
        // For an unknown author, WordPress shows the posts without an author.
        $isOfNobody = (string) get_query_var('author') . get_query_var('author_name') !== '' && !get_queried_object() instanceof \WP_User;
        return $isOfNobody ? ['users'] : [];
    }

    /** @return list<string> names by which a user may purge all responses of a kind */
    private static function kinds(): array
    {
        return array_keys(array_filter([
            'robots' => is_robots(),
            'sitemaps' => (string) get_query_var('sitemap') . get_query_var('sitemap-stylesheet') !== '',
            'rest' => defined('REST_REQUEST') && constant('REST_REQUEST'),
        ]));
    }

    /** @param list<string> $names those that fit into one line; the others count, too */
    private static function line(string $field, array $names): void
    {
        $line = explode("\n", wordwrap(implode(' ', $names), 7900))[0];
        $line === '' || header("$field: $line");
    }

    private static function send(?Refusal $refusal): void
    {
        if (Readers::areAsked()) {
            $refusal ??= Refusal::NotCached;
            foreach (Readers::lines() as $line) {
                header("X-Pagewell-Readers: $line", false);
            }
        }
        if ($refusal !== null) {
            header('Pagewell-Cache-Control: no-store');
            header("X-Pagewell-Refusal: $refusal->value");
            return;
        }
        PageCookies::remove();
        $lines = explode("\n", wordwrap(implode(' ', Page::sentTags()), 7900));
        foreach ($lines as $number => $line) {
            header("Surrogate-Key: $line", $number === 0);
        }
        if (Page::knowsStatements()) {
            self::line('Pagewell-Tagged-Tables', Tables::tagged());
            self::line('Pagewell-Table-Tags', Page::tableTags());
        }
        header('Pagewell-Cache-Control: max-age=' . Page::lifetimeSeconds());
        array_map(header_remove(...), is_feed() ? ['ETag', 'Last-Modified'] : []);
        if (!preg_grep('/^cache-control\s*:/i', headers_list())) {
            header('Cache-Control: no-cache');
        }
    }
}
