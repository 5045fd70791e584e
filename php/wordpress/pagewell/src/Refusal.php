<?php

/**
 * The reason why a page is not offered for storing. One case each, in the order in which they are
 * checked.
 *
 * The page is delivered unchanged and rendered again for each request. The name is in the field
 * X-Pagewell-Refusal, for example for curl.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** A reason, with the name under which it is shown. */
enum Refusal: string
{
    /** PHP ended with a fatal error. */
    case Failed = 'failed';

    /** The visitor is signed in. */
    case SignedIn = 'signed-in';

    /** The request carries Authorization. */
    case Authorization = 'authorization';

    /** The request has a cookie, so the page may be personal. */
    case VisitorsCookie = 'visitors-cookie';

    /** A draft, or the customizer's preview. */
    case Preview = 'preview';

    /** The page shows a comment that waits for approval to its author. */
    case UnapprovedComment = 'unapproved-comment';

    /** A post that asks for a password. */
    case Password = 'password';

    /** Another plugin has set DONOTCACHEPAGE. */
    case ToldNotTo = 'do-not-cache';

    /** A nonce in the page belongs to one visitor. */
    case VisitorsNonce = 'visitors-nonce';

    /** The theme or a plugin asked whether the visitor has a phone (wp_is_mobile). */
    case ByDevice = 'by-device';

    /** A PHP session was open. */
    case Session = 'session';

    /** The response sets a cookie. */
    case SetCookie = 'set-cookie';

    /** The theme or a plugin sent `private` or `no-store`. */
    case CacheControl = 'cache-control';

    /** A status other than 200, 404, 410 and WordPress's own 301 to a page's right address. */
    case Status = 'status';

    /** Output was flushed before the page was complete. */
    case SentEarly = 'sent-early';

    /** More names than Pagewell accepts. */
    case TooManyTags = 'too-many-tags';

    /** The TTL is zero. */
    case ZeroLifetime = 'zero-lifetime';

    /** Cookies without effect on pages. Pagewell removes those that only scripts read from the request. */
    private const HARMLESS_COOKIES = ['wordpress_test_cookie'];

    /** Returns the reason why the page must not be stored; null if it may be. */
    public static function of(bool $canonical, bool $visitorsNonce, bool $byDevice, bool $signedIn = false): ?self
    {
        return match (true) {
            self::hasFailed() => self::Failed,
            $signedIn || is_user_logged_in() => self::SignedIn,
            isset($_SERVER['HTTP_AUTHORIZATION']) || isset($_SERVER['PHP_AUTH_USER']) => self::Authorization,
            self::hasVisitorsCookie() => self::VisitorsCookie,
            is_preview() || is_customize_preview() || isset($_GET['preview']) => self::Preview,
            isset($_GET['unapproved']) || isset($_GET['moderation-hash']) => self::UnapprovedComment,
            self::asksForPassword() => self::Password,
            defined('DONOTCACHEPAGE') && constant('DONOTCACHEPAGE') => self::ToldNotTo,
            $visitorsNonce => self::VisitorsNonce,
            $byDevice && !(defined('PAGEWELL_DEVICES') && constant('PAGEWELL_DEVICES')) => self::ByDevice,
            isset($_SESSION) || (function_exists('session_id') && session_id() !== '') => self::Session,
            self::field('set-cookie') !== '' => self::SetCookie,
            (bool) preg_match('/\b(private|no-store)\b/i', self::field('cache-control')) => self::CacheControl,
            !self::isKept((int) http_response_code(), $canonical) => self::Status,
            count(Page::tags()) > Page::TAGS_MAX => self::TooManyTags,
            Page::lifetimeSeconds() === 0 => self::ZeroLifetime,
            default => null,
        };
    }

    /** Returns the reason for a page that is flushed early. Uses only functions of PHP. */
    public static function early(): self
    {
        return self::hasFailed() ? self::Failed : self::SentEarly;
    }

    private static function isKept(int $status, bool $canonical): bool
    {
        return in_array($status, [200, 404, 410], true) || ($canonical && in_array($status, [301, 308], true));
    }

    private static function hasVisitorsCookie(): bool
    {
        // Code may have read a cookie and then removed it from $_COOKIE.
        $sent = array_map(static fn (string $cookie): string => trim(explode('=', $cookie, 2)[0]), explode(';', (string) ($_SERVER['HTTP_COOKIE'] ?? '')));
        return array_diff([...array_map('strval', array_keys($_COOKIE)), ...$sent], self::HARMLESS_COOKIES, ['']) !== [];
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
