//! Entity tags: reading, comparing, and making our own (RFC 9110 §8.8.3, §13.1).
//!
//! Invariants: an origin's tag is kept and sent back byte for byte, also where it is not well formed
//! (PHP programs compare If-None-Match with what they sent, quotes or not); our own tag never goes to
//! the origin. Comparing allocates nothing.

use crate::fields::trim;
use crate::stored::allocated;
use http::HeaderMap;
use http::header::{ETAG, HeaderValue};
use std::fmt;

/// The entity tag of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityTag {
    /// It has none.
    None,
    /// The origin's.
    Origins(TagBytes),
    /// Ours, made from the content.
    Own(TagBytes),
}

/// The bytes of an entity tag as they came, among the rest of the stored response where they are as few
/// as they are as a rule.
#[derive(Clone)]
pub struct TagBytes(Place);

/// What fits among the rest: ours do, and hashes in quotes.
const HERE_BYTES: usize = 38;

#[derive(Clone)]
enum Place {
    Here { length: u8, bytes: [u8; HERE_BYTES] },
    Apart(Box<[u8]>),
}

impl TagBytes {
    /// A tag of these bytes, which are those of a field's value.
    pub fn of(tag: &[u8]) -> TagBytes {
        let mut bytes = [0; HERE_BYTES];
        match bytes.get_mut(..tag.len()) {
            Some(here) => {
                here.copy_from_slice(tag);
                TagBytes(Place::Here { length: tag.len() as u8, bytes })
            }
            None => TagBytes(Place::Apart(tag.into())),
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Place::Here { length, bytes } => &bytes[..usize::from(*length)],
            Place::Apart(bytes) => bytes,
        }
    }

    /// The value of a field with this tag.
    pub(crate) fn to_value(&self) -> HeaderValue {
        HeaderValue::from_bytes(self.as_bytes()).expect("what was a value is one")
    }
}

impl PartialEq for TagBytes {
    fn eq(&self, other: &TagBytes) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for TagBytes {}

impl fmt::Debug for TagBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(self.as_bytes()).fmt(f)
    }
}

impl EntityTag {
    /// The origin's tag, if it sent one; of several the first.
    pub(crate) fn of_origin(headers: &HeaderMap) -> EntityTag {
        match headers.get(ETAG) {
            Some(value) if !trim(value.as_bytes()).is_empty() => {
                EntityTag::Origins(TagBytes::of(value.as_bytes()))
            }
            _ => EntityTag::None,
        }
    }

    /// The tag as it is sent, if there is one.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            EntityTag::None => None,
            EntityTag::Origins(value) | EntityTag::Own(value) => Some(trim(value.as_bytes())),
        }
    }

    /// What it takes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            EntityTag::Origins(TagBytes(Place::Apart(bytes)))
            | EntityTag::Own(TagBytes(Place::Apart(bytes))) => allocated(bytes.len()),
            _ => 0,
        }
    }
}

/// The tag for content that came without one, from a hash of the content: the same for the same
/// content on every node and after a restart, if the hash is.
///
/// It is a strong validator (RFC 9110 §8.8.1): made from the bytes themselves it changes whenever
/// they do, so that it serves If-Range as well. A coding of the content needs a tag of its own.
pub fn own_etag(content_hash: u128) -> HeaderValue {
    let tag = format!("\"pw-{content_hash:032x}\"");
    HeaderValue::try_from(tag).expect("hexadecimal digits are visible ASCII")
}

/// Weak comparison (RFC 9110 §8.8.3.2): the opaque tags are the same.
pub fn weak_match(one: &[u8], other: &[u8]) -> bool {
    opaque(one) == opaque(other)
}

/// Strong comparison (RFC 9110 §8.8.3.2): the same, and neither is weak. What is not an entity tag
/// at all (no quotes) is never strong.
pub fn strong_match(one: &[u8], other: &[u8]) -> bool {
    one == other && one.len() >= 2 && one.starts_with(b"\"") && one.ends_with(b"\"")
}

/// Whether any line of If-None-Match or If-Match matches: `*`, or a tag for which `same` holds.
pub(crate) fn any_match(
    lines: &[&[u8]],
    tag: Option<&[u8]>,
    same: fn(&[u8], &[u8]) -> bool,
) -> bool {
    lines.iter().any(|line| {
        *line == b"*" || tag.is_some_and(|tag| Tags { rest: line }.any(|listed| same(listed, tag)))
    })
}

/// The tags that a line of If-None-Match or If-Match lists.
pub(crate) fn tags_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    Tags { rest: line }
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The tags of a list. Unlike a quoted string an entity tag knows no escapes (RFC 9110 §8.8.3), so
/// lists of them are split by their own rule.
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
}
