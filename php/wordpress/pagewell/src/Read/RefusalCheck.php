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
use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Core\Refusal;
use Pagewell\WordPress\Observer;

/**
 * Finds the reason against storing the page that is being rendered.
 *
 * @internal
 */
final class RefusalCheck
{
    /** Parameters of any REST route that hide a status, change the method, or name the visitor; `_jsonp` is for scripts of other sites. */
    private const REST_PARAMETERS = ['_envelope', '_jsonp', '_method', '_wpnonce', 'password'];

    /** Request fields with the same effect. Pagewell does not forward them, but another server may. */
    private const REST_FIELDS = ['HTTP_X_HTTP_METHOD_OVERRIDE', 'HTTP_X_WP_NONCE'];

    /** Returns the reason why the page must not be stored; null if it may be. */
    public static function of(bool $canonical, bool $visitorsNonce, bool $signedIn = false): ?Refusal
    {
        // Code may have read a cookie and then removed it from $_COOKIE, so the field is read as well.
        $credentials = Credentials::of((string) ($_SERVER['HTTP_COOKIE'] ?? ''), $_COOKIE, $_SERVER);
        return match (true) {
            self::hasFailed() || self::isIncomplete() => Refusal::Failed,
            Observer::hasFailed() => Refusal::Unobserved,
            $signedIn || is_user_logged_in() => Refusal::SignedIn,
            $credentials->authorization => Refusal::Authorization,
            PageCookies::mayBeLogin($credentials->cookies) => Refusal::VisitorsCookie,
            is_preview() || is_customize_preview() || isset($_GET['preview']) => Refusal::Preview,
            isset($_GET['unapproved']) || isset($_GET['moderation-hash']) => Refusal::UnapprovedComment,
            self::asksForPassword() => Refusal::Password,
            defined('DONOTCACHEPAGE') && constant('DONOTCACHEPAGE') => Refusal::NotCached,
            self::isOtherRest() => Refusal::RestRoute,
            $visitorsNonce || ExistingHeaders::haveSecret() => Refusal::VisitorsNonce,
            DeviceQuestions::areDecisive() && !(defined('PAGEWELL_DEVICES') && constant('PAGEWELL_DEVICES')) => Refusal::ByDevice,
            isset($_SESSION) || (function_exists('session_id') && session_id() !== '') => Refusal::Session,
            PageCookies::areOfVisitor() => Refusal::SetCookie,
            ExistingHeaders::seconds() === 0 => Refusal::CacheControl,
            !self::isKept((int) http_response_code(), $canonical) => Refusal::Status,
            !Front::isInFront() => Refusal::NotInFront,
            !Page::hasFewTags() => Refusal::TooManyTags,
            Page::lifetimeSeconds() === 0 => Refusal::ZeroLifetime,
            default => null,
        };
    }

    /** Returns the reason for a page that is flushed early. Uses only functions of PHP. */
    public static function early(): Refusal
    {
        return self::hasFailed() ? Refusal::Failed : Refusal::SentEarly;
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

    /**
     * Whether a page with the head of the theme lacks its end, although PHP reports no error: an exception whose
     * handler leaves the status 200, or an exit. A hook that was left in this way is still running.
     */
    private static function isIncomplete(): bool
    {
        $hasFooter = did_action('wp_footer') > 0 && !doing_action('wp_footer');
        return did_action('wp_head') > 0 && !$hasFooter && stripos((string) ob_get_contents(), '</html>') === false;
    }
}
