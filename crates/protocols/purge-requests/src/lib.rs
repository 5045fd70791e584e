//! Parses purge requests in the variants that PHP software sends to caches: `PURGE`, `REFRESH`, `BAN`,
//! `URIBAN`, `PURGEKEYS`, `PURGETAGS` and `GET /purge/…`, with the header fields of Varnish VCLs, xkey, Fastly,
//! Magento, Drupal, FOSHttpCache and the WordPress plugins. Input: the head of a request. Output: the selected
//! pages, and whether the purge is hard or soft.
//!
//! Where to read: `read.rs` (which request selects what), `tag_pattern.rs` (expressions that programs build
//! from tags, converted back to tags), `url_pattern.rs` and `pattern.rs` (other expressions). Invariants: no
//! input causes a panic; everything is bounded. An ambiguous request selects more rather than fewer pages: one
//! page too many costs a render, one too few would stay outdated. Not here: access control, the mapping of
//! hosts to sites, and the pages themselves. No I/O, no time, no state.

#![forbid(unsafe_code)]

mod pattern;
mod read;
mod spelling;
mod tag_pattern;
mod url_pattern;

pub use pattern::{Conditions, PATTERN_BYTES_MAX, PageProperties, Pattern};
pub use read::{is_purge_method, read, read_get};
pub use spelling::UrlExpression;
pub use tag_pattern::{TagPattern, read_tag_pattern};
pub use url_pattern::{UrlPattern, read_url_pattern};

/// The maximum number of tags in a request. With the default limits a header section holds fewer.
pub const TAGS_MAX: usize = 10_000;

/// A parsed purge request. It has hard and soft selections, because one request may contain both (`PURGEKEYS`
/// with `xkey-purge` and `xkey-softpurge`).
#[derive(Debug, Default)]
pub struct Purge {
    /// Pages to remove from the cache.
    pub hard: Vec<Selection>,
    /// Pages to mark as stale.
    pub soft: Vec<Selection>,
    /// An expression for the hosts (`X-Host`). Without it, the host of the request counts.
    pub hosts: Option<Pattern>,
    /// Whether the selection is limited to one host.
    pub scope: Scope,
    /// Whether more pages were selected than the request names.
    pub taken: Coverage,
}

/// Which pages of a site a purge concerns, if the site answers for any host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The pages of all hosts: tags and expressions are independent of the host.
    #[default]
    Site,
    /// The pages of the request's host, because the request selects them by URL.
    NamedHost,
}

/// Whether the selection is exactly what the request names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// The selection is what the request names.
    #[default]
    AsNamed,
    /// All pages of the site, because an expression over tags could not be parsed.
    Everything,
}

impl Coverage {
    /// The name that the response reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Coverage::AsNamed => "as-named",
            Coverage::Everything => "everything",
        }
    }
}

/// One selection of a purge request. URLs are as received; the site normalises them.
#[derive(Debug)]
pub enum Selection {
    /// All pages with this tag.
    Tag(Vec<u8>),
    /// One page: its path and query.
    Url(String),
    /// A path with any query or without one.
    Path(String),
    /// A path and everything below it. It ends with a slash and has no query.
    Below(String),
    /// All pages of the site.
    Everything,
    /// All pages for which these conditions hold.
    Where(Conditions),
}

/// The reason why a purge request is invalid. No part of it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeRefusal {
    /// The method needs a field with tags, which is missing or empty.
    TagsMissing,
    /// The request has more than [`TAGS_MAX`] tags.
    TooManyTags,
    /// An expression is longer than [`PATTERN_BYTES_MAX`].
    PatternTooLong,
    /// An expression is invalid; the text is the error.
    PatternUnusable(String),
    /// Purges by pool (`X-Pool`) are not supported.
    PoolUnsupported,
    /// A field that selects pages in a way that is not known; its name, and its value if only that is unknown.
    FieldUnknown(String),
}

impl PurgeRefusal {
    /// The name that the response reports.
    pub fn as_str(&self) -> &'static str {
        match self {
            PurgeRefusal::TagsMissing => "tags-missing",
            PurgeRefusal::TooManyTags => "purge-too-many-tags",
            PurgeRefusal::PatternTooLong => "pattern-too-long",
            PurgeRefusal::PatternUnusable(_) => "pattern-unusable",
            PurgeRefusal::PoolUnsupported => "pool-unsupported",
            PurgeRefusal::FieldUnknown(_) => "purge-field-unknown",
        }
    }

    /// A sentence that explains the error to the author of the request.
    pub fn explain(&self) -> String {
        match self {
            PurgeRefusal::TagsMissing => {
                "this method needs a field with tags, such as xkey-purge".into()
            }
            PurgeRefusal::TooManyTags => format!("at most {TAGS_MAX} tags in one request"),
            PurgeRefusal::PatternTooLong => {
                format!("an expression has at most {PATTERN_BYTES_MAX} bytes")
            }
            PurgeRefusal::PatternUnusable(what) => format!("the expression cannot be used: {what}"),
            PurgeRefusal::PoolUnsupported => {
                "pages are not kept by pool; send X-Magento-Tags-Pattern".into()
            }
            PurgeRefusal::FieldUnknown(field) => format!(
                "{field} may select other pages than the address; purge by URL, by tags or by X-Purge-Regex"
            ),
        }
    }
}
