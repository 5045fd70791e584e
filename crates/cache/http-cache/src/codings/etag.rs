//! Entity tags of one content in several content codings (RFC 9110 §8.8.3.3): a suffix distinguishes them.
//!
//! Invariants: strong tags stay strong, because each coding is stored byte for byte, and weak tags stay
//! weak. A malformed tag gets no suffix. The tag of any coding satisfies a condition, because all codings
//! have the same content: a client that now accepts other codings need not fetch it again.

use super::Coding;
use crate::validators::opaque;
use http::HeaderValue;
use http_fields::fields;

/// The tag of the content in `coding`, if the uncompressed content has `tag`. `None` if `tag` is malformed.
pub fn coded_etag(tag: &[u8], coding: Coding) -> Option<HeaderValue> {
    let tag = fields::trim(tag);
    let open = tag.strip_suffix(b"\"").filter(|open| open.contains(&b'"'))?;
    HeaderValue::from_bytes(&[open, coding.suffix().as_bytes(), b"\""].concat()).ok()
}

/// Whether `listed` is the tag of the content of `tag` in `coding`, by weak comparison.
pub(crate) fn is_coded(listed: &[u8], tag: &[u8], coding: Coding) -> bool {
    let bare = |tag| match opaque(tag) {
        [b'"', text @ .., b'"'] => Some(text),
        _ => None,
    };
    match (bare(listed), bare(tag)) {
        (Some(listed), Some(tag)) => listed.strip_suffix(coding.suffix().as_bytes()) == Some(tag),
        _ => false,
    }
}

/// Whether `listed` is `tag` or the tag of one of its codings, by weak comparison.
pub(crate) fn weak_match_any_form(listed: &[u8], tag: &[u8]) -> bool {
    crate::validators::weak_match(listed, tag)
        || Coding::ALL.into_iter().any(|coding| is_coded(listed, tag, coding))
}

/// Whether `listed` is `tag` or the tag of one of its codings, by strong comparison.
pub(crate) fn strong_match_any_form(listed: &[u8], tag: &[u8]) -> bool {
    let strong = |tag: &[u8]| tag.starts_with(b"\"");
    crate::validators::strong_match(listed, tag)
        || (strong(listed) && strong(tag) && weak_match_any_form(listed, tag))
}

/// The coding of the content with the tag `tag` that a client has, by its `If-None-Match` lines. It is
/// `negotiated` if the lines contain its tag or match nothing, otherwise the first coding whose tag they
/// contain.
pub fn coding_of_match(lines: &[&[u8]], tag: &[u8], negotiated: Option<Coding>) -> Option<Coding> {
    let has = |form: Option<Coding>| {
        lines.iter().any(|line| {
            crate::validators::tags_of(line).any(|listed| match form {
                Some(coding) => is_coded(listed, tag, coding),
                None => crate::validators::weak_match(listed, tag),
            })
        })
    };
    if has(negotiated) {
        return negotiated;
    }
    let others = [None, Some(Coding::Gzip), Some(Coding::Brotli), Some(Coding::Zstd)];
    others.into_iter().find(|form| has(*form)).unwrap_or(negotiated)
}
