//! The fields by which LiteSpeed's cache plugins speak to the server in front of PHP: how long a page
//! is good and for whom (`X-LiteSpeed-Cache-Control`), its tags (`X-LiteSpeed-Tag`). Beside it `vary`
//! (the cookies that tell copies apart), `cookies` (`lsc-cookie`) and `purge` (what has changed).
//!
//! The grammar is that of OpenLiteSpeed's own reader, and of what the plugins send. Invariants: every
//! list is bounded; what cannot be read is never taken for leave to store; words that are not known are
//! ignored. Deliberately not here: private copies (a private page is not stored), ESI (a page that has
//! it is not stored), rewrite directives.

mod cookies;
mod purge;
mod vary;

pub use cookies::{LSC_COOKIE, LSC_COOKIES_MAX, LSC_COOKIES_MAX_BYTES};
pub use purge::{
    PURGE_FIELDS, PURGE_ITEMS_MAX, Purge, PurgeUnreadable, Purged, Staleness, read_purges,
};
pub use vary::{VARY_FIELD, VARY_VALUE_FIELD, is_vary_cookie, is_vary_reading};

pub(crate) use cookies::shared_cookies;
pub(crate) use vary::{VaryRefused, vary_of};

use crate::directives::ResponseDirectives;
use crate::fields::{self, digits, trim};
use crate::tags::{Tags, TagsRefused};
use crate::time::SECONDS_MAX;
use http::HeaderMap;

/// The field that says how long a page is good, and for whom.
pub const CACHE_CONTROL_FIELD: &str = "x-litespeed-cache-control";

/// For whom a page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// For everybody whose vary cookies are the same.
    #[default]
    Public,
    /// For the one visitor who asked.
    Private,
    /// For visitors who are signed in; one copy does for all of them whose vary cookies are the same.
    SharedPrivate,
}

/// Whether a page may be kept at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// It may.
    Allowed,
    /// `no-cache` or `no-store`, which mean the same here.
    Forbidden,
}

/// Whether something is switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// It is not.
    #[default]
    Off,
    /// It is.
    On,
}

/// What `X-LiteSpeed-Cache-Control` says. Spans are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// For whom the page is.
    pub scope: Scope,
    /// Whether it may be kept.
    pub keeping: Keeping,
    /// How long: `s-maxage`, or else `max-age`.
    pub lifetime_seconds: Option<u32>,
    /// `no-vary`: one copy whatever the vary cookies are.
    pub no_vary: Switch,
    /// `esi=on`: the content has ESI elements to be worked through.
    pub esi: Switch,
    /// `no-autoflush`: the requester's private copies outlive a POST of his.
    pub no_autoflush: Switch,
}

impl CacheControl {
    /// Reads the field; `None` when it is not there. Words count in their order, as they do for
    /// OpenLiteSpeed: a lifetime takes back a `no-cache` before it, and `public` a `private` before it.
    pub fn read(headers: &HeaderMap) -> Option<CacheControl> {
        let mut read = Reading::default();
        let mut lines = fields::lines(headers, CACHE_CONTROL_FIELD).peekable();
        lines.peek()?;
        for member in lines.flat_map(|line| fields::members(line.as_bytes())) {
            read.word(member);
        }
        Some(read.done())
    }

    /// Whether it says anything about keeping the page. `esi=on` alone does not: Cache-Control counts.
    pub fn speaks(&self) -> bool {
        self.keeping != Keeping::Unsaid || self.scope != Scope::Public
    }

    /// The same in the words of RFC 9111. `public` is not among them: there it allows to store an answer
    /// to Authorization, here it only says that the page is not private.
    pub(crate) fn directives(&self) -> ResponseDirectives {
        ResponseDirectives {
            max_age: self.lifetime_seconds,
            no_store: self.keeping == Keeping::Forbidden,
            private: self.scope != Scope::Public,
            ..ResponseDirectives::default()
        }
    }
}

/// The field while it is read.
#[derive(Default)]
struct Reading {
    control: CacheControl,
    max_age: Option<u32>,
    s_maxage: Option<u32>,
    public: bool,
    private: bool,
    shared: bool,
}

impl Reading {
    fn word(&mut self, member: &[u8]) {
        let equals = member.iter().position(|byte| *byte == b'=').unwrap_or(member.len());
        let (name, value) = (trim(&member[..equals]), member.get(equals + 1..));
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let control = &mut self.control;
        if is("max-age") || is("s-maxage") {
            // What is no number gives no leave: the lifetime is over at once, as in Cache-Control.
            let seconds = value.map(plain).and_then(number).unwrap_or(0);
            let kept = if is("max-age") { &mut self.max_age } else { &mut self.s_maxage };
            *kept = Some(seconds);
            control.keeping = Keeping::Allowed;
        } else if is("no-cache") || is("no-store") {
            control.keeping = Keeping::Forbidden;
        } else if is("public") {
            (self.public, self.private) = (true, false);
            allow(control);
        } else if is("private") {
            self.private = true;
        } else if is("shared") {
            self.shared = true;
        } else if is("no-vary") {
            control.no_vary = Switch::On;
        } else if is("no-autoflush") {
            control.no_autoflush = Switch::On;
        } else if is("esi") {
            let on = value.is_some_and(|value| plain(value).eq_ignore_ascii_case(b"on"));
            control.esi = if on { Switch::On } else { Switch::Off };
        }
    }

    fn done(self) -> CacheControl {
        let scope = match (self.private, self.shared) {
            (true, true) => Scope::SharedPrivate,
            (true, false) => Scope::Private,
            // `shared` is said of private pages only; alone it is no leave to show one to everybody.
            (false, true) if !self.public => Scope::SharedPrivate,
            (false, _) => Scope::Public,
        };
        let lifetime_seconds = self.s_maxage.or(self.max_age);
        CacheControl { scope, lifetime_seconds, ..self.control }
    }
}

fn allow(control: &mut CacheControl) {
    if control.keeping == Keeping::Unsaid {
        control.keeping = Keeping::Allowed;
    }
}

/// A value without white space and quotes around it.
fn plain(value: &[u8]) -> &[u8] {
    match trim(value) {
        [b'"', inner @ .., b'"'] => trim(inner),
        value => value,
    }
}

fn number(text: &[u8]) -> Option<u32> {
    digits(text, u64::from(SECONDS_MAX)).and_then(|number| u32::try_from(number).ok())
}

/// Whether content has elements of ESI in it, in either of LiteSpeed's spellings.
pub fn has_esi(content: &[u8]) -> bool {
    content.windows(5).any(|five| matches!(five, b"<esi:" | b"<esi_"))
}

/// The tags of `X-LiteSpeed-Tag` by whom they are for: on a private page a tag is of the visitor's own
/// copies unless it is written `public:`; on a public one all are everybody's.
///
/// # Errors
/// They are over a limit.
pub fn tags_by_scope(headers: &HeaderMap, scope: Scope) -> Result<TagsByScope, TagsRefused> {
    let mut found = TagsByScope::default();
    each_tag(headers, |marked, tag| match (scope, marked) {
        (Scope::Public, _) | (_, TagScope::Public) => found.public.push(tag),
        _ => found.private.push(tag),
    })?;
    Ok(TagsByScope { public: found.public.once(), private: found.private.once() })
}

/// Tags by whom they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagsByScope {
    /// A change of these concerns everybody's copies.
    pub public: Tags,
    /// A change of these concerns the copies of the visitor who made it.
    pub private: Tags,
}

/// What is written at a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagScope {
    Unsaid,
    Public,
}

/// Calls `visit` with each tag of `X-LiteSpeed-Tag`. A line may begin with a scope, which is no tag.
pub(crate) fn each_tag(
    headers: &HeaderMap,
    mut visit: impl FnMut(TagScope, &[u8]) -> Result<(), TagsRefused>,
) -> Result<(), TagsRefused> {
    for line in headers.get_all("x-litespeed-tag") {
        let tags = line.as_bytes().split(|byte| *byte == b',').map(trim);
        for (at, tag) in tags.filter(|tag| !tag.is_empty()).enumerate() {
            if at == 0 && is_scope(tag) {
                continue;
            }
            match tag.get(..7) {
                Some(prefix) if prefix.eq_ignore_ascii_case(b"public:") => {
                    visit(TagScope::Public, trim(&tag[7..]))?;
                }
                _ => visit(TagScope::Unsaid, tag)?,
            }
        }
    }
    Ok(())
}

fn is_scope(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"public") || word.eq_ignore_ascii_case(b"private")
}

#[cfg(test)]
#[path = "litespeed/tests.rs"]
mod tests;
