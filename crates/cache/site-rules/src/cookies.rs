//! Cookies: reading them (RFC 6265 section 5.4), and telling by name what they are for.
//!
//! | kind | by default |
//! |---|---|
//! | script-only | does not count; does not go to the origin for a page that may be shared |
//! | vary | is part of the key, and goes to the origin: the application tells copies apart by it |
//! | session | the request is passed on, its response not stored |
//! | unknown | see [`Unknown`] |
//!
//! What a site names goes before what is built in; of what is built in, the script's list goes first, for
//! its patterns are the narrower ones. A name that applications read in more than one way
//! ([`CookieName`]) is of the strictest kind that one of its readings is of.
//! Invariant: telling the kind of a cookie whose name is plain, or short, allocates nothing.

use crate::glob::{Case, Glob, Star};
use crate::known::{SCRIPT_COOKIES, SESSION_COOKIES};
use crate::rule::Named;
use http_cache::CookieName;
use http_cache::cookie_name::folded;
use http_cache::litespeed::is_vary_reading;

/// The cookie by which a visitor who has written is known for a moment. Pagewell's own.
pub const AFTER_WRITE_COOKIE: &str = "pagewell-wrote";

/// What a cookie is for; the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CookieKind {
    /// Scripts in the browser read it, the application does not.
    ScriptOnly,
    /// Not known.
    Unknown,
    /// The application tells copies of a page apart by it.
    Vary,
    /// The application knows its visitor by it.
    Session,
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
        // RFC 6265 section 5.2: without `=` it has no name. PHP takes it for a name without a value.
        let (name, value) = CookieName::of_pair(written);
        Pair { name, value: trim(value.unwrap_or_default()), written }
    })
}

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<'a> {
    pub(crate) name: CookieName<'a>,
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

    /// Patterns of cookies' names.
    pub(crate) fn of_cookies<'a>(words: impl Iterator<Item = &'a str>) -> Result<Names, String> {
        let all: Vec<String> = words.map(folded).collect();
        Names::read(all.iter().map(String::as_str))
    }

    /// Whether one fits a way of reading the cookie's name.
    pub(crate) fn have_cookie(&self, name: &CookieName<'_>) -> bool {
        name.any(|reading| self.have(reading))
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
    /// By which rules tell visitors apart.
    conditions: Vec<Condition>,
    /// Whether what a rule names is itself read in more than one way.
    has_odd_conditions: bool,
    pub(crate) unknown: Unknown,
}

/// The name of a cookie in a rule's condition: as the rule has it, and for whatever else reads as that.
#[derive(Clone, Debug)]
struct Condition {
    written: Glob,
    folded: Glob,
}

/// A pattern of cookies' names, for what [`CookieName::any`] shows.
pub(crate) fn cookie_glob(word: &str) -> Result<Glob, String> {
    Glob::read(&folded(word), Star::Anything, Case::Ignored)
}

impl CookieLists {
    /// The built-in lists, and before them those that the site names.
    pub(crate) fn new(
        session: &[String],
        script: &[String],
        unknown: Unknown,
    ) -> Result<CookieLists, String> {
        Ok(CookieLists {
            own_session: Names::of_cookies(session.iter().map(String::as_str))?,
            own_script: Names::of_cookies(script.iter().map(String::as_str))?,
            script: Names::of_cookies(SCRIPT_COOKIES.iter().copied())?,
            session: Names::of_cookies(SESSION_COOKIES.iter().copied())?,
            conditions: Vec::new(),
            has_odd_conditions: false,
            unknown,
        })
    }

    /// Takes in what a rule tells visitors apart by: such a cookie under another spelling would get round
    /// the rule, or make a copy for it that was rendered without the cookie.
    pub(crate) fn add_conditions(&mut self, all: &[Named]) -> Result<(), String> {
        for written in all.iter().map(|named| &named.name) {
            self.has_odd_conditions |= !CookieName::of(written.as_str().as_bytes()).is_plain();
            let folded = cookie_glob(written.as_str())?;
            self.conditions.push(Condition { written: written.clone(), folded });
        }
        Ok(())
    }

    /// What the cookie of this name is for.
    pub(crate) fn kind(&self, name: &CookieName<'_>) -> CookieKind {
        if (!name.is_plain() || self.has_odd_conditions) && self.gets_round_a_rule(name) {
            return CookieKind::Session;
        }
        let mut strictest = CookieKind::ScriptOnly;
        name.any(|reading| {
            strictest = strictest.max(self.kind_of(reading));
            false
        });
        strictest
    }

    fn gets_round_a_rule(&self, name: &CookieName<'_>) -> bool {
        self.conditions.iter().any(|condition| {
            !condition.written.fits(name.whole())
                && name.any(|reading| condition.folded.fits(reading))
        })
    }

    /// What a cookie with this reading of its name is for.
    fn kind_of(&self, name: &[u8]) -> CookieKind {
        if self.own_session.have(name) {
            CookieKind::Session
        } else if self.own_script.have(name)
            || name == AFTER_WRITE_COOKIE.as_bytes()
            || self.script.have(name)
        {
            CookieKind::ScriptOnly
        } else if is_vary_reading(name) {
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
                assert_eq!(lists.kind(&CookieName::of(name.as_bytes())), kind, "{name}");
            }
        }
    }

    #[test]
    fn a_name_is_of_the_strictest_kind_that_it_can_be_read_as() {
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
    fn pairs_are_read_as_they_stand() {
        let read: Vec<_> = pairs(b" a=1;b = 2 ;; c; d=x=y;=z").collect();
        let names: Vec<_> = read.iter().map(|pair| (pair.name.written(), pair.value)).collect();
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
