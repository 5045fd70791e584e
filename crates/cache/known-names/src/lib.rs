//! Built-in lists: cookies that only scripts read, cookies of sessions and logins, and query parameters for
//! tracking; names with personal data are in [`personal`]. `*` matches any text; case is ignored.
//!
//! Each row of cookies has its owner and the source of its names. The PHP library has a copy of the list of
//! scripts' cookies (`php/core/src/SharedCookies.php`), and a test of the library compares them. A name that
//! is on both cookie lists counts as a script's, because those patterns are narrower: so no pattern there may
//! match a login. Not here: what a site or a rule makes of a name.

pub mod personal;

/// The Open Cookie Database, in which the names were looked up one by one.
const DATABASE: &str = "https://github.com/jkwakman/Open-Cookie-Database";
/// The names of a row are words that many applications use.
const COMMON: &str = "docs/decisions/cookies.md";

/// The cookies of one owner.
#[derive(Clone, Copy, Debug)]
pub struct KnownCookies {
    /// The program or the service that sets them.
    pub owner: &'static str,
    /// Where the names are documented.
    pub source: &'static str,
    /// The names, perhaps with `*`.
    pub names: &'static [&'static str],
}

impl KnownCookies {
    /// Whether many applications use these names, so that they do not tell the owner.
    pub fn are_common(&self) -> bool {
        self.source == COMMON
    }
}

const fn row(
    owner: &'static str,
    source: &'static str,
    names: &'static [&'static str],
) -> KnownCookies {
    KnownCookies { owner, source, names }
}

/// All names of a list.
pub fn names_of(rows: &'static [KnownCookies]) -> impl Iterator<Item = &'static str> {
    rows.iter().flat_map(|row| row.names.iter().copied())
}

/// Cookies that only scripts in the browser or a CDN in front read: analytics, advertising, consent, payment,
/// chat. They do not count, and are not forwarded to the origin for a page that may be shared.
pub const SCRIPT_COOKIES: &[KnownCookies] = &[
    row(
        "Google Analytics, Ads and Tag Manager",
        DATABASE,
        &[
            "_ga",
            "_ga_*",
            "_gid",
            "_gat*",
            "_gcl_*",
            "_gac_*",
            "__gads",
            "__gpi*",
            "__utm*",
            "_dc_gtm_*",
            "FCNEC",
            "FPID",
            "FPLC",
            "FPAU",
            "FPGCL*",
            "FPGSID",
            "_gaexp*",
            "__eoi",
            "_GRECAPTCHA",
            "FCCDCF",
        ],
    ),
    row("Meta", DATABASE, &["_fbp", "_fbc"]),
    row("Microsoft Advertising and Clarity", DATABASE, &["_uet*", "_clck", "_clsk", "MUID"]),
    row(
        "Azure Application Insights",
        "https://learn.microsoft.com/azure/azure-monitor/app/javascript-sdk-configuration",
        &["ai_user", "ai_session", "ai_authUser"],
    ),
    row("TikTok", DATABASE, &["_ttp", "_tt_*", "ttcsid*"]),
    row(
        "TikTok",
        "https://ads.tiktok.com/help/article/using-cookies-with-tiktok-pixel",
        &["tt_sessionId", "tt_appInfo", "tt_pixel_session_index"],
    ),
    row("Pinterest", DATABASE, &["_pin_*", "_pinterest_*", "_derived_epik", "_epik"]),
    row("Snapchat", DATABASE, &["_scid*"]),
    row(
        "Snapchat",
        "https://businesshelp.snapchat.com/s/article/pixel-website-install",
        &["_sctr", "_ScCbts"],
    ),
    row(
        "LinkedIn",
        DATABASE,
        &["li_fat_id", "li_giant", "li_gc", "li_mc", "li_sugr", "li_oatml", "ln_or"],
    ),
    row("Reddit", DATABASE, &["_rdt_*"]),
    row("X", DATABASE, &["muc_ads"]),
    row(
        "X",
        "https://business.x.com/en/help/campaign-measurement-and-analytics/conversion-tracking-for-websites",
        &["_twclid", "_twpid"],
    ),
    row("Hotjar", DATABASE, &["_hj*"]),
    row("Contentsquare and Heap", DATABASE, &["_cs_*", "_hp2_*"]),
    row("Matomo", DATABASE, &["_pk_*", "mtm_*"]),
    row("Piwik PRO", DATABASE, &["stg_*", "ppms_privacy_*"]),
    row("Yandex Metrica", DATABASE, &["_ym_*", "yandexuid"]),
    row(
        "Mixpanel",
        "https://docs.mixpanel.com/docs/tracking-methods/sdks/javascript",
        &["mp_*_mixpanel"],
    ),
    row("Amplitude", DATABASE, &["amplitude_*", "amp_*"]),
    row("Segment", DATABASE, &["ajs_*"]),
    row(
        "RudderStack",
        DATABASE,
        &[
            "rl_anonymous_id",
            "rl_group_id",
            "rl_group_trait",
            "rl_page_init_referrer",
            "rl_page_init_referring_domain",
            "rl_session",
            "rl_trait",
            "rl_user_id",
        ],
    ),
    row("Snowplow", DATABASE, &["_sp_*"]),
    row("Visual Website Optimizer", DATABASE, &["_vwo_*", "_vis_opt_*"]),
    row("Optimizely", DATABASE, &["optimizely*"]),
    row("Convert", DATABASE, &["_conv_*"]),
    row("AB Tasty", DATABASE, &["ABTasty", "ABTastySession"]),
    row(
        "Kameleoon",
        "https://help.kameleoon.com/cookies-and-local-storage",
        &["kameleoonVisitorCode"],
    ),
    row("Dynamic Yield", DATABASE, &["_dyid*", "_dyjsession", "_dy_*", "_dycmc", "_dycnst"]),
    row("LogRocket", "https://docs.logrocket.com/docs/cookies", &["_lr_*"]),
    row(
        "FullStory",
        "https://help.fullstory.com/hc/en-us/articles/360020829513",
        &["fs_uid", "fs_lua"],
    ),
    row("Inspectlet", DATABASE, &["__insp_*"]),
    row("Lucky Orange", DATABASE, &["_lo_*"]),
    row("Smartlook", "https://web.developer.smartlook.com/docs/cookies", &["SL_C_*"]),
    row("Mouseflow", "https://help.mouseflow.com/en/articles/4274535", &["mf_user"]),
    row("Crazy Egg", DATABASE, &["_ce.*", "_CEFT", "cebs", "cebsp_"]),
    row("Plausible", DATABASE, &["plausible_*"]),
    row("Parse.ly", DATABASE, &["_parsely_*"]),
    row("Chartbeat", DATABASE, &["_chartbeat*"]),
    row(
        "Chartbeat",
        "https://help.chartbeat.com/hc/en-us/articles/360044112114",
        &["_cb", "_cb_*"],
    ),
    row("Siteimprove", DATABASE, &["nmstat"]),
    row("Piano and AT Internet", DATABASE, &["_pcid", "pa_user", "atuserid"]),
    row("Marfeel", DATABASE, &["compass_sid"]),
    row("Dotmetrics", DATABASE, &["DotMetrics.*"]),
    row("RD Station", DATABASE, &["_rd_wa_*"]),
    row(
        "Adobe Analytics, Audience Manager and Target",
        DATABASE,
        &[
            "s_cc", "s_sq", "s_vi", "s_fid", "s_ppv", "s_tp", "AMCV_*", "AMCVS_*", "mbox",
            "at_check",
        ],
    ),
    row(
        "Datadog",
        "https://docs.datadoghq.com/real_user_monitoring/browser/data_collected/",
        &["_dd_s"],
    ),
    row("Splunk RUM", DATABASE, &["_splunk_rum_sid"]),
    row("Qualtrics", DATABASE, &["QSI_*", "SISessID", "CPSessID"]),
    row("Braze", DATABASE, &["ab.storage.*"]),
    row("Quantcast", DATABASE, &["__qca"]),
    row("Prebid", DATABASE, &["_pbjs_*"]),
    row("Taboola and Outbrain", DATABASE, &["_tb_*", "taboola_*", "obsessionid-*"]),
    row("Media.net and Mediavine", DATABASE, &["mnet_session_depth", "mv_tokens*", "am_tokens*"]),
    row("Squeezely", DATABASE, &["sqzl_*"]),
    row("BlueConic", DATABASE, &["BCSessionID"]),
    row(
        "PixelYourSite",
        "https://www.pixelyoursite.com/documentation/cookies",
        &["pys_*", "pysTrafficSource", "last_pys*", "pbid"],
    ),
    row("HubSpot", DATABASE, &["hubspotutk", "__hs*", "messagesUtk"]),
    row("Marketo", DATABASE, &["_mkto_trk"]),
    row("ActiveCampaign", DATABASE, &["prism_*"]),
    row("Klaviyo", DATABASE, &["__kla_id"]),
    row("OptinMonster", DATABASE, &["_omappvp", "_omappvs"]),
    row("OptinMonster", "https://optinmonster.com/docs/optinmonster-cookies/", &["omSeen*"]),
    row(
        "Mailchimp for WooCommerce",
        "https://github.com/mailchimp/mc-woocommerce",
        &["mailchimp_landing_site", "mailchimp_campaign_id"],
    ),
    row(
        "Sumo",
        "https://help.sumo.com/hc/en-us/articles/218958727",
        &[
            "__smToken",
            "__smVID",
            "__smSmartbarShown",
            "__smScrollBoxShown",
            "__smListBuilderShown",
        ],
    ),
    row(
        "AdRoll",
        "https://help.adroll.com/hc/en-us/articles/4402962989325",
        &["__adroll*", "__ar_v4"],
    ),
    row(
        "WooCommerce: order attribution, and a notice that a script hides",
        DATABASE,
        &["sbjs_*", "store_notice*"],
    ),
    row(
        "Jetpack and WooCommerce: counts of Automattic",
        DATABASE,
        &["tk_ai", "tk_lr", "tk_or", "tk_r3d", "tk_qs", "tk_tc"],
    ),
    row("Post Views Counter", DATABASE, &["pvc_visits*"]),
    row(
        "Burst Statistics",
        "https://burst-statistics.com/definition/what-is-the-cookie-burst_uid/",
        &["burst_uid"],
    ),
    row("WPForms", "https://wpforms.com/docs/how-to-understand-wpforms-cookies/", &["_wpfuuid"]),
    row(
        "Wordfence",
        "https://www.wordfence.com/help/general-data-protection-regulation/",
        &["wfvt_*", "wordfence_verifiedHuman"],
    ),
    row("Stripe: recognition of fraud", DATABASE, &["__stripe_mid", "__stripe_sid"]),
    row(
        "Amazon Pay",
        "https://woocommerce.com/document/amazon-payments-advanced/",
        &["amazon-pay-abtesting-*", "amazon-pay-connectedAuth", "apay-session-set"],
    ),
    row("Intercom", DATABASE, &["intercom-*"]),
    row("Drift", DATABASE, &["drift_*"]),
    row("Drift", "https://devdocs.drift.com/docs/cookies-and-tracking", &["driftt_*"]),
    row("Crisp", DATABASE, &["crisp-client*"]),
    row("tawk.to", DATABASE, &["tawk*", "__tawkuuid"]),
    row("tawk.to", "https://help.tawk.to/article/tawkto-cookies", &["twk_*"]),
    row("LiveChat", DATABASE, &["__lc_*", "__lc2_*", "__livechat"]),
    row(
        "Olark",
        "https://www.olark.com/help/cookies",
        &["wcsid", "hblid", "olfsk", "_okbk", "_okdetect", "_oklv", "_okac", "_okla"],
    ),
    row("Zendesk", DATABASE, &["__zlcmid", "__zlcprivacy"]),
    row("Smartsupp", "https://help.smartsupp.com/en/articles/4394-cookies", &["ssupp.*"]),
    row("LiveZilla", DATABASE, &["lz_last_visit", "lz_userid", "lz_visits"]),
    row(
        "CookieYes and GDPR Cookie Consent",
        DATABASE,
        &[
            "cookieyes*",
            "cookielawinfo-*",
            "CookieLawInfoConsent",
            "viewed_cookie_policy",
            "cli_user_preference",
        ],
    ),
    row("Cookiebot, Osano and others", DATABASE, &["CookieConsent*"]),
    row("OneTrust", DATABASE, &["OptanonConsent", "OptanonAlertBoxClosed"]),
    row("Didomi, and IAB's framework", DATABASE, &["didomi_token", "euconsent*", "usprivacy"]),
    row("Complianz", DATABASE, &["cmplz_*"]),
    row("Borlabs Cookie", DATABASE, &["borlabs-cookie*"]),
    row("iubenda", DATABASE, &["_iub_cs-*"]),
    row("Cookie Notice", DATABASE, &["cookie_notice_accepted"]),
    row("Moove GDPR", DATABASE, &["moove_gdpr_*"]),
    row("Axeptio", DATABASE, &["axeptio_*"]),
    row("consentmanager", DATABASE, &["__cmp*"]),
    row("CookieFirst", DATABASE, &["cookiefirst-*"]),
    row("Civic Cookie Control", DATABASE, &["CookieControl*"]),
    row(
        "Civic Cookie Control",
        "https://www.civicuk.com/cookie-control/documentation",
        &["civicAllow*"],
    ),
    row("CookieConsent.io", DATABASE, &["ccec_user"]),
    row("tarteaucitron", "https://github.com/AmauriC/tarteaucitron.js", &["tarteaucitron"]),
    row("Klaro", "https://klaro.org/docs/api/js_reference", &["klaro"]),
    row(
        "Real Cookie Banner",
        "https://devowl.io/wordpress-real-cookie-banner/",
        &["real_cookie_banner*"],
    ),
    row(
        "CookieConsent by Orest Bida",
        "https://cookieconsent.orestbida.com/reference/configuration-reference.html",
        &["cc_cookie*"],
    ),
    row(
        "consent banners, by common names",
        COMMON,
        &["cookie_consent*", "acceptCookies", "cookies_accepted"],
    ),
    row(
        "Cloudflare",
        DATABASE,
        &["__cf_bm", "__cflb", "__cfruid", "_cfuvid", "cf_clearance", "__cfduid"],
    ),
    row(
        "AWS load balancers; those with which they sign visitors in are sessions",
        DATABASE,
        &["AWSALB", "AWSALBCORS", "AWSALBTG", "AWSALBTGCORS", "AWSELB", "AWSELBCORS"],
    ),
    row(
        "AWS load balancers",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/application/sticky-sessions.html",
        &["AWSALBAPP-*"],
    ),
    row("Azure", DATABASE, &["ARRAffinity*", "ApplicationGatewayAffinity*", "TiPMix"]),
    row("Google load balancers", DATABASE, &["GCLB"]),
    row("F5, Citrix and HAProxy", DATABASE, &["BIGipServer*", "NSC_*", "SERVERID"]),
    row(
        "FortiWeb",
        "https://docs.fortinet.com/document/fortiweb/latest/administration-guide",
        &["cookiesession1"],
    ),
    row("Imperva", DATABASE, &["incap_ses_*", "visid_incap_*", "nlbi_*"]),
    row("Akamai", DATABASE, &["ak_bmsc", "bm_sv", "_abck"]),
    row(
        "Akamai",
        "https://techdocs.akamai.com/cloud-security/docs/handle-protocol-cookies",
        &["bm_sz"],
    ),
    row("DataDome", DATABASE, &["datadome"]),
    row(
        "WordPress: a test for cookies, and the arrangement of the administration, which is not cached",
        DATABASE,
        &["wordpress_test_cookie", "wp-settings-*"],
    ),
    row("Drupal: a test for scripts", DATABASE, &["has_js"]),
    row(
        "LiteSpeed Cache: its crawler, which is signed in only with litespeed_role",
        "https://docs.litespeedtech.com/lscache/lscwp/",
        &["litespeed_hash"],
    ),
    row(
        "LiteSpeed Cache for PrestaShop: set for every client",
        "https://docs.litespeedtech.com/lscache/lscps/",
        &["PrestaShop-lsc"],
    ),
    row("tests for cookies, by common names", COMMON, &["testcookie", "cookietest"]),
];

/// Cookies of sessions, logins and carts, that is, of one client. A request with one of them bypasses the
/// cache, and its response is not stored.
pub const SESSION_COOKIES: &[KnownCookies] = &[
    row(
        "PHP",
        "https://www.php.net/manual/en/session.configuration.php",
        &["PHPSESSID*", "*sessid*"],
    ),
    row(
        "common words for a session",
        COMMON,
        &["*session*", "*sess", "SESS*", "SSESS*", "*sid", "sid", "connect.sid"],
    ),
    row("Laravel and CodeIgniter", DATABASE, &["laravel_*", "XSRF-TOKEN", "csrf*", "ci_*"]),
    row("CakePHP", DATABASE, &["CAKEPHP"]),
    row(
        "Symfony",
        "https://symfony.com/doc/current/security/remember_me.html",
        &["REMEMBERME", "remember*", "symfony*"],
    ),
    row("WordPress", DATABASE, &["wordpress_*", "wp-postpass_*", "comment_author_*"]),
    row(
        "WordPress",
        "https://developer.wordpress.org/advanced-administration/wordpress/cookies/",
        &["wp-resetpass-*"],
    ),
    row("WooCommerce", DATABASE, &["woocommerce_*", "wp_woocommerce_*"]),
    row("Easy Digital Downloads", "https://easydigitaldownloads.com/docs/", &["edd_*"]),
    row("WP eCommerce", "https://wordpress.org/plugins/wp-e-commerce/", &["wpsc_*"]),
    row("BuddyPress", "https://codex.buddypress.org/", &["bp-*"]),
    row("YITH, and wish lists", DATABASE, &["yith_*"]),
    row("wish lists, by a common word", COMMON, &["wishlist_*"]),
    row(
        "LiteSpeed Cache: the role of a signed-in user",
        "https://docs.litespeedtech.com/lscache/lscwp/",
        &["litespeed_role"],
    ),
    row(
        "MediaWiki",
        "https://www.mediawiki.org/wiki/Manual:$wgCookiePrefix",
        &["*UserID", "*UserName", "*Token"],
    ),
    row("Moodle", "https://docs.moodle.org/en/Cookies", &["Moodle*", "MDL_*"]),
    row("TYPO3", DATABASE, &["fe_typo_user", "be_typo_user", "be_lastLoginProvider"]),
    row("Joomla", "https://docs.joomla.org/Cookies", &["joomla_*"]),
    row("Contao", "https://docs.contao.org/", &["BE_USER_AUTH", "FE_USER_AUTH", "FE_AUTO_LOGIN"]),
    row("Concrete", "https://documentation.concretecms.org/", &["CONCRETE*"]),
    row("Craft", DATABASE, &["CraftSessionId"]),
    row("Magento", DATABASE, &["frontend", "private_content_version", "mage-*"]),
    row(
        "Magento",
        "https://experienceleague.adobe.com/docs/commerce-admin/start/compliance/privacy/compliance-cookie-law.html",
        &["frontend_cid", "adminhtml", "admin"],
    ),
    row("PrestaShop", "https://devdocs.prestashop-project.org/", &["PrestaShop-*"]),
    row(
        "OpenCart, osCommerce and Zen Cart",
        "https://docs.opencart.com/",
        &["OCSESSID", "osCsid", "zenid"],
    ),
    row("Shopware", "https://docs.shopware.com/en/", &["sw-*"]),
    row("carts, by common words", COMMON, &["cart*", "*_cart", "basket*"]),
    row("phpBB", "https://www.phpbb.com/support/docs/", &["phpbb*"]),
    row("vBulletin", DATABASE, &["bbuserid", "bbpassword"]),
    row("vBulletin and bbPress", "https://forum.vbulletin.com/", &["bb_*"]),
    row("XenForo", DATABASE, &["xf_*"]),
    row(
        "SMF, MyBB, Flarum, Vanilla and Invision",
        "https://wiki.simplemachines.org/smf/Cookies",
        &["SMFCookie*", "mybb*", "flarum_*", "vanilla*", "ips4_*"],
    ),
    row(
        "logins, by common words",
        COMMON,
        &[
            "*login*",
            "*logged*",
            "*auth*",
            "*password*",
            "*token*",
            "jwt*",
            "*_user",
            "user",
            "user_*",
            "uid",
            "*userid*",
        ],
    ),
];

/// Cookies in which an application remembers the language that a visitor has chosen. They are part of the key, and
/// forwarded: PHP reads them where the URL has no language, as at `/`.
pub const LANGUAGE_COOKIES: &[KnownCookies] = &[
    row(
        "Polylang",
        "https://polylang.pro/is-polylang-compatible-with-the-eu-cookie-law/",
        &["pll_language"],
    ),
    row(
        "WPML",
        "https://wpml.org/documentation/support/browser-cookies-stored-wpml/",
        &["wp-wpml_current_language", "_icl_current_language"],
    ),
    row("TranslatePress", "https://translatepress.com/docs/", &["trp_language"]),
    row("qTranslate-XT", "https://github.com/qtranslate/qtranslate-xt", &["qtrans_front_language"]),
];

/// Cookies that are as unknown as any other, and whose owner is known: for explanations.
pub const OTHER_COOKIES: &[KnownCookies] = &[
    row(
        "Paid Memberships Pro: a visit is counted",
        "https://www.paidmembershipspro.com/documentation/",
        &["pmpro_visit"],
    ),
    row("AffiliateWP", "https://affiliatewp.com/docs/", &["affwp_*"]),
];

/// Query parameters that only say where a client came from. They are not part of the key, and not forwarded
/// to the origin for a page that may be shared.
pub const TRACKING: &[&str] = &[
    "utm_*",
    "fbclid",
    "gclid",
    "gclsrc",
    "dclid",
    "gbraid",
    "wbraid",
    "gad_source",
    "gad_campaignid",
    "srsltid",
    "msclkid",
    "mc_cid",
    "mc_eid",
    "_ga",
    "_gl",
    "yclid",
    "ysclid",
    "ymclid",
    "igshid",
    "igsh",
    "twclid",
    "ttclid",
    "li_fat_id",
    "epik",
    "ScCid",
    "rdt_cid",
    "_hsenc",
    "_hsmi",
    "__hstc",
    "__hssc",
    "__hsfp",
    "hsCtaTracking",
    "mkt_tok",
    "_kx",
    "_ke",
    "vero_id",
    "oly_anon_id",
    "oly_enc_id",
    "wickedid",
    "mtm_*",
    "pk_*",
    "piwik_*",
    "matomo_*",
    "hsa_*",
    "_branch_match_id",
    "_branch_referrer",
    "irclickid",
    "sc_cid",
    "ef_id",
    "s_kwcid",
    "trk_contact",
    "trk_msg",
    "trk_module",
    "trk_sid",
    "_openstat",
    "wt_mc",
    "at_campaign*",
    "at_medium",
    "guccounter",
    "guce_referrer",
    "guce_referrer_sig",
    "redirect_log_mongo_id",
    "redirect_mongo_id",
    "sb_referer_host",
    "ref_src",
    "ref_url",
];

/// The beginnings of names of cookies that applications set for signed-in visitors only, with a secret.
pub const LOGIN_COOKIES: [&str; 5] =
    ["wordpress_logged_in_", "wordpress_sec_", "remember_web_", "REMEMBERME", "xf_user"];

/// The session cookies of applications that have a LiteSpeed plugin.
pub const LITESPEED_OWNERS: [&str; 8] = [
    "PHPSESSID",
    "wordpress_logged_in_*",
    "wp_woocommerce_session_*",
    "PrestaShop-*",
    "SESS*",
    "SSESS*",
    "xf_session",
    "frontend",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_has_an_owner_and_a_source_and_no_name_is_given_twice() {
        for list in [SCRIPT_COOKIES, SESSION_COOKIES, LANGUAGE_COOKIES, OTHER_COOKIES] {
            for row in list {
                assert!(!row.owner.is_empty() && !row.names.is_empty(), "{row:?}");
                assert!(row.source.starts_with("https://") || row.source == COMMON, "{row:?}");
            }
            let names: Vec<_> = names_of(list).map(str::to_ascii_lowercase).collect();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        }
    }
}
