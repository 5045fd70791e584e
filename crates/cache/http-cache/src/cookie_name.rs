//! A cookie's name as applications read it: the one place where names are folded.
//!
//! | in the name | PHP reads | so does |
//! |---|---|---|
//! | `.`, a space | `_` | a space before `=` as well |
//! | `[` with a `]` behind it | a member of the array whose name stands before it | |
//! | `[` without | `_` | |
//! | `%5f`, `+` | the byte that is meant, a space; then as above | PHP before 7.4.11, Rack before 2.2.3 |
//!
//! Others read a name as it is written. So a name may be several cookies, and counts as each of them: a
//! session under another spelling would otherwise be nobody's cookie here, and a session there.
//! What is compared with a name, a pattern of a list, is folded as well ([`folded`]): then the written
//! form need not be looked at for itself.
//!
//! Invariants: a name without any of these bytes, as nearly all are, has one reading, which is the name
//! itself, and costs nothing; no other allocates up to [`SHORT_BYTES`]; a name has at most five readings.

use crate::fields::trim;

/// A longer name of more than one reading is read in memory of its own, in bytes.
const SHORT_BYTES: usize = 96;

/// A cookie's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieName<'a> {
    /// Up to the `=`, with the white space before it.
    whole: &'a [u8],
    is_plain: bool,
}

/// The bytes by which a name may be read in more than one way.
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
    /// The name of a cookie that is written so.
    pub fn of(name: &'a [u8]) -> CookieName<'a> {
        let whole = name.trim_ascii_start();
        CookieName { whole, is_plain: !whole.iter().any(|byte| ODD[usize::from(*byte)]) }
    }

    /// The name of a pair, and what stands behind its `=`, where it has one: without, all is the name.
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
    pub fn written(&self) -> &'a [u8] {
        trim(self.whole)
    }

    /// The name with the white space behind it, which PHP takes for a part of it.
    pub fn whole(&self) -> &'a [u8] {
        self.whole
    }

    /// Whether the name is read in one way only.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether one of the readings is what is looked for. `test` gets each, folded, until it says so.
    pub fn any(&self, mut test: impl FnMut(&[u8]) -> bool) -> bool {
        match self.is_plain {
            true => test(self.whole),
            false => self.any_of_several(&mut test),
        }
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

    /// Whether two names may be one cookie, or members of one array.
    pub fn is_same(&self, other: &CookieName<'_>) -> bool {
        self.any(|one| other.any(|other| one == other))
    }

    /// The readings, each once.
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

/// A name, or a pattern of names, as it is compared with readings.
pub fn folded(name: &str) -> String {
    name.replace(['.', ' ', '['], "_")
}

/// As a name, and as the array that it may be a member of.
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

/// Escapes undone, as in a query; to the first zero byte, where PHP ends a name.
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
        // PHP begins a name at its first byte that is no space.
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
    fn the_same_to_somebody() {
        let same = |one: &str, other: &str| {
            CookieName::of(one.as_bytes()).is_same(&CookieName::of(other.as_bytes()))
        };
        assert!(same("a.b", "a_b") && same("a[b", "a b") && same("a.b[c]", "a_b"));
        assert!(same("a[x]", "a[y]") && same("a%2eb", "a_b"));
        assert!(!same("ab", "aB") && !same("ab[c]", "a") && !same("a_b", "a"));
    }
}
