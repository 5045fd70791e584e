//! Requests to purge, in the dialects that PHP software speaks to caches: `PURGE`, `REFRESH`, `BAN`,
//! `URIBAN`, `PURGEKEYS`, `PURGETAGS` and `GET /purge/…`, with the header fields of Varnish's VCLs,
//! xkey, Fastly, Magento, Drupal, FOSHttpCache and the WordPress plugins. A request's head goes in;
//! what it names, and how strongly, comes out.
//!
//! Where to read: `read.rs` (which request means what), `tag_pattern.rs` (expressions that programs
//! put together from tags, turned back into the tags), `url_pattern.rs` and `pattern.rs` (what is
//! left as an expression). Invariants: nothing panics on anything that came in; everything is
//! bounded; where a request could mean more or less, more is taken: a page too many costs a render,
//! a page too few would be an old page. Deliberately not here: who may purge, which site a host is,
//! and the pages themselves. No I/O, no time, no state.

#![forbid(unsafe_code)]

mod pattern;
mod read;
mod tag_pattern;
mod url_pattern;

pub use pattern::{Conditions, Described, PATTERN_BYTES_MAX, Pattern};
pub use read::{is_purge_method, read, read_get};
pub use tag_pattern::{TagPattern, read_tag_pattern};
pub use url_pattern::{UrlPattern, read_url_pattern};

/// The most names of data that one request may have; a header section holds fewer by default.
pub const TAGS_MAX: usize = 10_000;

/// What a request asks for. Hard and soft stand beside each other, because one request may ask for
/// both (`PURGEKEYS` with `xkey-purge` and `xkey-softpurge`).
#[derive(Debug, Default)]
pub struct Purge {
    /// What is to leave.
    pub hard: Vec<Selected>,
    /// What is to be marked, to be used as stale only.
    pub soft: Vec<Selected>,
    /// The hosts that the request speaks of, where it says so by an expression (`X-Host`); without
    /// it the host that it came to.
    pub hosts: Option<Pattern>,
    /// Which pages of the site are meant.
    pub scope: Scope,
    /// Whether more was taken than was named.
    pub taken: Taken,
}

/// Which pages of a site a request means, where the site answers for any host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of every host: tags and expressions know no host.
    #[default]
    Site,
    /// Those of the host that the request names: it names them by their address.
    NamedHost,
}

/// How what was taken compares with what was named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Taken {
    /// What was named.
    #[default]
    AsNamed,
    /// Everything of the site, because an expression over tags was not understood.
    Everything,
}

impl Taken {
    /// Its name, as it stands in the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Taken::AsNamed => "as-named",
            Taken::Everything => "everything",
        }
    }
}

/// One thing that a request names. Addresses are as they were written; their normal form is the
/// site's affair.
#[derive(Debug)]
pub enum Selected {
    /// A name of data.
    Tag(Vec<u8>),
    /// One page: its path and query.
    Url(String),
    /// A path with any query or none.
    Path(String),
    /// Everything below a path, and the path itself; it ends with a slash and has no query.
    Below(String),
    /// Everything of the site.
    Everything,
    /// What these conditions say.
    Where(Conditions),
}

/// Why a request is not understood. Nothing of it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The method needs a field with tags, and there is none, or it is empty.
    TagsMissing,
    /// More than [`TAGS_MAX`] tags.
    TooManyTags,
    /// An expression is longer than [`PATTERN_BYTES_MAX`].
    PatternTooLong,
    /// An expression cannot be used: what is wrong with it.
    PatternUnusable(String),
    /// Pages are not kept by pool (`X-Pool`).
    PoolUnsupported,
}

impl Unread {
    /// Its name, as it stands in the answer.
    pub fn as_str(&self) -> &'static str {
        match self {
            Unread::TagsMissing => "tags-missing",
            Unread::TooManyTags => "purge-too-many-tags",
            Unread::PatternTooLong => "pattern-too-long",
            Unread::PatternUnusable(_) => "pattern-unusable",
            Unread::PoolUnsupported => "pool-unsupported",
        }
    }

    /// A sentence for whoever wrote the request.
    pub fn explain(&self) -> String {
        match self {
            Unread::TagsMissing => "this method needs a field with tags, such as xkey-purge".into(),
            Unread::TooManyTags => format!("at most {TAGS_MAX} tags in one request"),
            Unread::PatternTooLong => {
                format!("an expression has at most {PATTERN_BYTES_MAX} bytes")
            }
            Unread::PatternUnusable(what) => format!("the expression cannot be used: {what}"),
            Unread::PoolUnsupported => {
                "pages are not kept by pool; send X-Magento-Tags-Pattern".into()
            }
        }
    }
}
