//! Header fields: reading lines, splitting lists, and removing fields of one connection only (RFC 9110
//! §5.3, §5.6.1, §7.6.1; RFC 9111 §3.1).
//!
//! Invariant: names are compared without regard to case; values are bytes and need not be text. Nothing
//! here allocates, except to read the names that `Connection` lists.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The header section of a message, in any representation.
pub trait Fields {
    /// Calls `visit` with the value of each line of the field `name` (in lower case), in order.
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8]));
}

impl Fields for HeaderMap {
    #[inline]
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        for value in self.get_all(name) {
            visit(value.as_bytes());
        }
    }
}

impl<F: Fields> Fields for &F {
    #[inline]
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        F::values(self, name, visit);
    }
}

impl Fields for &[(&[u8], &[u8])] {
    #[inline]
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        for (line_name, value) in self.iter() {
            if line_name.eq_ignore_ascii_case(name.as_bytes()) {
                visit(value);
            }
        }
    }
}

/// Fields of one connection, or of one hop's caches, which are never stored (RFC 9111 §3.1, RFC 9110
/// §7.6.1, §11.7; `Warning` is obsolete, RFC 9111 §5.5).
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "warning",
];

/// Removes the fields of one connection: the known ones, and those that `Connection` lists (RFC 9110
/// §7.6.1). For forwarded requests as well as for responses.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let hop = OneHop::of(headers);
    // A message has few of these fields, so one pass over its names is faster than a search for each of
    // them.
    let all: Vec<HeaderName> = headers.keys().filter(|name| hop.has(name)).cloned().collect();
    for name in &all {
        headers.remove(name);
    }
}

/// The fields of a message that belong to one connection: the known ones, and those that `Connection` lists
/// (RFC 9110 §7.6.1). Used to copy the other fields.
pub struct OneHop {
    listed: Vec<HeaderName>,
}

impl OneHop {
    /// The hop-by-hop fields of a message with these headers.
    pub fn of(headers: &HeaderMap) -> OneHop {
        let mut listed = Vec::new();
        for line in headers.get_all(http::header::CONNECTION) {
            listed.extend(members(line.as_bytes()).filter_map(|m| HeaderName::from_bytes(m).ok()));
        }
        OneHop { listed }
    }

    /// Whether this field is hop-by-hop.
    #[inline]
    pub fn has(&self, name: &HeaderName) -> bool {
        HOP_BY_HOP.contains(&name.as_str()) || self.listed.contains(name)
    }
}

/// Whether `Connection` lists the field of this name (in lower case).
#[inline]
pub fn is_listed(all: &dyn Fields, name: &str) -> bool {
    let mut is_listed = false;
    all.values("connection", &mut |line| {
        is_listed |= members(line).any(|member| member.eq_ignore_ascii_case(name.as_bytes()));
    });
    is_listed
}

/// In a message with at most this many fields, the names are compared one by one. This is faster than
/// hashing a name that is usually absent.
const FEW: usize = 16;

/// Whether a field with this name (in lower case) is present.
#[inline]
pub fn is_there(headers: &HeaderMap, name: &str) -> bool {
    if headers.keys_len() <= FEW {
        headers.keys().any(|other| other.as_str() == name)
    } else {
        headers.contains_key(name)
    }
}

/// The lines of the field `name` (in lower case), usually none.
#[inline]
pub fn lines<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h HeaderValue> {
    is_there(headers, name).then(|| headers.get_all(name)).into_iter().flatten()
}

/// The first line of the field `name`, without surrounding white space.
#[inline]
pub fn first<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    is_there(headers, name).then(|| headers.get(name)).flatten().map(|value| trim(value.as_bytes()))
}

/// The members of a comma-separated list (RFC 9110 §5.6.1), without empty ones. A comma in a quoted string
/// does not separate. After a quote that is never closed, quotes are ordinary characters, so that a
/// malformed extension cannot hide a later `no-store`. The time is linear.
#[inline]
pub fn members(line: &[u8]) -> Members<'_> {
    Members { rest: line, quotes: Quotes::Count }
}

/// The iterator that [`members`] returns.
pub struct Members<'a> {
    rest: &'a [u8],
    quotes: Quotes,
}

#[derive(PartialEq, Eq)]
enum Quotes {
    Count,
    Ignore,
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = self.end();
            let member = trim(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    }
}

impl Members<'_> {
    /// The end of the first member: a comma outside quotes, or the end of the line.
    #[inline]
    fn end(&mut self) -> usize {
        let mut at = 0;
        while let Some(byte) = self.rest.get(at) {
            match byte {
                b',' => return at,
                b'"' if self.quotes == Quotes::Count => match closing_quote(self.rest, at) {
                    Some(close) => at = close + 1,
                    None => self.quotes = Quotes::Ignore,
                },
                _ => at += 1,
            }
        }
        self.rest.len()
    }
}

/// Whether a quoted string in the line is never closed, so that its intended content is unknown (RFC 9110
/// §5.6.4).
#[inline]
pub fn has_open_quote(line: &[u8]) -> bool {
    let mut members = members(line);
    members.by_ref().for_each(drop);
    members.quotes == Quotes::Ignore
}

/// The position at which the quoted string that opens at `open` closes, if it does (RFC 9110 §5.6.4).
#[inline]
pub fn closing_quote(line: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    while at < line.len() {
        match line[at] {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// The value without surrounding white space (space and tab, RFC 9110 §5.6.3).
#[inline]
pub fn trim(value: &[u8]) -> &[u8] {
    let start = value.iter().position(|b| !is_space(*b)).unwrap_or(value.len());
    let end = value.iter().rposition(|b| !is_space(*b)).map_or(start, |last| last + 1);
    &value[start..end]
}

/// Whether a byte is white space by RFC 9110 §5.6.3.
#[inline]
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Parses decimal digits, limited to `ceiling`; `None` if the text is empty or contains another character.
#[inline]
pub fn digits(text: &[u8], ceiling: u64) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0')).min(ceiling)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(line: &str) -> Vec<String> {
        members(line.as_bytes()).map(|m| String::from_utf8_lossy(m).into_owned()).collect()
    }

    #[test]
    fn lists_split_at_commas_outside_quotes() {
        // RFC 9110 §5.6.1.2: empty members are ignored.
        assert_eq!(list(" a ,, b=\"x, \\\"y\" ,\tc,"), ["a", "b=\"x, \\\"y\"", "c"]);
    }

    #[test]
    fn a_quote_that_never_closes_hides_nothing() {
        assert_eq!(list("a=\"b, no-store"), ["a=\"b", "no-store"]);
        assert_eq!(list("a=\"b\\"), ["a=\"b\\"]);
        assert_eq!(list("a=\"b\\\", c=\"d, e"), ["a=\"b\\\", c=\"d", "e"]);
        let hostile = "\"\\".repeat(500_000); // Quadratic time would take minutes.
        assert_eq!(members(hostile.as_bytes()).count(), 1);
    }

    #[test]
    fn a_quote_that_never_closes_is_noticed() {
        for line in ["a=\"b", "a=\"b\", c=\"d", "a=\"b\\\"", "\""] {
            assert!(has_open_quote(line.as_bytes()), "{line}");
        }
        for line in ["", "a", "a=\"\"", "a=\"b, \\\"c\", d", "a=\"b\", c=\"d\""] {
            assert!(!has_open_quote(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn connection_takes_the_fields_it_lists_with_it() {
        // RFC 9110 §7.6.1.
        let mut headers = HeaderMap::new();
        headers.insert("connection", HeaderValue::from_static("X-One, keep-alive"));
        headers.append("connection", HeaderValue::from_static("x-two"));
        for name in ["x-one", "x-two", "x-three", "warning", "keep-alive"] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["x-three"]);
    }

    #[test]
    fn numbers_clamp_and_refuse() {
        assert_eq!(digits(b"007", 100), Some(7));
        assert_eq!(digits(b"99999999999999999999999", 100), Some(100));
        for text in ["", "-1", "1.5", " 1", "1a"] {
            assert_eq!(digits(text.as_bytes(), 100), None);
        }
    }

    #[test]
    fn fields_of_a_slice_are_found_in_any_case() {
        let lines: &[(&[u8], &[u8])] = &[(b"Accept", b"a"), (b"X", b"n"), (b"ACCEPT", b"b")];
        let mut seen = Vec::new();
        lines.values("accept", &mut |value| seen.push(value));
        assert_eq!(seen, [b"a", b"b"]);
    }
}
