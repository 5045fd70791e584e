//! Cookies: classification by name.
//!
//! | kind | by default |
//! |---|---|
//! | script-only | ignored; not forwarded to the origin for a page that may be shared |
//! | language | part of the key and forwarded |
//! | vary | the same: the application selects a variant by it, for visitors with a session too |
//! | session | the request bypasses the cache, and its response is not stored |
//! | unknown | see [`UnknownCookies`] |
//!
//! The site's lists take precedence over the built-in ones. Of the built-in lists, that of scripts' cookies
//! comes first, because its patterns are narrower. A name with several readings ([`CookieName`]) has the
//! strictest kind of them. Invariant: the classification of a cookie with a plain or short name allocates
//! nothing.

use http_cache::CookieName;
use http_cache::cookie_name::folded;
use http_cache::litespeed::is_vary_reading;
use known_names::{
    LANGUAGE_COOKIES, LITESPEED_OWNERS, OTHER_COOKIES, SCRIPT_COOKIES, SESSION_COOKIES, names_of,
};
use rule_conditions::{Glob, NamedCondition};

/// Pagewell's own cookie, which marks a client that has just sent a write.
pub const AFTER_WRITE_COOKIE: &str = "pagewell-wrote";

/// Pagewell's own cookie, which a deferred client returns when it asks again.
pub const TICKET_COOKIE: &str = "pagewell-place";

/// The maximum number of cookies of a request that are looked through, or reported, for an explanation.
pub const COOKIES_REPORTED_MAX: usize = 64;

/// The purpose of a cookie; the strictest comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CookieKind {
    /// Scripts in the browser read it; the application does not.
    ScriptOnly,
    /// Unknown.
    Unknown,
    /// The application remembers the language of its user there.
    Language,
    /// The application selects a variant of a page by it.
    Vary,
    /// The application identifies its user by it.
    Session,
}

/// The handling of a request with a cookie that is on no list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCookies {
    /// The request may be answered with pages for which the application declared a lifetime. Its own
    /// response is stored only if it is marked as shared.
    #[default]
    Declared,
    /// It counts as a script's cookie.
    Ignore,
    /// It counts as a session cookie.
    Bypass,
}

/// A list of name patterns, indexed by the first letter.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The patterns that begin with this byte.
    by_first: Vec<Vec<Glob>>,
    /// The patterns that begin with a wildcard.
    anywhere: Vec<Glob>,
}

impl Default for Names {
    fn default() -> Names {
        Names { by_first: vec![Vec::new(); 256], anywhere: Vec::new() }
    }
}

impl Names {
    pub(crate) fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<Names, String> {
        let mut names = Names::default();
        for word in words {
            let glob = Glob::of_name(word)?;
            match word.bytes().next() {
                None => return Err("an empty name fits nothing".to_owned()),
                Some(b'*') => names.anywhere.push(glob),
                Some(first) => {
                    names.by_first[usize::from(first.to_ascii_lowercase())].push(glob);
                }
            }
        }
        Ok(names)
    }

    /// Reads patterns of cookie names.
    pub(crate) fn of_cookies<'a>(words: impl Iterator<Item = &'a str>) -> Result<Names, String> {
        let all: Vec<String> = words.map(folded).collect();
        Names::read(all.iter().map(String::as_str))
    }

    /// Whether a pattern matches a reading of the cookie's name.
    pub(crate) fn have_cookie(&self, name: &CookieName<'_>) -> bool {
        name.any(|reading| self.have(reading))
    }

    pub(crate) fn have(&self, name: &[u8]) -> bool {
        let first = name.first().map_or(0, u8::to_ascii_lowercase);
        self.by_first[usize::from(first)].iter().any(|glob| glob.fits(name))
            || self.anywhere.iter().any(|glob| glob.fits(name))
    }
}

/// The lists that classify cookies.
#[derive(Clone, Debug)]
pub(crate) struct CookieLists {
    own_session: Names,
    own_script: Names,
    script: Names,
    session: Names,
    language: Names,
    /// The logins of applications that have a LiteSpeed plugin, without Drupal's.
    logins: Names,
    /// The cookies in conditions of rules.
    conditions: Vec<Condition>,
    /// Whether a name in a rule has several readings itself.
    has_odd_conditions: bool,
    pub(crate) unknown: UnknownCookies,
}

/// The name of a cookie in a condition of a rule: as written, and folded to find other spellings of it.
#[derive(Clone, Debug)]
struct Condition {
    written: Glob,
    folded: Glob,
}

/// Reads a pattern of cookie names, for the readings that [`CookieName::any`] passes.
pub(crate) fn cookie_glob(word: &str) -> Result<Glob, String> {
    Glob::of_name(&folded(word))
}

/// The program or the service that sets a cookie with this name, if it is known.
pub fn known_cookie_owner(name: &str) -> Option<&'static str> {
    let name = folded(name);
    let lists = [LANGUAGE_COOKIES, OTHER_COOKIES, SCRIPT_COOKIES, SESSION_COOKIES];
    let fits = |pattern: &str| {
        let glob = cookie_glob(pattern);
        glob.is_ok_and(|glob| glob.fits(name.as_bytes()))
    };
    let mut rows = lists.into_iter().flatten().filter(|row| !row.are_common());
    rows.find(|row| row.names.iter().any(|pattern| fits(pattern))).map(|row| row.owner)
}

impl CookieLists {
    /// The site's lists and the built-in ones.
    pub(crate) fn new(
        session: &[String],
        script: &[String],
        unknown: UnknownCookies,
    ) -> Result<CookieLists, String> {
        Ok(CookieLists {
            own_session: Names::of_cookies(session.iter().map(String::as_str))?,
            own_script: Names::of_cookies(script.iter().map(String::as_str))?,
            script: Names::of_cookies(names_of(SCRIPT_COOKIES))?,
            session: Names::of_cookies(names_of(SESSION_COOKIES))?,
            language: Names::of_cookies(names_of(LANGUAGE_COOKIES))?,
            logins: Names::of_cookies(
                LITESPEED_OWNERS.iter().copied().filter(|name| !name.ends_with("SESS*")),
            )?,
            conditions: Vec::new(),
            has_odd_conditions: false,
            unknown,
        })
    }

    /// Adds the cookies by which a rule distinguishes clients. Such a cookie under another spelling would
    /// evade the rule, or create a copy for it that was rendered without the cookie.
    pub(crate) fn add_conditions(&mut self, all: &[NamedCondition]) -> Result<(), String> {
        for written in all.iter().map(|named| &named.name) {
            self.has_odd_conditions |= !CookieName::of(written.as_str().as_bytes()).is_plain();
            let folded = cookie_glob(written.as_str())?;
            self.conditions.push(Condition { written: written.clone(), folded });
        }
        Ok(())
    }

    /// The kind of the cookie with this name.
    pub(crate) fn kind(&self, name: &CookieName<'_>) -> CookieKind {
        if (!name.is_plain() || self.has_odd_conditions) && self.evades_a_rule(name) {
            return CookieKind::Session;
        }
        let mut strictest = CookieKind::ScriptOnly;
        name.any(|reading| {
            strictest = strictest.max(self.kind_of(reading));
            false
        });
        strictest
    }

    /// Whether every reading of the name is a login: a session cookie that the site names, or that of an
    /// application with a LiteSpeed plugin.
    pub(crate) fn is_login(&self, name: &CookieName<'_>) -> bool {
        let mut is_login = !self.evades_a_rule(name);
        name.any(|reading| {
            is_login &=
                self.own_session.have(reading) || self.logins.have(reading) || is_drupals(reading);
            false
        });
        is_login
    }

    fn evades_a_rule(&self, name: &CookieName<'_>) -> bool {
        self.conditions.iter().any(|condition| {
            !condition.written.fits(name.whole())
                && name.any(|reading| condition.folded.fits(reading))
        })
    }

    /// The kind of a cookie with this reading of its name.
    fn kind_of(&self, name: &[u8]) -> CookieKind {
        if self.own_session.have(name) {
            CookieKind::Session
        } else if self.own_script.have(name)
            || name == AFTER_WRITE_COOKIE.as_bytes()
            || name == TICKET_COOKIE.as_bytes()
            || self.script.have(name)
        {
            CookieKind::ScriptOnly
        } else if is_vary_reading(name) {
            CookieKind::Vary
        } else if self.language.have(name) {
            CookieKind::Language
        } else if self.session.have(name) || is_hash(name) {
            CookieKind::Session
        } else {
            CookieKind::Unknown
        }
    }
}

/// Joomla names its session cookie with 32 hexadecimal digits.
fn is_hash(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Drupal names its session cookie `SESS` or, over HTTPS, `SSESS`, with 32 hexadecimal digits.
fn is_drupals(name: &[u8]) -> bool {
    let plain = name.strip_prefix(b"S").filter(|rest| rest.starts_with(b"S")).unwrap_or(name);
    plain.strip_prefix(b"SESS").is_some_and(is_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> CookieLists {
        let own = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        CookieLists::new(
            &own(&["theirs", "both"]),
            &own(&["banner*", "both", "user"]),
            UnknownCookies::Declared,
        )
        .unwrap()
    }

    #[test]
    fn kinds() {
        let lists = lists();
        for (kind, names) in [
            (
                CookieKind::ScriptOnly,
                "_ga _ga_X1 _gid _fbp _hjSessionUser_1 _pk_ses.1.2 _uetsid __utma CookieConsent \
                 euconsent-v2 OptanonConsent didomi_token ai_session wordpress_test_cookie \
                 banner_seen user pagewell-wrote __cf_bm __stripe_mid __stripe_sid store_notice5f3a \
                 FPGSID __insp_sid wcsid SL_C_23361dd035530_SID ttcsid_C4 mf_user pys_session_limit \
                 __smToken ai_authUser cookiesession1 _splunk_rum_sid AWSALBCORS AWSELB",
            ),
            (
                CookieKind::Session,
                "PHPSESSID phpsessid SESSabc SSESSabc wordpress_logged_in_x wp-postpass_1 \
                 comment_author_9 woocommerce_items_in_cart shop_session laravel_session \
                 wikiUserID MoodleSession 0123456789abcdef0123456789ABCDEF theirs both \
                 remember_web_1 ci_session fe_typo_user XSRF-TOKEN JSESSIONID app_sid \
                 AWSELBAuthSessionCookie-0 AWSALBAuthNonce CF_Authorization rl_auth_token",
            ),
            (CookieKind::Unknown, "theme currency language x 0123456789abcdef"),
            (CookieKind::Language, "pll_language wp-wpml_current_language trp_language"),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(lists.kind(&CookieName::of(name.as_bytes())), kind, "{name}");
            }
        }
    }

    #[test]
    fn a_name_has_the_strictest_kind_of_its_readings() {
        let lists = lists();
        for (kind, names) in [
            (
                CookieKind::Session,
                "fe.typo.user|fe typo[user|fe_typo_user[]|woocommerce.items.in.cart|the%69rs|theirs[x]\
                 |theirs |ai_session[x].cart|0123456789abcdef0123456789abcdef[a]|fe+typo+user",
            ),
            (CookieKind::Vary, "_lscache.vary|X-Magento-Vary[x]"),
            (CookieKind::Unknown, "x.theme|has_js[a]|pagewell-wrote[a]"),
            (CookieKind::ScriptOnly, "_pk_ses.1.2|banner.seen|_ga[x.y|_pk_ref[1]"),
        ] {
            for name in names.split('|') {
                assert_eq!(lists.kind(&CookieName::of(name.as_bytes())), kind, "{name:?}");
            }
        }
    }

    #[test]
    fn the_built_in_patterns_can_be_read() {
        let names = names_of(SCRIPT_COOKIES).chain(names_of(SESSION_COOKIES));
        let names = names.chain(names_of(LANGUAGE_COOKIES));
        for pattern in names.chain(known_names::TRACKING.iter().copied()) {
            assert!(Glob::of_name(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn an_owner_is_found_by_a_name_and_not_by_a_common_word() {
        let owner = known_cookie_owner;
        assert_eq!(owner("pll_language"), Some("Polylang"));
        assert_eq!(owner("PMPRO_visit"), Some("Paid Memberships Pro: a visit is counted"));
        assert_eq!(owner("_hjSession_1"), Some("Hotjar"));
        assert_eq!(owner("woocommerce_items_in_cart"), Some("WooCommerce"));
        assert_eq!((owner("my_session"), owner("theme"), owner("")), (None, None, None));
    }
}
