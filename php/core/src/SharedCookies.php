<?php

/**
 * Cookies that do not make a page personal, so that the page may be shared.
 *
 *     those that only scripts read       Pagewell removes them from a request whose page may be shared
 *     those in Pagewell's cache key      one copy for each value: KEYED
 *     those that the site names          PAGEWELL_SHARED_COOKIES=currency,theme_*, or Configuration::set()
 *
 * Any other cookie may be a login, and is one if its name says so. SCRIPT_ONLY is Pagewell's own list
 * (crates/cache/known-names/src/lib.rs); a test compares the two. `*` matches any text, case is
 * ignored, and a dot or a space is an underscore, as in PHP's names of cookies.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/**
 * Classifies cookies by their names.
 *
 * @internal
 */
final class SharedCookies
{
    /** Analytics, advertising, consent, payment, chat, a CDN: scripts read them, applications do not. */
    public const SCRIPT_ONLY = [
        '_ga', '_ga_*', '_gid', '_gat*', '_gcl_*', '_gac_*', '__gads', '__gpi*', '__utm*', '_dc_gtm_*', 'FCNEC', 'FPID', 'FPLC', 'FPAU', 'FPGCL*',
        'FPGSID', '_gaexp*', '__eoi', '_GRECAPTCHA', 'FCCDCF', '_fbp', '_fbc', '_uet*', '_clck', '_clsk', 'MUID', 'ai_user', 'ai_session',
        'ai_authUser', '_ttp', '_tt_*', 'ttcsid*', 'tt_sessionId', 'tt_appInfo', 'tt_pixel_session_index', '_pin_*', '_pinterest_*', '_derived_epik',
        '_epik', '_scid*', '_sctr', '_ScCbts', 'li_fat_id', 'li_giant', 'li_gc', 'li_mc', 'li_sugr', 'li_oatml', 'ln_or', '_rdt_*', 'muc_ads',
        '_twclid', '_twpid', '_hj*', '_cs_*', '_hp2_*', '_pk_*', 'mtm_*', 'stg_*', 'ppms_privacy_*', '_ym_*', 'yandexuid', 'mp_*_mixpanel',
        'amplitude_*', 'amp_*', 'ajs_*', 'rl_anonymous_id', 'rl_group_id', 'rl_group_trait', 'rl_page_init_referrer', 'rl_page_init_referring_domain',
        'rl_session', 'rl_trait', 'rl_user_id', '_sp_*', '_vwo_*', '_vis_opt_*', 'optimizely*', '_conv_*', 'ABTasty', 'ABTastySession',
        'kameleoonVisitorCode', '_dyid*', '_dyjsession', '_dy_*', '_dycmc', '_dycnst', '_lr_*', 'fs_uid', 'fs_lua', '__insp_*', '_lo_*', 'SL_C_*',
        'mf_user', '_ce.*', '_CEFT', 'cebs', 'cebsp_', 'plausible_*', '_parsely_*', '_chartbeat*', '_cb', '_cb_*', 'nmstat', '_pcid', 'pa_user',
        'atuserid', 'compass_sid', 'DotMetrics.*', '_rd_wa_*', 's_cc', 's_sq', 's_vi', 's_fid', 's_ppv', 's_tp', 'AMCV_*', 'AMCVS_*', 'mbox',
        'at_check', '_dd_s', '_splunk_rum_sid', 'QSI_*', 'SISessID', 'CPSessID', 'ab.storage.*', '__qca', '_pbjs_*', '_tb_*', 'taboola_*',
        'obsessionid-*', 'mnet_session_depth', 'mv_tokens*', 'am_tokens*', 'sqzl_*', 'BCSessionID', 'pys_*', 'pysTrafficSource', 'last_pys*', 'pbid',
        'hubspotutk', '__hs*', 'messagesUtk', '_mkto_trk', 'prism_*', '__kla_id', '_omappvp', '_omappvs', 'omSeen*', 'mailchimp_landing_site',
        'mailchimp_campaign_id', '__smToken', '__smVID', '__smSmartbarShown', '__smScrollBoxShown', '__smListBuilderShown', '__adroll*', '__ar_v4',
        'sbjs_*', 'store_notice*', 'tk_ai', 'tk_lr', 'tk_or', 'tk_r3d', 'tk_qs', 'tk_tc', 'pvc_visits*', 'burst_uid', '_wpfuuid', 'wfvt_*',
        'wordfence_verifiedHuman', '__stripe_mid', '__stripe_sid', 'amazon-pay-abtesting-*', 'amazon-pay-connectedAuth', 'apay-session-set',
        'intercom-*', 'drift_*', 'driftt_*', 'crisp-client*', 'tawk*', '__tawkuuid', 'twk_*', '__lc_*', '__lc2_*', '__livechat', 'wcsid', 'hblid',
        'olfsk', '_okbk', '_okdetect', '_oklv', '_okac', '_okla', '__zlcmid', '__zlcprivacy', 'ssupp.*', 'lz_last_visit', 'lz_userid', 'lz_visits',
        'cookieyes*', 'cookielawinfo-*', 'CookieLawInfoConsent', 'viewed_cookie_policy', 'cli_user_preference', 'CookieConsent*', 'OptanonConsent',
        'OptanonAlertBoxClosed', 'didomi_token', 'euconsent*', 'usprivacy', 'cmplz_*', 'borlabs-cookie*', '_iub_cs-*', 'cookie_notice_accepted',
        'moove_gdpr_*', 'axeptio_*', '__cmp*', 'cookiefirst-*', 'CookieControl*', 'civicAllow*', 'ccec_user', 'tarteaucitron', 'klaro',
        'real_cookie_banner*', 'cc_cookie*', 'cookie_consent*', 'acceptCookies', 'cookies_accepted', '__cf_bm', '__cflb', '__cfruid', '_cfuvid',
        'cf_clearance', '__cfduid', 'AWSALB', 'AWSALBCORS', 'AWSALBTG', 'AWSALBTGCORS', 'AWSELB', 'AWSELBCORS', 'AWSALBAPP-*', 'ARRAffinity*',
        'ApplicationGatewayAffinity*', 'TiPMix', 'GCLB', 'BIGipServer*', 'NSC_*', 'SERVERID', 'cookiesession1', 'incap_ses_*', 'visid_incap_*',
        'nlbi_*', 'ak_bmsc', 'bm_sv', '_abck', 'bm_sz', 'datadome', 'wordpress_test_cookie', 'wp-settings-*', 'has_js', 'litespeed_hash',
        'PrestaShop-lsc', 'testcookie', 'cookietest',
    ];

    /** Pagewell keeps a copy of a page for each value of these (docs/decisions/cookies.md). */
    public const KEYED = ['_lscache_vary*', 'X-Magento-Vary'];

    /** Pagewell's own cookie, set after a write. */
    private const OWN = 'pagewell-wrote';

    /** Names of a session, a login or a cart. Pagewell does not use its store for most of them. */
    private const OF_VISITOR = '/sess|auth|login|logged|token|remember|member|user|cart|basket|wishlist|sid$/i';

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
     * Whether one of these is a login, a session or a cart by its name.
     *
     * @param list<string> $cookies names, as the request has them
     * @param list<string> $named   patterns of harmless cookies that the site adds
     */
    public static function areOfVisitor(array $cookies, array $named = []): bool
    {
        return preg_grep(self::OF_VISITOR, self::others($cookies, $named)) !== [];
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
