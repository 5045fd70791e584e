//! Entity tags of one content in several codings (RFC 9110 §8.8.3.3): a suffix tells them apart.
//!
//! Invariants: strong stays strong, for each form is stored byte for byte; weak stays weak; a tag that
//! is not well formed is left as it is. A condition is met by the tag of any form, since all say the
//! same content: a client that changed its mind about codings need not fetch it again.

use super::Coding;
use crate::fields;
use http::HeaderValue;

/// The tag of the form in `coding`, for content whose untouched form has `tag`; none where that is not
/// well formed.
pub fn coded_etag(tag: &[u8], coding: Coding) -> Option<HeaderValue> {
    let tag = fields::trim(tag);
    let open = tag.strip_suffix(b"\"").filter(|open| open.contains(&b'"'))?;
    HeaderValue::from_bytes(&[open, coding.suffix().as_bytes(), b"\""].concat()).ok()
}

/// Whether `listed` is the tag of the form of `tag` in `coding`, weakly compared.
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

/// Whether `listed` is `tag` or that of one of its forms, weakly compared.
pub(crate) fn weak_match_any_form(listed: &[u8], tag: &[u8]) -> bool {
    crate::validators::weak_match(listed, tag)
        || Coding::ALL.into_iter().any(|coding| is_coded(listed, tag, coding))
}

/// Whether `listed` is `tag` or that of one of its forms, strongly compared.
pub(crate) fn strong_match_any_form(listed: &[u8], tag: &[u8]) -> bool {
    let strong = |tag: &[u8]| tag.starts_with(b"\"");
    crate::validators::strong_match(listed, tag)
        || (strong(listed) && strong(tag) && weak_match_any_form(listed, tag))
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Which form of the content tagged `tag` a client has that sent these lines of `If-None-Match`:
/// `negotiated` if that is among them or any will do, else the first that is.
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
