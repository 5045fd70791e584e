//! Parses `X-LiteSpeed-Purge` and `X-LiteSpeed-Purge2`: the pages to purge, named by a response. They apply
//! on every response, whatever its method and status.
//! ```text
//! header  = segment *( ";" segment )
//! segment = *( ( "private" / "public" / "stale" ) "," ) item *( "," item )
//! item    = "/" path [ "?" query ] / [ "tag=" ] name [ "~s" / "~stale" ] / "*"
//! ```
//!
//! Leading words may have any order. For OpenLiteSpeed, a segment that begins with `/` is one URL; for
//! Laravel's plugin it is several. Both readings are returned. Invariant: a list that is unreadable or too
//! long is an error and never applied in part; the caller purges everything.

use crate::litespeed::Scope;
use crate::tags::TAG_MAX_BYTES;
use http::HeaderMap;
use http_fields::fields::{lines, trim};
use std::fmt;

/// The fields that are read.
pub const PURGE_FIELDS: [&str; 2] = ["x-litespeed-purge", "x-litespeed-purge2"];
/// The maximum number of items in all fields together.
pub const PURGE_ITEMS_MAX: usize = 10_000;

/// One item to purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The copies to purge: all of them, or only those of the requesting client ([`Scope::Private`]).
    pub scope: Scope,
    /// Whether the old copy may still be used.
    pub staleness: Staleness,
    /// The target of the purge.
    pub what: PurgeTarget,
}

/// Whether the old copy may be used while it is refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// No: it is removed.
    Gone,
    /// `stale`: yes, as far as the site allows stale responses.
    Stale,
}

/// The target of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeTarget {
    /// A tag.
    Tag(Vec<u8>),
    /// A URL of the site: path and query as they were written.
    Url(String),
    /// `*`, or a name with a wildcard, which no index can look up: everything of the site.
    Everything,
}

/// The reason why a purge list is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeUnreadable {
    /// More than [`PURGE_ITEMS_MAX`] items, or a tag longer than [`TAG_MAX_BYTES`].
    TooLong,
    /// Leading words without an item, or a URL that is not UTF-8.
    Nothing,
}

impl PurgeUnreadable {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            PurgeUnreadable::TooLong => "purge-too-long",
            PurgeUnreadable::Nothing => "purge-unreadable",
        }
    }
}

impl fmt::Display for PurgeUnreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for PurgeUnreadable {}

/// The items that a response purges, from all its purge fields in their order. Empty if it has none.
///
/// # Errors
/// The list is unreadable; the caller must purge everything of the site.
pub fn read_purges(headers: &HeaderMap) -> Result<Vec<Purge>, PurgeUnreadable> {
    let mut purges = Vec::new();
    for field in PURGE_FIELDS {
        for line in lines(headers, field) {
            for segment in line.as_bytes().split(|byte| *byte == b';').map(trim) {
                read_segment(segment, &mut purges)?;
            }
        }
    }
    Ok(purges)
}

fn read_segment(segment: &[u8], purges: &mut Vec<Purge>) -> Result<(), PurgeUnreadable> {
    let (scope, staleness, list) = leading_words(segment);
    let before = purges.len();
    if list.starts_with(b"/") && list.contains(&b',') {
        push(purges, scope, staleness, PurgeTarget::Url(address(list)?))?;
    }
    for item in list.split(|byte| *byte == b',').map(trim).filter(|item| !item.is_empty()) {
        let (what, staleness) = read_item(item, staleness)?;
        push(purges, scope, staleness, what)?;
    }
    if purges.len() > before || segment.is_empty() {
        return Ok(());
    }
    match scope {
        // A segment that only says `private` can only mean all private copies.
        Scope::Private => push(purges, scope, staleness, PurgeTarget::Everything),
        _ => Err(PurgeUnreadable::Nothing),
    }
}

/// Reads the optional words before the items, in any order.
fn leading_words(segment: &[u8]) -> (Scope, Staleness, &[u8]) {
    let (mut scope, mut staleness, mut rest) = (Scope::Public, Staleness::Gone, segment);
    loop {
        let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
        let word = trim(&rest[..end]);
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if is("private") {
            scope = Scope::Private;
        } else if is("stale") {
            staleness = Staleness::Stale;
        } else if !is("public") {
            return (scope, staleness, rest);
        }
        rest = trim(rest.get(end + 1..).unwrap_or_default());
    }
}

fn read_item(
    item: &[u8],
    staleness: Staleness,
) -> Result<(PurgeTarget, Staleness), PurgeUnreadable> {
    if item.starts_with(b"/") {
        return Ok((PurgeTarget::Url(address(item)?), staleness));
    }
    let (name, staleness) = match item {
        [name @ .., b'~', b's' | b'S'] => (name, Staleness::Stale),
        _ => match item.len().checked_sub(6) {
            Some(at) if item[at..].eq_ignore_ascii_case(b"~stale") => {
                (&item[..at], Staleness::Stale)
            }
            _ => (item, staleness),
        },
    };
    let name = trim(name);
    let name = match name.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case(b"tag=") => trim(&name[4..]),
        _ => name,
    };
    match name {
        [] => Err(PurgeUnreadable::Nothing),
        // `*`, `name*`, `*name`.
        [b'*', ..] | [.., b'*'] => Ok((PurgeTarget::Everything, staleness)),
        name if name.len() > TAG_MAX_BYTES => Err(PurgeUnreadable::TooLong),
        name => Ok((PurgeTarget::Tag(name.to_vec()), staleness)),
    }
}

fn address(bytes: &[u8]) -> Result<String, PurgeUnreadable> {
    String::from_utf8(bytes.to_vec()).map_err(|_| PurgeUnreadable::Nothing)
}

fn push(
    purges: &mut Vec<Purge>,
    scope: Scope,
    staleness: Staleness,
    what: PurgeTarget,
) -> Result<(), PurgeUnreadable> {
    if purges.len() == PURGE_ITEMS_MAX {
        return Err(PurgeUnreadable::TooLong);
    }
    purges.push(Purge { scope, staleness, what });
    Ok(())
}
