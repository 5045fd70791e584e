//! Cookies: reading them (RFC 6265 section 5.4), and telling by name what they are for.
//!
//! | kind | by default |
//! |---|---|
//! | script-only | does not count; does not go to the origin for a page that may be shared |
//! | vary | is part of the key, and goes to the origin: the application tells copies apart by it |
//! | session | the request is passed on, its response not stored |
//! | unknown | see [`Unknown`] |
//!
//! Invariant: telling a cookie's kind allocates nothing. What a site names goes before what is built
//! in; of what is built in, the script's list goes first, for its patterns are the narrower ones.

use crate::glob::{Case, Glob, Star};
use crate::known::{SCRIPT_COOKIES, SESSION_COOKIES};
use http_cache::litespeed::is_vary_cookie;

/// The cookie by which a visitor who has written is known for a moment. Pagewell's own.
pub const AFTER_WRITE_COOKIE: &str = "pagewell-wrote";

/// What a cookie is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieKind {
    /// Scripts in the browser read it, the application does not.
    ScriptOnly,
    /// The application tells copies of a page apart by it.
    Vary,
    /// The application knows its visitor by it.
    Session,
    /// Not known.
    Unknown,
}

/// What a cookie that is on no list means for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// The request gets the pages that the application has declared a lifetime for; its own response
    /// is stored only if it is marked as shareable.
    #[default]
    Declared,
    /// It counts as a script's.
    Ignore,
    /// It counts as a session's.
    Bypass,
}

/// The cookies of a request, from all its lines: name, value, and both as they stand.
pub(crate) fn pairs(line: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    line.split(|byte| *byte == b';').map(trim).filter(|pair| !pair.is_empty()).map(|written| {
        let (name, value) = match written.iter().position(|byte| *byte == b'=') {
            Some(at) => (trim(&written[..at]), trim(&written[at + 1..])),
            // RFC 6265 section 5.2: without a name. PHP takes it for a name without a value.
            None => (written, &written[written.len()..]),
        };
        Pair { name, value, written }
    })
}

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) written: &'a [u8],
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Name patterns that are looked up by the first letter.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Those that begin with a letter of this number.
    by_first: Vec<Vec<Glob>>,
    /// Those that begin with a star.
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
            let glob = Glob::read(word, Star::Anything, Case::Ignored)?;
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

    pub(crate) fn have(&self, name: &[u8]) -> bool {
        let first = name.first().map_or(0, u8::to_ascii_lowercase);
        self.by_first[usize::from(first)].iter().any(|glob| glob.fits(name))
            || self.anywhere.iter().any(|glob| glob.fits(name))
    }
}

/// The lists by which cookies are told apart.
#[derive(Clone, Debug)]
pub(crate) struct CookieLists {
    own_session: Names,
    own_script: Names,
    script: Names,
    session: Names,
    pub(crate) unknown: Unknown,
}

impl CookieLists {
    /// The built-in lists, and before them those that the site names.
    pub(crate) fn new(
        session: &[String],
        script: &[String],
        unknown: Unknown,
    ) -> Result<CookieLists, String> {
        Ok(CookieLists {
            own_session: Names::read(session.iter().map(String::as_str))?,
            own_script: Names::read(script.iter().map(String::as_str))?,
            script: Names::read(SCRIPT_COOKIES.iter().copied())?,
            session: Names::read(SESSION_COOKIES.iter().copied())?,
            unknown,
        })
    }

    /// What the cookie of this name is for.
    pub(crate) fn kind(&self, name: &[u8]) -> CookieKind {
        if self.own_session.have(name) {
            CookieKind::Session
        } else if self.own_script.have(name)
            || name == AFTER_WRITE_COOKIE.as_bytes()
            || self.script.have(name)
        {
            CookieKind::ScriptOnly
        } else if is_vary_cookie(name) {
            CookieKind::Vary
        } else if self.session.have(name) || is_hash(name) {
            CookieKind::Session
        } else {
            CookieKind::Unknown
        }
    }
}

/// Joomla calls its session by 32 hexadecimal digits and nothing else.
fn is_hash(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> CookieLists {
        let own = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        CookieLists::new(
            &own(&["theirs", "both"]),
            &own(&["banner*", "both", "user"]),
            Unknown::Declared,
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
                 banner_seen user pagewell-wrote __cf_bm",
            ),
            (
                CookieKind::Session,
                "PHPSESSID phpsessid SESSabc SSESSabc wordpress_logged_in_x wp-postpass_1 \
                 comment_author_9 woocommerce_items_in_cart shop_session laravel_session \
                 wikiUserID MoodleSession 0123456789abcdef0123456789ABCDEF theirs both \
                 remember_web_1 ci_session fe_typo_user XSRF-TOKEN JSESSIONID",
            ),
            (CookieKind::Unknown, "theme currency pll_language x 0123456789abcdef"),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(lists.kind(name.as_bytes()), kind, "{name}");
            }
        }
    }

    #[test]
    fn pairs_are_read_as_they_stand() {
        let read: Vec<_> = pairs(b" a=1;b = 2 ;; c; d=x=y;=z").collect();
        let names: Vec<_> = read.iter().map(|pair| (pair.name, pair.value)).collect();
        assert_eq!(
            names,
            [(&b"a"[..], &b"1"[..]), (b"b", b"2"), (b"c", b""), (b"d", b"x=y"), (b"", b"z"),]
        );
        assert_eq!(read[1].written, b"b = 2");
    }

    #[test]
    fn the_built_in_patterns_can_be_read() {
        for pattern in SCRIPT_COOKIES.iter().chain(SESSION_COOKIES).chain(crate::TRACKING) {
            assert!(Glob::read(pattern, Star::Anything, Case::Ignored).is_ok(), "{pattern}");
        }
    }
}
