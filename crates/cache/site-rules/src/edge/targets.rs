//! The target of a redirect or a rewrite: text with captures (`$1` to `$9`), read from the configuration and filled
//! for a request.
//!
//! A target is an absolute URL of `http` or `https`, or a path. The client's query is appended, unless the target of a
//! redirect has a `?`. A path that would begin with `//` or `/\` begins with one slash, because a browser would read
//! another host there. A capture is inserted percent-encoded, so it cannot end the field, begin a query or a fragment,
//! or name another host.

use std::fmt::Write as _;

/// The maximum length of a target as written, in bytes.
const TARGET_BYTES_MAX: usize = 4 << 10;
/// The maximum number of captures in a target, which bounds the length of what is made of it.
const USES_MAX: usize = 9;
/// So many bytes of captures and of the client's query make no second allocation necessary.
const ADDED_BYTES: usize = 64;

/// A target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlTarget {
    parts: Vec<TargetPart>,
    is_path: bool,
    has_query: bool,
    /// From `#` on; empty if there is none.
    fragment: Box<str>,
    /// Its length as it was written, in bytes.
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TargetPart {
    Text(Box<str>),
    /// The number of a capture in the path, or in the query.
    InPath(usize),
    InQuery(usize),
}

impl UrlTarget {
    /// Reads a target; the error is a message for the operator.
    pub(crate) fn read(written: &str) -> Result<UrlTarget, String> {
        let wrong = |why: &str| Err(format!("{written:?}: {why}"));
        if written.len() > TARGET_BYTES_MAX {
            return Err(format!(
                "{} bytes are too many: {TARGET_BYTES_MAX} at most",
                written.len()
            ));
        }
        let is_fine = |byte: u8| {
            byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'`')
        };
        if !written.bytes().all(is_fine) {
            return wrong("write it percent-encoded, without spaces and backslashes");
        }
        let after_scheme =
            ["https://", "http://"].iter().find_map(|scheme| written.strip_prefix(scheme));
        let is_path = after_scheme.is_none();
        if written.starts_with("//") {
            return wrong(
                "browsers read a host after //: write one slash, or the URL with https://",
            );
        }
        if is_path && !written.starts_with('/') {
            return wrong("begin with /, http:// or https://");
        }
        if let Some(rest) = after_scheme {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if authority.contains('$') || authority.contains('@') || authority.is_empty() {
                return wrong("write the host in full, without captures and user names");
            }
        }
        let (before, fragment) = match written.find('#') {
            Some(at) => written.split_at(at),
            None => (written, ""),
        };
        if captures_in(fragment).next().is_some() {
            return wrong("there can be no captures after #");
        }
        if captures_in(before).count() > USES_MAX {
            return wrong("9 captures at most");
        }
        let question = before.find('?');
        let (mut parts, mut from) = (Vec::new(), 0);
        for (at, number) in captures_in(before) {
            if at > from {
                parts.push(TargetPart::Text(before[from..at].into()));
            }
            let is_in_query = question.is_some_and(|begin| at > begin);
            let part = if is_in_query { TargetPart::InQuery } else { TargetPart::InPath };
            parts.push(part(number));
            from = at + 2;
        }
        if from < before.len() {
            parts.push(TargetPart::Text(before[from..].into()));
        }
        let (has_query, fragment, bytes) = (question.is_some(), fragment.into(), written.len());
        Ok(UrlTarget { parts, is_path, has_query, fragment, bytes })
    }

    /// Whether it is a path without a part after `#`.
    pub(crate) fn is_plain_path(&self) -> bool {
        self.is_path && self.fragment.is_empty()
    }

    /// The highest number of its captures; 0 if it has none.
    pub(crate) fn captures(&self) -> usize {
        let numbers = self.parts.iter().map(|part| match part {
            TargetPart::Text(_) => 0,
            TargetPart::InPath(number) | TargetPart::InQuery(number) => *number,
        });
        numbers.max().unwrap_or(0)
    }

    /// The value of `Location`: with these captures, and with the client's query if the target has none.
    pub(crate) fn location(&self, captures: &[&[u8]], query: Option<&str>) -> String {
        let mut location = self.filled(captures);
        if let Some(query) = query.filter(|query| !self.has_query && !query.is_empty()) {
            location.push('?');
            push_sent(query, &mut location);
        }
        location.push_str(&self.fragment);
        location
    }

    /// Path and query with these captures, `$1` first. One that is not there is empty.
    pub(crate) fn filled(&self, captures: &[&[u8]]) -> String {
        let capture = |number: usize| captures.get(number - 1).copied().unwrap_or_default();
        let mut filled = String::with_capacity(self.bytes + ADDED_BYTES);
        for part in &self.parts {
            match part {
                TargetPart::Text(text) => filled.push_str(text),
                TargetPart::InPath(number) => {
                    push_encoded(capture(*number), b"&+;=", &mut filled);
                }
                TargetPart::InQuery(number) => {
                    push_encoded(capture(*number), b"", &mut filled);
                }
            }
        }
        if self.is_path { with_one_slash(filled) } else { filled }
    }
}

/// The value of `Location` for a target without captures, which [`UrlTarget::read`] has accepted: as
/// [`UrlTarget::location`] makes it, without reading the target again.
pub(crate) fn location_of_text(target: &str, query: Option<&str>) -> String {
    let fragment_at = target.find('#').unwrap_or(target.len());
    let (before, fragment) = target.split_at(fragment_at);
    let query = query.filter(|query| !query.is_empty() && !before.contains('?'));
    let added = query.map_or(0, |query| query.len() + 1);
    let mut location = String::with_capacity(target.len() + added);
    location.push_str(before);
    if let Some(query) = query {
        location.push('?');
        push_sent(query, &mut location);
    }
    location.push_str(fragment);
    location
}

/// The positions of captures, and their numbers.
fn captures_in(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.bytes().zip(text.bytes().skip(1)).enumerate().filter_map(|(at, two)| match two {
        (b'$', digit @ b'1'..=b'9') => Some((at, usize::from(digit - b'0'))),
        _ => None,
    })
}

/// Appends decoded bytes percent-encoded (RFC 3986 section 3.3). In a query, the characters that separate parameters
/// are encoded as well; in a path, `kept` has them.
fn push_encoded(bytes: &[u8], kept: &[u8], out: &mut String) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/:@!$'()*,".contains(byte) || kept.contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Appends a part of a URL as it was sent. Bytes that cannot stand in a URL are encoded.
pub(crate) fn push_sent(text: &str, out: &mut String) {
    let is_fine = |byte: u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'`' | b'#')
    };
    // As nearly all are.
    if text.bytes().all(is_fine) {
        return out.push_str(text);
    }
    for byte in text.bytes() {
        if is_fine(byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// The path with one slash at its beginning.
pub(crate) fn with_one_slash(path: String) -> String {
    let begins_with_one = match path.as_bytes() {
        [b'/'] => true,
        [b'/', second, ..] => !matches!(second, b'/' | b'\\'),
        _ => false,
    };
    if begins_with_one { path } else { format!("/{}", path.trim_start_matches(['/', '\\'])) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn location(target: &str, captures: &[&[u8]], query: Option<&str>) -> String {
        UrlTarget::read(target).unwrap().location(captures, query)
    }

    #[test]
    fn captures_are_encoded_and_queries_kept() {
        for (target, capture, query, right) in [
            ("/new/$1", &b"a/b"[..], None, "/new/a/b"),
            ("/new/$1", b"a b?c#d%", None, "/new/a%20b%3Fc%23d%25"),
            ("/new/$1", b"a\r\nX: y\0", None, "/new/a%0D%0AX:%20y%00"),
            ("/new/$1", "\u{e9}".as_bytes(), Some("x=1"), "/new/%C3%A9?x=1"),
            ("/?p=$1", b"1&q=2+3;", Some("x=1"), "/?p=1%26q%3D2%2B3%3B"),
            ("/a?", b"", Some("x=1"), "/a?"),
            ("/a#b", b"", Some("x=1"), "/a?x=1#b"),
            ("/a", b"", Some("x=\u{e9}\"\\"), "/a?x=%C3%A9%22%5C"),
            ("/a$$1$a", b"x", None, "/a$x$a"),
            ("https://b.test/$1", b"/x", None, "https://b.test//x"),
        ] {
            assert_eq!(location(target, &[capture], query), right, "{target}");
        }
    }

    #[test]
    fn a_target_with_a_capture_in_its_host_is_refused() {
        for wrong in [
            "//evil.test",
            "$1",
            "x",
            "ftp://a/",
            "javascript:x",
            "https://$1/",
            "https://a.test$1",
            "https://a$1.test/",
            "https://u@a.test/",
            "https:///x",
            "/a b",
            "/a\\b",
            "/a\r\nb",
            "/\u{e9}",
            "/a#$1",
            "/$1$1$1$1$1$1$1$1$1$1",
        ] {
            assert!(UrlTarget::read(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        /// A browser stays on the host, whatever was captured, and the field has one line.
        #[test]
        fn no_capture_leads_to_another_host(
            target in "/[/$]{0,2}(\\$1)?[/a@:]{0,3}(\\$2)?(\\?x=\\$1)?",
            captures in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'\\'), Just(b'@'), any::<u8>()], 0..6),
                2,
            ),
            query in "[a-z=&\u{e9}\\\\\"]{0,6}",
        ) {
            prop_assume!(!target.starts_with("//"));
            let captures: Vec<&[u8]> = captures.iter().map(|one| &**one).collect();
            let location = location(&target, &captures, Some(&query));
            prop_assert!(location.starts_with('/'), "{}", location);
            prop_assert!(!location[1..].starts_with(['/', '\\']), "{}", location);
            prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{}", location);
            // A capture in the query stays one parameter.
            if let Some((_, parameters)) = location.split_once('?').filter(|_| target.contains('?')) {
                prop_assert!(!parameters.contains(['&', '#']), "{}", location);
            }
        }

        #[test]
        fn a_text_without_captures_is_filled_alike(
            target in "(https://b.test|http://b.test)?/[a/$@:]{0,4}(\\?[a=]{0,2})?(#[a?]{0,2})?",
            query in prop::option::of("[a=&\u{e9}#?\\\\\"]{0,4}"),
        ) {
            let Ok(read) = UrlTarget::read(&target) else { return Ok(()) };
            let query = query.as_deref();
            prop_assert_eq!(location_of_text(&target, query), read.location(&[], query));
        }
    }
}
