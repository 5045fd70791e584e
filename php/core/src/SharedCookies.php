<?php

/**
 * Cookies that do not make a page personal, so that the page may be shared.
 *
 *     those that only scripts read       Pagewell removes them from a request whose page may be shared
 *     those in Pagewell's cache key      one copy for each value: KEYED
 *     those that the site names          PAGEWELL_SHARED_COOKIES=currency,theme_*, or Configuration::set()
 *
 * Any other cookie may be a login. SCRIPT_ONLY is Pagewell's own list
 * (crates/cache/site-rules/src/known.rs); a test compares the two. `*` matches any text, case is
 * ignored, and a dot or a space is an underscore, as in PHP's names of cookies.
 */

declare(strict_types=1);

namespace Pagewell;

/**
 * Classifies cookies by their names.
 *
 * @internal
 */
final class SharedCookies
{
    /** Analytics, advertising, consent, a CDN: scripts read them, applications do not. */
    public const SCRIPT_ONLY = [
        '_ga', '_ga_*', '_gid', '_gat*', '_gcl_*', '_gac_*', '__gads', '__gpi*', '__utm*', '_dc_gtm_*', 'FCNEC', 'FPID', 'FPLC', '_fbp', '_fbc',
        '_uet*', '_clck', '_clsk', 'ai_user', 'ai_session', '_ttp', '_tt_*', 'ttcsid*', '_pin_*', '_pinterest_*', '_scid*', '_sctr', 'li_*', 'ln_or',
        '_rdt_uuid', 'muc_ads', '_hj*', '_pk_*', 'mtm_*', '_ym_*', 'yandexuid', 'mp_*_mixpanel', 'amplitude_*', 'amp_*', 'ajs_*', '_vwo_*',
        '_vis_opt_*', 'optimizely*', '_lr_*', 'plausible_*', '_parsely_*', '_chartbeat*', '_cb', '_cb_*', 'nmstat', '_sp_*', 's_cc', 's_sq', 's_vi',
        's_fid', 'AMCV_*', 'AMCVS_*', '_dd_s', 'rl_*', 'hubspotutk', '__hs*', '__hstc', '_mkto_trk', 'intercom-*', 'drift_*', 'crisp-client*',
        'tawk*', '__tawkuuid', '__lc_*', '__kla_id', '_omappvp', '_omappvs', 'omSeen*', 'mailchimp_*', '_ce.*', 'sbjs_*', '__zlcmid', '__adroll*',
        '__ar_v4', '_awl', 'tk_ai', 'tk_lr', 'tk_or', 'tk_r3d', 'cookieyes*', 'cookieyesID', 'CookieConsent*', 'cookie_consent*', 'cookieconsent_*',
        'euconsent*', 'OptanonConsent', 'OptanonAlertBoxClosed', 'cookielawinfo-*', 'CookieLawInfoConsent', 'viewed_cookie_policy', 'cmplz_*',
        'borlabs-cookie*', '_iub_cs-*', 'cookie_notice_accepted', 'moove_gdpr_*', 'didomi_token', 'tarteaucitron', 'axeptio_*', 'klaro', 'usprivacy',
        'real_cookie_banner*', 'cc_cookie*', 'FCCDCF', 'uc_*', 'usercentrics*', 'acceptCookies', 'cookies_accepted', 'cookieControl*', 'civicAllow*',
        '__cf_bm', '__cflb', '__cfruid', '_cfuvid', 'cf_clearance', '__cfduid', 'AWSALB*', 'AWSELB*', 'incap_ses_*', 'visid_incap_*', 'nlbi_*',
        'ak_bmsc', 'bm_sv', 'bm_sz', '_abck', 'ARRAffinity*', 'wordpress_test_cookie', 'has_js', 'wp-settings-*', 'litespeed_hash', 'PrestaShop-lsc',
        'testcookie', 'cookietest',
    ];

    /** Pagewell keeps a copy of a page for each value of these (docs/decisions/cookies.md). */
    public const KEYED = ['_lscache_vary*', 'X-Magento-Vary'];

    /** Pagewell's own cookie, set after a write. */
    private const OWN = 'pagewell-wrote';

    private function __construct()
    {
    }

    /** Whether this is the name of a cookie, perhaps with `*`. */
    public static function isName(string $name): bool
    {
        return preg_match('/^(?=.*[^*])[!#$%&\'*+\-.^_`|~0-9A-Za-z]+$/D', $name) === 1;
    }

    /**
     * Returns the names that are on no list.
     *
     * @param list<string> $cookies names, as the request has them
     * @param list<string> $named   patterns that the site adds
     *
     * @return list<string>
     */
    public static function others(array $cookies, array $named): array
    {
        return $cookies === [] ? [] : self::without($cookies, [...self::SCRIPT_ONLY, ...self::KEYED, self::OWN, ...$named]);
    }

    /**
     * Whether Pagewell keeps a copy of a page for each value of one of these.
     *
     * @param list<string> $cookies names, as the request has them
     */
    public static function haveKeyed(array $cookies): bool
    {
        return self::without($cookies, self::KEYED) !== $cookies;
    }

    /**
     * @param list<string> $cookies
     * @param list<string> $patterns
     *
     * @return list<string> the cookies that match no pattern
     */
    private static function without(array $cookies, array $patterns): array
    {
        $globs = array_map(static fn (string $pattern): string => str_replace('\*', '.*', preg_quote(self::folded($pattern), '~')), $patterns);
        $fits = '~^(?:' . implode('|', $globs) . ')$~Dis';
        return array_values(array_filter($cookies, static fn (string $name): bool => preg_match($fits, self::folded($name)) !== 1));
    }

    private static function folded(string $name): string
    {
        return strtr($name, '. ', '__');
    }
}
