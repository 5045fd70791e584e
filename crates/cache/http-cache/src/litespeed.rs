//! The header fields of LiteSpeed's cache plugins: lifetime and scope of a page
//! (`X-LiteSpeed-Cache-Control`) and its tags (`X-LiteSpeed-Tag`). Further modules: `vary` (cookies that
//! select a variant), `cookies` (`lsc-cookie`) and `purge`.
//!
//! The grammar is that of OpenLiteSpeed's parser and of the plugins' output. Invariants: every list has a
//! limit; unreadable text never permits storing; unknown words are ignored. Not in this module: private
//! copies (a private page is not stored), ESI (a page with ESI elements is not stored), rewrite directives.

mod cookies;
mod purge;
mod vary;

pub use cookies::{LSC_COOKIE, LSC_COOKIES_MAX, LSC_COOKIES_MAX_BYTES};
pub use purge::{
    PURGE_FIELDS, PURGE_ITEMS_MAX, Purge, PurgeTarget, PurgeUnreadable, Staleness, read_purges,
};
pub use vary::{VARY_FIELD, VARY_VALUE_FIELD, is_vary_cookie, is_vary_reading};

pub(crate) use cookies::shared_cookies;
pub(crate) use vary::{VaryRefused, vary_of};

use crate::tags::{Tags, TagsRefused};
use http::HeaderMap;
use http_fields::directives::ResponseDirectives;
use http_fields::fields::{self, digits, trim};
use http_fields::time::SECONDS_MAX;

/// The field with the lifetime and the scope of a page.
pub const CACHE_CONTROL_FIELD: &str = "x-litespeed-cache-control";

/// The clients that may receive a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All clients with the same vary cookies.
    #[default]
    Public,
    /// Only the client that requested it.
    Private,
    /// Clients that are signed in; those with the same vary cookies share one copy.
    SharedPrivate,
}

/// Whether a page may be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorePermission {
    /// Not specified.
    #[default]
    Unsaid,
    /// The page may be stored.
    Allowed,
    /// `no-cache` or `no-store`, which mean the same here.
    Forbidden,
}

/// The state of an option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// Off.
    #[default]
    Off,
    /// On.
    On,
}

/// The content of `X-LiteSpeed-Cache-Control`. Durations are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// The clients that may receive the page.
    pub scope: Scope,
    /// Whether the page may be stored.
    pub keeping: StorePermission,
    /// The lifetime: `s-maxage`, or else `max-age`.
    pub lifetime_seconds: Option<u32>,
    /// `no-vary`: one copy for all values of the vary cookies.
    pub no_vary: Switch,
    /// `esi=on`: the content has ESI elements to be processed.
    pub esi: Switch,
    /// `no-autoflush`: a POST does not purge the private copies of the client that sent it.
    pub no_autoflush: Switch,
}

impl CacheControl {
    /// Reads the field; `None` if it is absent. Words apply in their order, as in OpenLiteSpeed: a lifetime
    /// overrides an earlier `no-cache`, and `public` overrides an earlier `private`.
    pub fn read(headers: &HeaderMap) -> Option<CacheControl> {
        let mut read = Reading::default();
        let mut lines = fields::lines(headers, CACHE_CONTROL_FIELD).peekable();
        lines.peek()?;
        for member in lines.flat_map(|line| fields::members(line.as_bytes())) {
            read.word(member);
        }
        Some(read.done())
    }

    /// Whether the field says if the page may be stored. `esi=on` alone does not; Cache-Control then
    /// applies.
    pub fn speaks(&self) -> bool {
        self.keeping != StorePermission::Unsaid || self.scope != Scope::Public
    }

    /// The equivalent directives of RFC 9111. `public` is not among them: in RFC 9111 it permits to store a
    /// response to a request with Authorization, here it only means that the page is not private.
    pub(crate) fn directives(&self) -> ResponseDirectives {
        ResponseDirectives {
            max_age: self.lifetime_seconds,
            no_store: self.keeping == StorePermission::Forbidden,
            private: self.scope != Scope::Public,
            ..ResponseDirectives::default()
        }
    }
}

/// The state of the parser.
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
            // A value that is not a number means a lifetime of 0, as in Cache-Control.
            let seconds = value.map(plain).and_then(number).unwrap_or(0);
            let kept = if is("max-age") { &mut self.max_age } else { &mut self.s_maxage };
            *kept = Some(seconds);
            control.keeping = StorePermission::Allowed;
        } else if is("no-cache") || is("no-store") {
            control.keeping = StorePermission::Forbidden;
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
            // `shared` is defined for private pages only; alone it does not permit to serve the page to all
            // clients.
            (false, true) if !self.public => Scope::SharedPrivate,
            (false, _) => Scope::Public,
        };
        let lifetime_seconds = self.s_maxage.or(self.max_age);
        CacheControl { scope, lifetime_seconds, ..self.control }
    }
}

fn allow(control: &mut CacheControl) {
    if control.keeping == StorePermission::Unsaid {
        control.keeping = StorePermission::Allowed;
    }
}

/// A value without surrounding white space and quotes.
fn plain(value: &[u8]) -> &[u8] {
    match trim(value) {
        [b'"', inner @ .., b'"'] => trim(inner),
        value => value,
    }
}

fn number(text: &[u8]) -> Option<u32> {
    digits(text, u64::from(SECONDS_MAX)).and_then(|number| u32::try_from(number).ok())
}

/// Whether the content has ESI elements, in either of LiteSpeed's spellings.
pub fn has_esi(content: &[u8]) -> bool {
    content.windows(5).any(|five| matches!(five, b"<esi:" | b"<esi_"))
}

/// The tags of `X-LiteSpeed-Tag` by scope. On a private page, a tag without the prefix `public:` applies to
/// the client's own copies; on a public page, every tag is public.
///
/// # Errors
/// The tags exceed a limit.
pub fn tags_by_scope(headers: &HeaderMap, scope: Scope) -> Result<TagsByScope, TagsRefused> {
    let mut found = TagsByScope::default();
    each_tag(headers, |marked, tag| match (scope, marked) {
        (Scope::Public, _) | (_, TagScope::Public) => found.public.push(tag),
        _ => found.private.push(tag),
    })?;
    Ok(TagsByScope { public: found.public.once(), private: found.private.once() })
}

/// The tags of a response, by scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagsByScope {
    /// Tags whose change affects every copy.
    pub public: Tags,
    /// Tags whose change affects only the copies of the client that made the change.
    pub private: Tags,
}

/// The scope written before a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagScope {
    Unsaid,
    Public,
}

/// Calls `visit` with each tag of `X-LiteSpeed-Tag`. A line may begin with a scope, which is not a tag.
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
