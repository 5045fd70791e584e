//! URL normalisation for invalidation: one name for all spellings of a URL (RFC 3986 section 6.2.2).
//!
//! `/caf%c3%a9/`, `/caf%C3%A9/` and the bytes themselves are one URL, and so are `/%6eews/./4` and
//! `/news/4`. Pages keep separate cache keys, because an application may distinguish the spellings; a
//! change of the URL reaches all of them. The normalised form is hashed or compared, and never shown. Escapes of
//! delimiters stay, with capital digits: `%2F` is no slash.

use std::borrow::Cow;

/// The normalised form of a path with its query, if it has one. Allocates only if the URL is not
/// normalised.
pub fn normal_spelling(path_and_query: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(path_and_query) {
        return Cow::Borrowed(path_and_query);
    }
    let end = path_and_query.iter().position(|byte| *byte == b'?');
    let (path, query) = path_and_query.split_at(end.unwrap_or(path_and_query.len()));
    let mut name = without_dots(&decoded(path, b"/?#%"));
    name.extend_from_slice(&decoded(query, b"&=+;#%"));
    Cow::Owned(name)
}

/// Whether the URL contains no escape and no dot segment. This is so for nearly every URL.
fn is_plain(address: &[u8]) -> bool {
    !address.contains(&b'%') && !address.windows(2).any(|two| two == b"/.")
}

/// Decodes percent-escapes, except those of the bytes in `kept`.
fn decoded(text: &[u8], kept: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16).map(|digit| digit as u8);
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(at) {
        let escaped = (*byte == b'%').then(|| digit(at + 1).zip(digit(at + 2))).flatten();
        match escaped.map(|(high, low)| high << 4 | low) {
            Some(meant) if kept.contains(&meant) => {
                out.extend(text[at..at + 3].iter().map(u8::to_ascii_uppercase));
            }
            Some(meant) => out.push(meant),
            None => out.push(*byte),
        }
        at += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

/// Removes the segments `.` and `..` from a path (RFC 3986 section 5.2.4).
fn without_dots(path: &[u8]) -> Vec<u8> {
    if !path.windows(2).any(|two| two == b"/.") {
        return path.to_vec();
    }
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut all = path.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = all.next() {
        let is_last = all.peek().is_none();
        match segment {
            b"." => {}
            b".." if segments.len() > 1 => drop(segments.pop()),
            b".." => {}
            other => {
                segments.push(other);
                continue;
            }
        }
        if is_last {
            segments.push(b"");
        }
    }
    segments.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(all: &[&str]) {
        let names: Vec<_> = all.iter().map(|address| normal_spelling(address.as_bytes())).collect();
        assert!(names.windows(2).all(|two| two[0] == two[1]), "{all:?}");
    }

    #[test]
    fn one_address_has_one_name() {
        one(&["/caf%C3%A9/", "/caf%c3%a9/", "/café/"]);
        one(&["/q?a=%C3%A9", "/q?a=%c3%a9", "/q?a=é"]);
        one(&["/a%7Eb", "/a~b", "/a%7eb"]);
        one(&["/news/4/", "/%6eews/4/", "/./news/4/", "/news/x/../4/", "/../news/4/", "/news/4/."]);
        one(&["/a%2fb", "/a%2Fb"]);
        one(&["/", "/.", "/..", "/a/.."]);
    }

    #[test]
    fn different_addresses_have_different_names() {
        for (a, b) in [
            ("/a%2Fb", "/a/b"),
            ("/a%3Fb", "/a?b"),
            ("/a?b=1%262", "/a?b=1&2"),
            ("/a%25", "/a%"),
            ("/a%2525", "/a%25"),
            ("/a/", "/a"),
            ("/a?/./b", "/a?/b"),
            ("/.a", "/a"),
            ("/...", "/"),
        ] {
            assert_ne!(normal_spelling(a.as_bytes()), normal_spelling(b.as_bytes()), "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_address_is_its_own_name(address in "/[a-z0-9/]{0,20}(\\?[a-z0-9=&+]{0,10})?") {
            prop_assert_eq!(&*normal_spelling(address.as_bytes()), address.as_bytes());
        }

        #[test]
        fn any_bytes_have_one(address in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = normal_spelling(&address);
            let escaped: Vec<u8> = address.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect();
            let capital: Vec<u8> = address.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect();
            prop_assert_eq!(normal_spelling(&escaped), normal_spelling(&capital));
        }
    }
}
