//! Cookie names as applications read them: the only place where names are folded.
//!
//! | in the name | PHP reads | exceptions |
//! |---|---|---|
//! | `.`, a space | `_` | also a space before `=` |
//! | `[` with a later `]` | a member of the array named before the `[` | |
//! | `[` without `]` | `_` | |
//! | `%5f`, `+` | the decoded byte, a space; then as above | only PHP before 7.4.11, Rack before 2.2.3 |
//!
//! Other applications read a name as it is written. One name may therefore be several cookies and counts as
//! each of them. Otherwise an unusual spelling would hide a session cookie from the cache, but not from the
//! application. A name to compare with, or a pattern of a list, is folded as well ([`folded`]), so the
//! written form needs no check.
//!
//! Invariants: a name without these bytes, as nearly all are, has one reading, the name itself, at no cost.
//! Other names do not allocate up to [`SHORT_BYTES`]. A name has at most five readings.

use crate::fields::trim;

/// The maximum length, in bytes, of a name with several readings that is read without an allocation.
const SHORT_BYTES: usize = 96;

/// The name of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieName<'a> {
    /// Everything up to the `=`, with the white space before it.
    whole: &'a [u8],
    is_plain: bool,
}

/// The bytes that allow several readings of a name.
const ODD: [bool; 256] = {
    let mut odd = [false; 256];
    let (bytes, mut at) = (b". [%+\t", 0);
    while at < bytes.len() {
        odd[bytes[at] as usize] = true;
        at += 1;
    }
    odd
};

impl<'a> CookieName<'a> {
    /// The name that is written like this.
    #[inline]
    pub fn of(name: &'a [u8]) -> CookieName<'a> {
        let whole = name.trim_ascii_start();
        CookieName { whole, is_plain: !whole.iter().any(|byte| ODD[usize::from(*byte)]) }
    }

    /// The name of a pair and the value after its `=`. Without a `=`, all of it is the name.
    #[inline]
    pub fn of_pair(pair: &'a [u8]) -> (CookieName<'a>, Option<&'a [u8]>) {
        let mut is_plain = true;
        for (at, byte) in pair.iter().enumerate() {
            if *byte == b'=' {
                let name = CookieName { whole: &pair[..at], is_plain };
                return (name, Some(&pair[at + 1..]));
            }
            is_plain &= !ODD[usize::from(*byte)];
        }
        (CookieName { whole: pair, is_plain }, None)
    }

    /// The name without the white space around it.
    #[inline]
    pub fn written(&self) -> &'a [u8] {
        trim(self.whole)
    }

    /// The name with the white space after it, which PHP includes in the name.
    #[inline]
    pub fn whole(&self) -> &'a [u8] {
        self.whole
    }

    /// Whether the name has only one reading.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether `test` accepts one of the readings. It is called with each reading, folded, until it returns
    /// true.
    #[inline]
    pub fn any(&self, mut test: impl FnMut(&[u8]) -> bool) -> bool {
        if self.is_plain { test(self.whole) } else { self.any_of_several(&mut test) }
    }

    #[cold]
    fn any_of_several(&self, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let written = self.written();
        let is_escaped = written.iter().any(|byte| matches!(byte, b'%' | b'+'));
        let also_decoded = |test: &mut dyn FnMut(&[u8]) -> bool| {
            let decoded = decoded(self.whole);
            in_both_ways(&decoded, test)
        };
        in_both_ways(written, test)
            || (written.len() < self.whole.len() && with_folded(self.whole, test))
            || (is_escaped && also_decoded(test))
    }

    /// Whether two names may be the same cookie, or members of the same array.
    #[inline]
    pub fn is_same(&self, other: &CookieName<'_>) -> bool {
        self.any(|one| other.any(|other| one == other))
    }

    /// The readings, without duplicates.
    pub fn readings(&self) -> Vec<Vec<u8>> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        self.any(|reading| {
            if !all.iter().any(|known| known == reading) {
                all.push(reading.to_vec());
            }
            false
        });
        all
    }
}

/// A name, or a pattern of names, in the form that is compared with readings.
pub fn folded(name: &str) -> String {
    name.replace(['.', ' ', '['], "_")
}

/// Tests a name as it is, and the name of the array to which it may belong.
fn in_both_ways(name: &[u8], test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    let array = name.iter().position(|byte| *byte == b'[').map(|bracket| &name[..bracket]);
    with_folded(name, test) || array.is_some_and(|array| with_folded(array, test))
}

fn with_folded(name: &[u8], test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    let fold = |byte: u8| match byte {
        b'.' | b' ' | b'[' => b'_',
        byte => byte,
    };
    let mut short = [0; SHORT_BYTES];
    match short.get_mut(..name.len()) {
        Some(short) => {
            short.iter_mut().zip(name).for_each(|(to, from)| *to = fold(*from));
            test(short)
        }
        None => test(&name.iter().map(|byte| fold(*byte)).collect::<Vec<u8>>()),
    }
}

/// Decodes percent-escapes and `+` as in a query, up to the first zero byte, where PHP ends a name.
fn decoded(name: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| (*byte? as char).to_digit(16).map(|digit| digit as u8);
    let mut decoded = Vec::with_capacity(name.len());
    let mut at = 0;
    while let Some(byte) = name.get(at) {
        let escaped = digit(name.get(at + 1)).zip(digit(name.get(at + 2)));
        let (byte, length) = match (byte, escaped) {
            (b'%', Some((high, low))) => (high << 4 | low, 3),
            (b'+', _) => (b' ', 1),
            (byte, _) => (*byte, 1),
        };
        if byte == 0 {
            break;
        }
        // PHP skips leading spaces of a name.
        if byte != b' ' || !decoded.is_empty() {
            decoded.push(byte);
        }
        at += length;
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(name: &str) -> Vec<String> {
        let text = |reading: Vec<u8>| String::from_utf8_lossy(&reading).into_owned();
        CookieName::of(name.as_bytes()).readings().into_iter().map(text).collect()
    }

    #[test]
    fn every_way_of_reading_a_name() {
        for (name, all) in [
            ("my_app", &["my_app"][..]),
            ("my-app]", &["my-app]"]),
            ("my.app", &["my_app"]),
            ("my app", &["my_app"]),
            ("my[app", &["my_app", "my"]),
            ("my.app[x.y]", &["my_app_x_y]", "my_app"]),
            ("my_app[", &["my_app_", "my_app"]),
            ("my ", &["my", "my_"]),
            (" my", &["my"]),
            ("[x]", &["_x]", ""]),
            ("my%5fapp", &["my%5fapp", "my_app"]),
            ("%20my+app%00x", &["%20my+app%00x", "my_app"]),
            ("my%5Bapp%5d", &["my%5Bapp%5d", "my_app]", "my"]),
            ("100%", &["100%"]),
        ] {
            assert_eq!(readings(name), all, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_is_read_like_a_short_one() {
        let name = format!("{}.b[c]", "a".repeat(SHORT_BYTES));
        let array = format!("{}_b", "a".repeat(SHORT_BYTES));
        assert_eq!(readings(&name), [format!("{array}_c]"), array]);
    }

    #[test]
    fn pairs_and_names_are_read_alike() {
        for (pair, name, value) in [
            ("a=1", "a", Some("1")),
            ("a.b =x=y", "a.b ", Some("x=y")),
            ("a[b", "a[b", None),
            ("=z", "", Some("z")),
        ] {
            let (read, behind) = CookieName::of_pair(pair.as_bytes());
            assert_eq!((read, behind), (CookieName::of(name.as_bytes()), value.map(str::as_bytes)));
        }
    }

    #[test]
    fn names_that_may_be_the_same_cookie() {
        let same = |one: &str, other: &str| {
            CookieName::of(one.as_bytes()).is_same(&CookieName::of(other.as_bytes()))
        };
        assert!(same("a.b", "a_b") && same("a[b", "a b") && same("a.b[c]", "a_b"));
        assert!(same("a[x]", "a[y]") && same("a%2eb", "a_b"));
        assert!(!same("ab", "aB") && !same("ab[c]", "a") && !same("a_b", "a"));
    }
}
