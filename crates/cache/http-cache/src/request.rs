//! The request fields that the cache reads: in one pass, without allocation, because every hit does this.
//! Names are distinguished by length before any byte is compared.
//!
//! Invariants: values are borrowed and not interpreted here, except Cache-Control. A field with too many
//! lines is marked as unreadable instead of truncated. The precondition is then ignored, which RFC 9110
//! §13.1 allows for some of them, and which costs at most a 304.

use crate::variants::is_unusual_accept;
use http_fields::directives::RequestDirectives;
use http_fields::fields::{self, trim};

/// The method of a request, as far as caching distinguishes methods (RFC 9110 §9.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// OPTIONS and TRACE: safe, but never answered from the store.
    OtherSafe,
    /// All other methods. Unknown methods count as unsafe (RFC 9111 §4.4).
    Unsafe,
}

impl Method {
    /// The category of `method`.
    pub fn of(method: &http::Method) -> Method {
        match *method {
            http::Method::GET => Method::Get,
            http::Method::HEAD => Method::Head,
            http::Method::OPTIONS | http::Method::TRACE => Method::OtherSafe,
            _ => Method::Unsafe,
        }
    }
}

/// The maximum number of lines of If-None-Match, If-Match or Accept-Encoding.
const LINES_MAX: usize = 4;

/// The lines of one request field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldLines<'a> {
    lines: [&'a [u8]; LINES_MAX],
    count: usize,
}

impl<'a> FieldLines<'a> {
    /// The lines; `None` if the field is absent or has more lines than are read.
    pub fn get(&self) -> Option<&[&'a [u8]]> {
        (1..=LINES_MAX).contains(&self.count).then(|| &self.lines[..self.count])
    }

    /// Whether the field is present, readable or not.
    pub fn is_present(&self) -> bool {
        self.count > 0
    }

    fn push(&mut self, line: &'a [u8]) {
        if let Some(place) = self.lines.get_mut(self.count) {
            *place = line;
        }
        self.count = self.count.saturating_add(1);
    }
}

/// The request fields that concern caching. Values have no surrounding white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts<'a> {
    /// The method of the request.
    pub method: Method,
    /// Whether the request has an Authorization field (RFC 9111 §3.5).
    pub authorization: bool,
    /// Whether the request has a Cache-Control field, which overrides Pragma (RFC 9111 §5.4).
    pub has_cache_control: bool,
    /// The directives of Cache-Control.
    pub cache_control: RequestDirectives,
    /// Whether Pragma has `no-cache` (RFC 9111 §5.4).
    pub pragma_no_cache: bool,
    /// If-None-Match, RFC 9110 §13.1.2.
    pub if_none_match: FieldLines<'a>,
    /// If-Match, RFC 9110 §13.1.1.
    pub if_match: FieldLines<'a>,
    /// If-Modified-Since, RFC 9110 §13.1.3; the first of several.
    pub if_modified_since: Option<&'a [u8]>,
    /// If-Unmodified-Since, RFC 9110 §13.1.4; the first of several.
    pub if_unmodified_since: Option<&'a [u8]>,
    /// If-Range, RFC 9110 §13.1.5; the first of several.
    pub if_range: Option<&'a [u8]>,
    /// Range, RFC 9110 §14.2; the first of several.
    pub range: Option<&'a [u8]>,
    /// Accept-Encoding, RFC 9110 §12.5.3; used only if several codings are available.
    pub accept_encoding: FieldLines<'a>,
    /// Whether a field may count as nominated whatever `Vary` says (`variants::ImpliedFields`).
    pub(crate) may_imply: bool,
}

impl<'a> RequestFacts<'a> {
    /// The facts of a request without header fields.
    pub const fn new(method: Method) -> RequestFacts<'a> {
        RequestFacts {
            method,
            authorization: false,
            has_cache_control: false,
            cache_control: RequestDirectives {
                no_cache: false,
                no_store: false,
                only_if_cached: false,
                max_age: None,
                max_stale: None,
                min_fresh: None,
                stale_if_error: None,
            },
            pragma_no_cache: false,
            if_none_match: FieldLines { lines: [&[]; LINES_MAX], count: 0 },
            if_match: FieldLines { lines: [&[]; LINES_MAX], count: 0 },
            if_modified_since: None,
            if_unmodified_since: None,
            if_range: None,
            range: None,
            accept_encoding: FieldLines { lines: [&[]; LINES_MAX], count: 0 },
            may_imply: false,
        }
    }

    /// Reads the method of a request and its header lines (name in any case, value).
    pub fn read(
        method: &http::Method,
        lines: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> RequestFacts<'a> {
        let mut facts = RequestFacts::new(Method::of(method));
        for (name, value) in lines {
            facts.read_line(name, value);
        }
        facts
    }

    /// Adds one header line.
    pub fn read_line(&mut self, name: &[u8], value: &'a [u8]) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            5 if is("range") => first(&mut self.range, value),
            6 if is("pragma") => {
                self.pragma_no_cache |= fields::members(value)
                    .any(|directive| directive.eq_ignore_ascii_case(b"no-cache"));
            }
            6 if is("accept") => self.may_imply |= is_unusual_accept(trim(value)),
            6 if is("origin") => self.may_imply = true,
            8 if is("if-match") => self.if_match.push(trim(value)),
            8 if is("if-range") => first(&mut self.if_range, value),
            13 if is("cache-control") => {
                self.has_cache_control = true;
                self.cache_control.read_line(value);
            }
            13 if is("authorization") => self.authorization = true,
            13 if is("if-none-match") => self.if_none_match.push(trim(value)),
            15 if is("accept-encoding") => self.accept_encoding.push(trim(value)),
            17 if is("if-modified-since") => first(&mut self.if_modified_since, value),
            19 if is("if-unmodified-since") => first(&mut self.if_unmodified_since, value),
            _ => {}
        }
    }

    /// Whether the request requires validation: `no-cache`, or Pragma if there is no Cache-Control (RFC
    /// 9111 §5.2.1.4, §5.4).
    pub fn asks_validation(&self) -> bool {
        self.cache_control.no_cache || (self.pragma_no_cache && !self.has_cache_control)
    }
}

fn first<'a>(kept: &mut Option<&'a [u8]>, value: &'a [u8]) {
    kept.get_or_insert(trim(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(lines: &[(&'a str, &'a str)]) -> RequestFacts<'a> {
        let lines = lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        RequestFacts::read(&http::Method::GET, lines)
    }

    #[test]
    fn methods_by_kind() {
        // RFC 9110 §9.2.1; RFC 9111 §4.4: a method of unknown safety counts as unsafe.
        for (name, kind) in [
            ("GET", Method::Get),
            ("HEAD", Method::Head),
            ("OPTIONS", Method::OtherSafe),
            ("POST", Method::Unsafe),
            ("PURGE", Method::Unsafe),
            ("get", Method::Unsafe),
        ] {
            let method = http::Method::from_bytes(name.as_bytes()).expect("a token");
            assert_eq!(Method::of(&method), kind);
        }
    }

    #[test]
    fn names_in_any_case_first_value_counts() {
        let facts = read(&[
            ("RANGE", " bytes=0-1 "),
            ("Range", "bytes=5-6"),
            ("IF-Modified-since", "x"),
            ("Authorization", "Basic eA=="),
        ]);
        assert_eq!(facts.range, Some(&b"bytes=0-1"[..]));
        assert_eq!(facts.if_modified_since, Some(&b"x"[..]));
        assert!(facts.authorization);
    }

    #[test]
    fn several_lines_of_if_none_match() {
        let facts = read(&[("if-none-match", "\"a\""), ("If-None-Match", "\"b\"")]);
        assert_eq!(facts.if_none_match.get(), Some(&[&b"\"a\""[..], b"\"b\""][..]));
        let many = [("if-none-match", "\"a\""); LINES_MAX + 1];
        assert_eq!(read(&many).if_none_match.get(), None);
        assert_eq!(read(&[]).if_none_match.get(), None);
    }

    #[test]
    fn pragma_counts_without_cache_control_only() {
        // RFC 9111 §5.4.
        assert!(read(&[("pragma", "No-Cache")]).asks_validation());
        assert!(!read(&[("pragma", "no-cache"), ("cache-control", "max-age=9")]).asks_validation());
        assert!(read(&[("cache-control", "no-cache")]).asks_validation());
    }
}
