<?php

/**
 * Decides whether a page may be stored. The reasons are checked in the order in which they stand
 * here.
 *
 * The page is delivered unchanged and rendered again for each request. The name of the reason is in
 * the field X-Pagewell-Refusal, for example for curl.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Core\Credentials;
use Pagewell\WordPress\Core\Refusal;

/**
 * Finds the reason against storing the page that is being rendered.
 *
 * @internal
 */
final class RefusalCheck
{
    /** Cookies without effect on pages. Pagewell removes those that only scripts read from the request. */
    private const HARMLESS_COOKIES = ['wordpress_test_cookie'];

    /** Parameters of any REST route that hide a status, change the method, or name the visitor; `_jsonp` is for scripts of other sites. */
    private const REST_PARAMETERS = ['_envelope', '_jsonp', '_method', '_wpnonce', 'password'];

    /** Request fields with the same effect. Pagewell does not forward them, but another server may. */
    private const REST_FIELDS = ['HTTP_X_HTTP_METHOD_OVERRIDE', 'HTTP_X_WP_NONCE'];

    /** Returns the reason why the page must not be stored; null if it may be. */
    public static function of(bool $canonical, bool $visitorsNonce, bool $byDevice, bool $signedIn = false): ?Refusal
    {
        // Code may have read a cookie and then removed it from $_COOKIE, so the field is read as well.
        $credentials = Credentials::of((string) ($_SERVER['HTTP_COOKIE'] ?? ''), $_COOKIE, $_SERVER);
        return match (true) {
            self::hasFailed() => Refusal::Failed,
            $signedIn || is_user_logged_in() => Refusal::SignedIn,
            $credentials->authorization => Refusal::Authorization,
            array_diff($credentials->cookies, self::HARMLESS_COOKIES) !== [] => Refusal::VisitorsCookie,
            is_preview() || is_customize_preview() || isset($_GET['preview']) => Refusal::Preview,
            isset($_GET['unapproved']) || isset($_GET['moderation-hash']) => Refusal::UnapprovedComment,
            self::asksForPassword() => Refusal::Password,
            defined('DONOTCACHEPAGE') && constant('DONOTCACHEPAGE') => Refusal::NotCached,
            self::isOtherRest() => Refusal::RestRoute,
            $visitorsNonce => Refusal::VisitorsNonce,
            $byDevice && !(defined('PAGEWELL_DEVICES') && constant('PAGEWELL_DEVICES')) => Refusal::ByDevice,
            isset($_SESSION) || (function_exists('session_id') && session_id() !== '') => Refusal::Session,
            self::field('set-cookie') !== '' => Refusal::SetCookie,
            self::isRefusedByField() => Refusal::CacheControl,
            !self::isKept((int) http_response_code(), $canonical) => Refusal::Status,
            count(Page::tags()) > Page::TAGS_MAX => Refusal::TooManyTags,
            Page::lifetimeSeconds() === 0 => Refusal::ZeroLifetime,
            default => null,
        };
    }

    /** Returns the reason for a page that is flushed early. Uses only functions of PHP. */
    public static function early(): Refusal
    {
        return self::hasFailed() ? Refusal::Failed : Refusal::SentEarly;
    }

    /** Whether Cache-Control forbids shared caches. WordPress, from 6.8 on, sends such a field with every 404. */
    private static function isRefusedByField(): bool
    {
        $field = self::field('cache-control');
        $own = is_404() && version_compare((string) $GLOBALS['wp_version'], '6.8', '>=') ? (string) (wp_get_nocache_headers()['Cache-Control'] ?? '') : '';
        return $field !== $own && preg_match('/\b(private|no-store)\b/i', $field) === 1;
    }

    private static function isKept(int $status, bool $canonical): bool
    {
        return in_array($status, [200, 404, 410], true) || ($canonical && in_array($status, [301, 308], true));
    }

    /** Whether it is a response of the REST API whose data or status is unknown. */
    private static function isOtherRest(): bool
    {
        $isRest = defined('REST_REQUEST') && constant('REST_REQUEST');
        $isChanged = array_intersect_key($_GET, array_flip(self::REST_PARAMETERS)) !== [] || array_intersect_key($_SERVER, array_flip(self::REST_FIELDS)) !== [];
        return $isRest && (!RestSources::isKnown() || http_response_code() !== 200 || $isChanged);
    }

    private static function asksForPassword(): bool
    {
        $post = is_singular() ? get_queried_object() : null;
        return $post instanceof \WP_Post && $post->post_password !== '';
    }

    /** With display_errors on, PHP sends its message with status 200. */
    private static function hasFailed(): bool
    {
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
        return ((error_get_last()['type'] ?? 0) & $fatal) !== 0;
    }

    /** Returns the values of a response field so far, joined. */
    private static function field(string $name): string
    {
        $values = [];
        foreach (headers_list() as $line) {
            [$found, $value] = explode(':', $line, 2) + ['', ''];
            if (strcasecmp(trim($found), $name) === 0) {
                $values[] = trim($value);
            }
        }
        return implode(', ', $values);
    }
}
