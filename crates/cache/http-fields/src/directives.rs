//! Parsing of Cache-Control, as it occurs in practice, in requests and responses (RFC 9111 §5.2).
//!
//! Invariants: names in any case, arguments as token or quoted string (§5.2: "recipients ought to accept
//! both forms"). Numbers are limited to 2^31 (§1.2.2). If a directive occurs twice, the first counts, as in
//! §4.2.1. An unreadable lifetime (`max-age=x`, `-1`, `1.5`, spaces around the `=`) is zero, because §4.2.1
//! encourages to treat invalid freshness as stale. An unreadable permission (`stale-while-revalidate=x`)
//! permits nothing. Unknown directives are ignored (§5.2.3).

use crate::fields::{self, digits, trim};
use crate::time::SECONDS_MAX;
use http::header::HeaderName;

/// The Cache-Control directives of a request (RFC 9111 §5.2.1). Durations are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-cache`, §5.2.1.4: no stored response without validation.
    pub no_cache: bool,
    /// `no-store`, §5.2.1.5: the response must not be stored.
    pub no_store: bool,
    /// `only-if-cached`, §5.2.1.7: a stored response, or 504.
    pub only_if_cached: bool,
    /// `max-age`, §5.2.1.1: no older response. If unreadable, 0.
    pub max_age: Option<u32>,
    /// `max-stale`, §5.2.1.2: a response that has been stale for at most this long; 2^31 without an
    /// argument.
    pub max_stale: Option<u32>,
    /// `min-fresh`, §5.2.1.3: a response that stays fresh for at least this long.
    pub min_fresh: Option<u32>,
    /// `stale-if-error`, RFC 5861 §4.
    pub stale_if_error: Option<u32>,
}

impl RequestDirectives {
    /// Adds the directives of one Cache-Control line of the request.
    #[inline]
    pub fn read_line(&mut self, line: &[u8]) {
        for (name, argument) in fields::members(line).map(split) {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                7 if is("max-age") => first(&mut self.max_age, Some(argument.lifetime())),
                8 if is("no-cache") => self.no_cache = true,
                8 if is("no-store") => self.no_store = true,
                9 if is("max-stale") => first(&mut self.max_stale, argument.seconds_or_any()),
                9 if is("min-fresh") => first(&mut self.min_fresh, argument.seconds()),
                14 if is("only-if-cached") => self.only_if_cached = true,
                14 if is("stale-if-error") => first(&mut self.stale_if_error, argument.seconds()),
                _ => {}
            }
        }
    }
}

/// The directives of a response for a shared cache (RFC 9111 §5.2.2, RFC 5861). Durations are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `max-age`, §5.2.2.1. If unreadable, 0.
    pub max_age: Option<u32>,
    /// `s-maxage`, §5.2.2.10. If unreadable, 0.
    pub s_maxage: Option<u32>,
    /// `no-cache` without field names, §5.2.2.4.
    pub no_cache: bool,
    /// The directive `no-store` (§5.2.2.5).
    pub no_store: bool,
    /// `private` without field names, §5.2.2.7.
    pub private: bool,
    /// The directive `public` (§5.2.2.9).
    pub public: bool,
    /// The directive `must-revalidate` (§5.2.2.2).
    pub must_revalidate: bool,
    /// The directive `proxy-revalidate` (§5.2.2.8).
    pub proxy_revalidate: bool,
    /// The directive `must-understand` (§5.2.2.3).
    pub must_understand: bool,
    /// `stale-while-revalidate`, RFC 5861 §3.
    pub stale_while_revalidate: Option<u32>,
    /// `stale-if-error`, RFC 5861 §4.
    pub stale_if_error: Option<u32>,
    /// A quoted string is not closed, so the text after it may be part of it or a directive.
    pub unreadable: bool,
    /// The fields named by `no-cache="…"` and `private="…"`, which are not stored (§5.2.2.4, §5.2.2.7).
    pub withheld: Vec<HeaderName>,
}

impl ResponseDirectives {
    /// Reads the lines of Cache-Control, or of a field with the same syntax.
    pub fn read<'a>(lines: impl Iterator<Item = &'a [u8]>) -> ResponseDirectives {
        let mut directives = ResponseDirectives::default();
        for line in lines {
            directives.unreadable |= fields::has_open_quote(line);
            for member in fields::members(line) {
                let (name, argument) = split(member);
                directives.add(name, &argument);
            }
        }
        directives
    }

    /// Adds a directive by its name, without regard to case, with its argument.
    pub fn add(&mut self, name: &[u8], argument: &Argument<'_>) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            6 if is("public") => self.public = true,
            7 if is("max-age") => first(&mut self.max_age, Some(argument.lifetime())),
            7 if is("private") => self.private |= !self.withhold(argument),
            8 if is("s-maxage") => first(&mut self.s_maxage, Some(argument.lifetime())),
            8 if is("no-cache") => self.no_cache |= !self.withhold(argument),
            8 if is("no-store") => self.no_store = true,
            14 if is("stale-if-error") => first(&mut self.stale_if_error, argument.seconds()),
            15 if is("must-revalidate") => self.must_revalidate = true,
            15 if is("must-understand") => self.must_understand = true,
            16 if is("proxy-revalidate") => self.proxy_revalidate = true,
            22 if is("stale-while-revalidate") => {
                first(&mut self.stale_while_revalidate, argument.seconds());
            }
            _ => {}
        }
    }

    /// Whether a response to a request with Authorization may be stored and reused (RFC 9111 §3.5).
    #[inline]
    pub fn allows_authorization(&self) -> bool {
        self.public || self.must_revalidate || self.s_maxage.is_some()
    }

    /// Adds the field names of a qualified directive. Returns false if no names can be read; the directive
    /// then counts as unqualified, which is the more restrictive.
    fn withhold(&mut self, argument: &Argument<'_>) -> bool {
        let Argument::Text(text) = argument else { return false };
        let names: Option<Vec<HeaderName>> =
            fields::members(text).map(|name| HeaderName::from_bytes(name).ok()).collect();
        match names {
            Some(names) if !names.is_empty() => {
                self.withheld.extend(names);
                true
            }
            _ => false,
        }
    }
}

/// The argument of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// No argument.
    Absent,
    /// A token, or the text between the quotes.
    Text(&'a [u8]),
    /// A number that is already parsed.
    Seconds(u32),
    /// Text that is not a valid argument.
    Malformed,
}

impl Argument<'_> {
    /// The argument as a duration in seconds, if it is one.
    #[inline]
    pub fn seconds(&self) -> Option<u32> {
        match self {
            Argument::Seconds(seconds) => Some(*seconds),
            Argument::Text(text) => {
                digits(text, u64::from(SECONDS_MAX)).and_then(|n| u32::try_from(n).ok())
            }
            Argument::Absent | Argument::Malformed => None,
        }
    }

    /// The argument as a lifetime in seconds; an unreadable one is 0, that is, stale (RFC 9111 §4.2.1).
    #[inline]
    fn lifetime(&self) -> u32 {
        self.seconds().unwrap_or(0)
    }

    /// The argument of `max-stale`, which means any duration if it is missing (RFC 9111 §5.2.1.2).
    fn seconds_or_any(&self) -> Option<u32> {
        match self {
            Argument::Absent => Some(SECONDS_MAX),
            argument => argument.seconds(),
        }
    }
}

/// Keeps the first of several values (RFC 9111 §4.2.1).
#[inline]
fn first(kept: &mut Option<u32>, next: Option<u32>) {
    if kept.is_none() {
        *kept = next;
    }
}

/// Splits a directive into name and argument: `token [ "=" ( token / quoted-string ) ]` (RFC 9111 §5.2).
#[inline]
pub fn split(directive: &[u8]) -> (&[u8], Argument<'_>) {
    let Some(equals) = directive.iter().position(|byte| *byte == b'=') else {
        return (directive, Argument::Absent);
    };
    let (before, after) = (&directive[..equals], &directive[equals + 1..]);
    let name = trim(before);
    if name.len() != before.len() || trim(after).len() != after.len() {
        return (name, Argument::Malformed); // White space around the "=" is not allowed.
    }
    let argument = match after {
        [b'"', inner @ .., b'"'] => Argument::Text(inner),
        text => Argument::Text(text),
    };
    (name, argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(lines: &[&str]) -> ResponseDirectives {
        ResponseDirectives::read(lines.iter().map(|line| line.as_bytes()))
    }

    fn request(line: &str) -> RequestDirectives {
        let mut directives = RequestDirectives::default();
        directives.read_line(line.as_bytes());
        directives
    }

    #[test]
    fn lifetimes_as_they_occur() {
        // RFC 9111 §1.2.2, §4.2.1, §5.2.
        let cases: [(&str, Option<u32>); 16] = [
            ("max-age=60", Some(60)),
            ("MAX-AGE=60", Some(60)),
            ("max-age=\"60\"", Some(60)),
            ("max-age=0060", Some(60)),
            ("max-age=99999999999999999999", Some(SECONDS_MAX)),
            ("max-age=60, max-age=5", Some(60)),
            ("max-age=5, max-age=60", Some(5)),
            ("max-age=-1", Some(0)),
            ("max-age=1.5", Some(0)),
            ("max-age='60'", Some(0)),
            ("max-age= 60", Some(0)),
            ("max-age =60", Some(0)),
            ("max-age", Some(0)),
            ("max-age=", Some(0)),
            ("x-max-age=60", None),
            ("foo=\"max-age=60, bar\"", None),
        ];
        for (line, expected) in cases {
            assert_eq!(response(&[line]).max_age, expected, "{line}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let directives = response(&["public, foo=bar", ", S-MAXAGE=3 ,", "max-age=9"]);
        assert!(directives.public);
        assert_eq!((directives.s_maxage, directives.max_age), (Some(3), Some(9)));
    }

    #[test]
    fn qualified_forms_name_fields_and_otherwise_count_whole() {
        // RFC 9111 §5.2.2.4, §5.2.2.7.
        let directives = response(&["no-cache=\"X-A, x-b\", private=x-c"]);
        assert_eq!(directives.withheld, ["x-a", "x-b", "x-c"]);
        assert!(!directives.no_cache && !directives.private);
        for line in ["no-cache", "no-cache=\"\"", "no-cache=\"a b\"", "no-cache=\"a", "no-cache =a"]
        {
            assert!(response(&[line]).no_cache, "{line}");
        }
        assert!(response(&["private=\"a\", private"]).private);
    }

    #[test]
    fn an_open_quote_makes_the_whole_unreadable() {
        // RFC 9110 §5.6.4: the intended end of the quoted string is unknown.
        for line in ["max-age=60, x=\"private", "x=\"a\\\", max-age=60", "max-age=\"60"] {
            assert!(response(&[line]).unreadable, "{line}");
        }
        assert!(response(&["max-age=60", "x=\"a"]).unreadable);
        assert!(!response(&["max-age=\"60\", private=\"x-a\""]).unreadable);
    }

    #[test]
    fn permissions_that_cannot_be_read_permit_nothing() {
        // RFC 5861 §3, §4.
        let directives = response(&["stale-while-revalidate=x, stale-if-error=\"30\""]);
        assert_eq!(directives.stale_while_revalidate, None);
        assert_eq!(directives.stale_if_error, Some(30));
    }

    #[test]
    fn request_directives() {
        // RFC 9111 §5.2.1.
        let all = request("No-Cache, no-store, only-if-cached, max-age=1, max-stale, min-fresh=3");
        assert!(all.no_cache && all.no_store && all.only_if_cached);
        assert_eq!(
            (all.max_age, all.max_stale, all.min_fresh),
            (Some(1), Some(SECONDS_MAX), Some(3))
        );
        assert_eq!(request("max-stale=7").max_stale, Some(7));
        assert_eq!(request("max-age=x, min-fresh=x").max_age, Some(0));
    }
}
