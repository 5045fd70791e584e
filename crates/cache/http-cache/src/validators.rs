//! Entity tags: parsing, comparison, and creation (RFC 9110 §8.8.3, §13.1).
//!
//! Invariants: an origin's tag is stored and returned byte for byte, even if it is malformed. PHP
//! applications compare If-None-Match with the exact text that they sent. The cache's own tag is never sent
//! to the origin. A comparison allocates nothing.

use crate::stored::allocated;
use http::HeaderMap;
use http::header::{ETAG, HeaderValue};
use http_fields::fields::trim;
use std::fmt;
use std::ops::Deref;

/// The entity tag of a stored response, stored inline if it has a usual length.
#[derive(Clone, PartialEq, Eq)]
pub struct EntityTag(Place);

/// The creator of an entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagSource {
    /// The origin.
    Origins,
    /// This cache, from a hash of the content.
    Own,
}

/// The maximum length in bytes of a tag that is stored inline.
const HERE_BYTES: usize = 21;
/// The cache's own tags: this prefix, the hash in hexadecimal digits, and a quote.
const OWN_START: &[u8] = b"\"pw-";
const OWN_DIGITS: usize = 32;
const OWN_BYTES: usize = OWN_START.len() + OWN_DIGITS + 1;

#[derive(Clone, PartialEq, Eq)]
enum Place {
    /// No tag.
    Nowhere,
    Here {
        source: EtagSource,
        length: u8,
        bytes: [u8; HERE_BYTES],
    },
    /// The hash of a tag in the form of the cache's own tags, which has exactly one spelling.
    Hash {
        source: EtagSource,
        hash: [u8; OWN_DIGITS / 2],
    },
    Apart {
        source: EtagSource,
        bytes: Box<[u8]>,
    },
}

/// The bytes of an entity tag.
#[derive(Clone, Copy, Debug)]
pub enum TagText<'a> {
    /// Borrowed from the stored tag.
    Kept(&'a [u8]),
    /// Generated from the stored hash.
    Own([u8; OWN_BYTES]),
}

impl Deref for TagText<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            TagText::Kept(bytes) => bytes,
            TagText::Own(bytes) => bytes,
        }
    }
}

impl EntityTag {
    /// The value for a response without an entity tag.
    pub const NONE: EntityTag = EntityTag(Place::Nowhere);

    /// An entity tag from the bytes of a field value.
    pub fn of(source: EtagSource, tag: &[u8]) -> EntityTag {
        if let Some(hash) = own_hash(tag) {
            return EntityTag(Place::Hash { source, hash });
        }
        let mut bytes = [0; HERE_BYTES];
        EntityTag(match bytes.get_mut(..tag.len()) {
            Some(here) => {
                here.copy_from_slice(tag);
                Place::Here { source, length: tag.len() as u8, bytes }
            }
            None => Place::Apart { source, bytes: tag.into() },
        })
    }

    /// The origin's tag, if it sent one; the first of several.
    pub(crate) fn of_origin(headers: &HeaderMap) -> EntityTag {
        match headers.get(ETAG) {
            Some(value) if !trim(value.as_bytes()).is_empty() => {
                EntityTag::of(EtagSource::Origins, value.as_bytes())
            }
            _ => EntityTag::NONE,
        }
    }

    /// The creator of the tag, if there is one.
    pub fn source(&self) -> Option<EtagSource> {
        match self.0 {
            Place::Nowhere => None,
            Place::Here { source, .. }
            | Place::Hash { source, .. }
            | Place::Apart { source, .. } => Some(source),
        }
    }

    /// The bytes as received, if there is a tag.
    pub fn as_it_came(&self) -> Option<TagText<'_>> {
        Some(match &self.0 {
            Place::Nowhere => return None,
            Place::Here { length, bytes, .. } => TagText::Kept(&bytes[..usize::from(*length)]),
            Place::Hash { hash, .. } => TagText::Own(own_text(hash)),
            Place::Apart { bytes, .. } => TagText::Kept(bytes),
        })
    }

    /// The bytes as they are sent, if there is a tag.
    pub fn text(&self) -> Option<TagText<'_>> {
        Some(match self.as_it_came()? {
            TagText::Kept(bytes) => TagText::Kept(trim(bytes)),
            own @ TagText::Own(_) => own,
        })
    }

    /// The tag as a field value, if there is one and `source` created it.
    pub(crate) fn value_if(&self, source: EtagSource) -> Option<HeaderValue> {
        let tag = self.as_it_came().filter(|_| self.source() == Some(source))?;
        Some(HeaderValue::from_bytes(&tag).expect("what was a value is one"))
    }

    /// The heap bytes of the tag.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Place::Apart { bytes, .. } => allocated(bytes.len()),
            _ => 0,
        }
    }
}

impl fmt::Debug for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.as_it_came().map(|tag| String::from_utf8_lossy(&tag).into_owned());
        f.debug_tuple("EntityTag").field(&self.source()).field(&text).finish()
    }
}

/// An entity tag for content without one, made from a hash of the content. With a stable hash function, the
/// same content gets the same tag on every node and after a restart.
///
/// The tag is a strong validator (RFC 9110 §8.8.1): it changes whenever the bytes do, so it is suitable for
/// If-Range. Each content coding of the content needs a tag of its own.
pub fn own_etag(content_hash: u128) -> HeaderValue {
    // Formatted by hand: the standard formatter takes ten times as long.
    let digit = |at: usize| b"0123456789abcdef"[(content_hash >> (4 * at)) as usize & 15];
    let mut tag = Vec::with_capacity(OWN_BYTES);
    tag.extend_from_slice(OWN_START);
    tag.extend((0..OWN_DIGITS).rev().map(digit));
    tag.push(b'"');
    HeaderValue::try_from(tag).expect("hexadecimal digits are visible ASCII")
}

/// The hash in a tag that has the form of [`own_etag`].
fn own_hash(tag: &[u8]) -> Option<[u8; OWN_DIGITS / 2]> {
    let digits = tag.strip_prefix(OWN_START)?.strip_suffix(b"\"")?;
    if digits.len() != OWN_DIGITS {
        return None;
    }
    let mut hash = [0; OWN_DIGITS / 2];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: &u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = value(&pair[0])? << 4 | value(&pair[1])?;
    }
    Some(hash)
}

fn own_text(hash: &[u8; OWN_DIGITS / 2]) -> [u8; OWN_BYTES] {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
    let mut text = [b'"'; OWN_BYTES];
    text[..OWN_START.len()].copy_from_slice(OWN_START);
    for (pair, byte) in text[OWN_START.len()..].chunks_exact_mut(2).zip(hash) {
        (pair[0], pair[1]) = (digit(byte >> 4), digit(byte & 15));
    }
    text
}

/// Weak comparison (RFC 9110 §8.8.3.2): the opaque tags are equal.
pub fn weak_match(one: &[u8], other: &[u8]) -> bool {
    opaque(one) == opaque(other)
}

/// Strong comparison (RFC 9110 §8.8.3.2): the tags are equal, and neither is weak. A malformed tag (without
/// quotes) is never strong.
pub fn strong_match(one: &[u8], other: &[u8]) -> bool {
    one == other && one.len() >= 2 && one.starts_with(b"\"") && one.ends_with(b"\"")
}

/// Whether any line of If-None-Match or If-Match matches: `*`, or a tag for which `same` returns true.
pub(crate) fn any_match(
    lines: &[&[u8]],
    tag: Option<&[u8]>,
    same: fn(&[u8], &[u8]) -> bool,
) -> bool {
    lines.iter().any(|line| {
        *line == b"*" || tag.is_some_and(|tag| Tags { rest: line }.any(|listed| same(listed, tag)))
    })
}

/// The tags in a line of If-None-Match or If-Match.
pub(crate) fn tags_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    Tags { rest: line }
}

/// The opaque tag of an entity tag: without the mark of a weak one (RFC 9110 §8.8.3).
pub(crate) fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The tags of a list. Unlike a quoted string, an entity tag has no escapes (RFC 9110 §8.8.3), so such
/// lists have their own parser.
struct Tags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?;
        let text = &self.rest[start..];
        let open = if text.starts_with(b"W/") { 2 } else { 0 };
        let closed = (text.get(open) == Some(&b'"'))
            .then(|| text[open + 1..].iter().position(|byte| *byte == b'"'))
            .flatten();
        let end = match closed {
            Some(length) => open + 1 + length + 1,
            None => text.iter().position(|byte| *byte == b',').unwrap_or(text.len()),
        };
        self.rest = &text[end..];
        Some(trim(&text[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_rfc_9110() {
        // RFC 9110 §8.8.3.2.
        for (one, other, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
            ("1", "1", false, true),
            ("1", "\"1\"", false, false),
            ("w/\"1\"", "\"1\"", false, false),
        ] {
            assert_eq!(strong_match(one.as_bytes(), other.as_bytes()), strong, "{one} {other}");
            assert_eq!(weak_match(one.as_bytes(), other.as_bytes()), weak, "{one} {other}");
        }
    }

    #[test]
    fn lists_of_tags() {
        let tags = |line: &'static str| -> Vec<&[u8]> { Tags { rest: line.as_bytes() }.collect() };
        assert_eq!(
            tags("\"a\", W/\"b,c\" ,, d ,\"e\\\""),
            [&b"\"a\""[..], b"W/\"b,c\"", b"d", b"\"e\\\""]
        );
        assert_eq!(tags("\"a, b"), [&b"\"a"[..], b"b"]);
        assert_eq!(tags(" , "), Vec::<&[u8]>::new());
    }

    #[test]
    fn several_lines_and_the_star() {
        let tag = Some(&b"\"b\""[..]);
        assert!(any_match(&[b"\"a\"", b"\"c\", W/\"b\""], tag, weak_match));
        assert!(!any_match(&[b"\"a\"", b"\"c\", W/\"b\""], tag, strong_match));
        assert!(any_match(&[b"*"], None, weak_match));
        assert!(!any_match(&[b"\"a\""], None, weak_match));
    }

    #[test]
    fn own_tags_are_strong_and_tell_contents_apart() {
        let (one, other) = (own_etag(1), own_etag(u128::MAX));
        assert!(strong_match(one.as_bytes(), one.as_bytes()));
        assert!(!weak_match(one.as_bytes(), other.as_bytes()));
    }

    #[test]
    fn tags_are_kept_as_they_came() {
        let own = own_etag(0x0123_4567_89ab_cdef_0000_ffff_0a0b_0c0d);
        let long = format!("\"{}\"", "x".repeat(60));
        let upper = format!("\"pw-{}\"", "A".repeat(32));
        for tag in [
            own.as_bytes(),
            b"",
            b"unquoted",
            b"\"pw-\"",
            b"\"0123456789abcdef0123\"",
            b"\"0123456789abcdef01234\"",
            long.as_bytes(),
            upper.as_bytes(),
        ] {
            for source in [EtagSource::Origins, EtagSource::Own] {
                let kept = EntityTag::of(source, tag);
                assert_eq!(
                    (kept.as_it_came().as_deref(), kept.source()),
                    (Some(tag), Some(source))
                );
            }
        }
        assert_eq!((EntityTag::NONE.text().as_deref(), EntityTag::NONE.source()), (None, None));
        assert_eq!(size_of::<EntityTag>(), 24);
    }
}
