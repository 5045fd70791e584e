<?php

/**
 * Cookies that a page sets although it is the same for everybody, and those of a request that say nothing of a login.
 *
 *     pll_language, pmpro_visit …        the same value for each visitor of the page (SAME)
 *     _ga, pys_first_visit, sbjs_* …     only scripts in the browser read them (SharedCookies)
 *
 * A page with no other cookie may be stored. It is then delivered without them, as all its copies are. Where a plugin
 * has a switch for sites with a page cache, it is on: Polylang sets its cookie by a script then. Without the cookie it
 * may take the language of the browser, and the page is one for that language.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Core\SharedCookies;
use Pagewell\WordPress\Observer;

/**
 * Classifies cookies by their names; has no state.
 *
 * @internal
 */
final class PageCookies
{
    /** The language of the URL: Polylang, WPML, TranslatePress, qTranslate. A visit was counted: Paid Memberships Pro. */
    private const SAME = ['pll_language', 'wp-wpml_current_language', '_icl_current_language', 'trp_language', 'qtrans_front_language', 'pmpro_visit'];

    /** Names of WordPress and its plugins for a login, a cart or a commenter, beside those of SharedCookies. */
    private const OF_VISITOR = '/^(wordpress_(?!test_cookie$)|wp-postpass|wp-resetpass|comment_author|woocommerce_|wp_woocommerce_|edd_|bp-|wpsc_|yith_)/i';

    private function __construct()
    {
    }

    /** Tells plugins that ask that there is a page cache. */
    public static function begin(): void
    {
        if (Front::isInFront()) {
            add_filter('pll_is_cache_active', '__return_true');
            add_filter('pmpro_set_visit_cookie', '__return_false');
            add_filter('pll_preferred_language', Observer::of('pll_preferred_language', self::ofBrowser(...)), PHP_INT_MAX, 2);
        }
    }

    /** Filter `pll_preferred_language`: Polylang takes the language of the browser, unless a cookie has one. */
    public static function ofBrowser(mixed $language = false, mixed $isOfCookie = false): mixed
    {
        $options = get_option('polylang');
        if (!$isOfCookie && is_array($options) && !empty($options['browser']) && !preg_grep('/^vary:.*accept-language/i', headers_list())) {
            header('Vary: Accept-Language', false);
        }
        return $language;
    }

    /** Whether the response sets a cookie that may be of one visitor. */
    public static function areOfVisitor(): bool
    {
        $names = array_map(static fn (string $line): string => trim(explode('=', substr($line, strlen('set-cookie:')), 2)[0]), array_values(preg_grep('/^set-cookie:/i', headers_list()) ?: []));
        $named = array_filter((array) apply_filters('pagewell_shared_cookies', []), static fn (mixed $name): bool => is_string($name) && SharedCookies::isName($name));
        return SharedCookies::haveKeyed($names) || SharedCookies::others($names, [...self::SAME, ...array_values($named)]) !== [];
    }

    /**
     * Whether a request may be of a visitor whom WordPress or a plugin knows. Any other cookie is left to Pagewell: it
     * stores no response to such a request, but renders the page once more without the cookie.
     *
     * @param list<string> $names of its cookies
     */
    public static function mayBeLogin(array $names): bool
    {
        return preg_grep(self::OF_VISITOR, $names) !== [] || SharedCookies::areOfVisitor($names);
    }

    /** Takes the cookies off a page that is stored. */
    public static function remove(): void
    {
        header_remove('Set-Cookie');
    }
}
