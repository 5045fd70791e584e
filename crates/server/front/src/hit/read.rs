//! A fast parser for plain requests: GET or HEAD over HTTP/1.1 or 1.0 in origin form, complete, and
//! without content. It makes one pass and allocates no memory, because every cache hit needs it.
//!
//! It accepts only header sections that all parsers interpret in the same way (RFC 9112 sections 3 and
//! 5). Every line ends in CR LF, names are tokens, and there are no other control characters.
//! Everything else is left to `request_head`. Invariant, checked by tests: if this parser accepts a
//! request, `request_head` accepts it, too, with the same fields and without content.
//! `PlainHead::read_lines` says what the lines mean for the cache.

use config::Limits;
use delivery::site::Site;
use http_cache::{Fields, Method, RequestFacts};
use request_values::networks::Networks;
use rule_conditions::Peer;
use std::net::IpAddr;
use std::ops::Range;
use telemetry::request_fields::AllAsSent;

/// Maximum number of header lines of a plain request.
const LINES_MAX: usize = 64;
/// Maximum length of a plain header section, in bytes; positions in it fit into 16 bits.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// The position of a header line in the header section.
#[derive(Clone, Copy, Debug)]
pub struct LineAt {
    name: u16,
    name_end: u16,
    value: u16,
    value_end: u16,
}

/// The header lines of a request.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    head: &'a [u8],
    places: &'a [LineAt],
}

impl<'a> Lines<'a> {
    /// The lines at these positions of a header section.
    pub fn at(head: &'a [u8], places: &'a [LineAt]) -> Lines<'a> {
        Lines { head, places }
    }

    /// The names, unchanged, and the values without the white space around them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let head = self.head;
        self.places.iter().map(|at| {
            let name = &head[usize::from(at.name)..usize::from(at.name_end)];
            (name, &head[usize::from(at.value)..usize::from(at.value_end)])
        })
    }
}

impl Lines<'_> {
    /// The address of the client that a trusted proxy names, if it does.
    pub fn client_address(&self, proxies: &Networks) -> Option<IpAddr> {
        let is_named = |name: &[u8]| name.eq_ignore_ascii_case(b"x-forwarded-for");
        let lines = self.iter().rev().filter(|(name, _)| is_named(name));
        proxies.client_of(lines.map(|(_, value)| value))
    }
}

impl Fields for Lines<'_> {
    fn values<'b>(&'b self, name: &str, visit: &mut dyn FnMut(&'b [u8])) {
        let known = |(line, _): &(&[u8], _)| line.eq_ignore_ascii_case(name.as_bytes());
        self.iter().filter(known).for_each(|(_, value)| visit(value));
    }
}

/// The request line and the header lines of a plain request.
#[derive(Clone, Copy, Debug)]
pub struct PlainHead<'a> {
    /// The length of the header section in bytes, including the empty line.
    pub head_bytes: usize,
    /// Whether the method is HEAD; otherwise it is GET.
    pub is_head: bool,
    /// The HTTP version of the request.
    pub version: PlainVersion,
    /// Path and query: visible ASCII, beginning with a slash.
    pub target: &'a str,
    /// The header lines of the request.
    pub lines: Lines<'a>,
}

/// A plain request without its header lines.
pub(super) struct PlainFacts {
    head_bytes: usize,
    is_head: bool,
    version: PlainVersion,
    /// Where the target is in the header section.
    target: Range<usize>,
}

/// The protocol versions of plain requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainVersion {
    /// HTTP/1.1.
    Http11,
    /// HTTP/1.0: the connection is closed after the response, unless the client asks to keep it open.
    Http10,
}

impl PlainVersion {
    /// The version as in the request line.
    pub fn as_bytes(self) -> &'static [u8] {
        match self {
            PlainVersion::Http11 => b"HTTP/1.1",
            PlainVersion::Http10 => b"HTTP/1.0",
        }
    }
}

/// A password that a plain request has.
#[derive(Clone, Copy)]
pub(super) struct GivenPassword<'a> {
    /// The value of `Authorization`.
    pub(super) value: &'a [u8],
    /// The default site of the listener, which remembers the passwords of all sites.
    pub(super) default_site: &'a Site,
}

/// A plain request: its target, and its header lines in the form that the cache needs.
pub(super) struct PlainRequest<'a> {
    pub(super) kind: Method,
    pub(super) scheme: &'static str,
    pub(super) host: &'a [u8],
    pub(super) target: &'a str,
    pub(super) fields: AllAsSent<Lines<'a>>,
    pub(super) facts: RequestFacts<'a>,
    pub(super) has_cookies: bool,
    /// The password, which is in none of the fields.
    pub(super) password: Option<GivenPassword<'a>>,
    pub(super) version: PlainVersion,
    pub(super) ends_connection: bool,
}

/// Parses the header section at the start of `bytes`. `places` is a reusable buffer. `None` if the
/// section is incomplete or its syntax is not plain; the caller interprets the fields.
pub fn read<'a>(
    bytes: &'a [u8],
    limits: &Limits,
    places: &'a mut Vec<LineAt>,
) -> Option<PlainHead<'a>> {
    places.clear();
    let (is_head, rest) = match bytes.strip_prefix(b"GET ") {
        Some(rest) => (false, rest),
        None => (true, bytes.strip_prefix(b"HEAD ")?),
    };
    let mut ends = memchr::memchr_iter(b'\n', bytes);
    let first_end = ends.next()?;
    let line_bytes = (first_end + rest.len()).checked_sub(bytes.len())?;
    let (target, version) = match rest[..line_bytes].strip_suffix(b" HTTP/1.1\r") {
        Some(target) => (target, PlainVersion::Http11),
        None => (rest[..line_bytes].strip_suffix(b" HTTP/1.0\r")?, PlainVersion::Http10),
    };
    let target = str::from_utf8(target).ok().filter(|target| is_plain_target(target, limits))?;
    let mut start = first_end + 1;
    for end in ends {
        let line = bytes[start..end].strip_suffix(b"\r")?;
        if line.is_empty() {
            let head = &bytes[..=end];
            let plain = head.len() <= limits.header_bytes.min(HEAD_BYTES_MAX)
                && places.len() <= limits.headers
                // The only control characters are those of the line ends.
                && control_characters(head) == 2 * (places.len() + 2);
            let lines = Lines { head, places };
            let head_bytes = head.len();
            return plain.then_some(PlainHead { head_bytes, is_head, version, target, lines });
        }
        if places.len() == LINES_MAX || end > HEAD_BYTES_MAX {
            return None;
        }
        places.push(place(line, start)?);
        start = end + 1;
    }
    None
}

impl<'a> PlainHead<'a> {
    /// This request without its line for `Authorization`, and the value of that line; `None` if there is none, or several.
    /// `bytes` and `places` are those from which it was read.
    pub(super) fn without_password(
        facts: PlainFacts,
        bytes: &'a [u8],
        places: &'a mut Vec<LineAt>,
    ) -> Option<(PlainHead<'a>, &'a [u8])> {
        let head = &bytes[..facts.head_bytes];
        let is_password = |(name, _): (&[u8], &[u8])| name.eq_ignore_ascii_case(b"authorization");
        let at = Lines { head, places }.iter().position(is_password)?;
        let line = places.remove(at);
        if (Lines { head, places }).iter().any(is_password) {
            return None;
        }
        let value = &head[usize::from(line.value)..usize::from(line.value_end)];
        let PlainFacts { head_bytes, is_head, version, target } = facts;
        let target = str::from_utf8(head.get(target)?).ok()?;
        let lines = Lines { head, places };
        Some((PlainHead { head_bytes, is_head, version, target, lines }, value))
    }

    /// The other facts of the request, without its lines.
    pub(super) fn facts(&self) -> PlainFacts {
        let start = if self.is_head { "HEAD ".len() } else { "GET ".len() };
        PlainFacts {
            head_bytes: self.head_bytes,
            is_head: self.is_head,
            version: self.version,
            target: start..start + self.target.len(),
        }
    }

    /// Reads the header lines of a request that came to `site` over a connection of this scheme.
    /// `None` if only hyper and `exchange` can interpret one of the lines.
    #[inline]
    pub(super) fn read_lines(
        &self,
        site: &Site,
        proxy_trust: Peer,
        scheme: &'static str,
    ) -> Option<PlainRequest<'a>> {
        let kind = if self.is_head { Method::Head } else { Method::Get };
        let mut facts = RequestFacts::new(kind);
        let (mut host, mut told_scheme, mut has_cookies) = (None, None, false);
        let (mut keeps, mut closes) = (self.version == PlainVersion::Http11, false);
        for (name, value) in self.lines.iter() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                // A second `Host` line is left to hyper.
                4 if is("host") && host.replace(value).is_some() => return None,
                6 if is("expect") => return None,
                6 if is("cookie") => has_cookies = true,
                7 if is("upgrade") => return None,
                // The response to a crawler of LiteSpeed's plugins has fields that a plain hit does
                // not have.
                10 if value.starts_with(b"lscache_") && is("user-agent") => return None,
                10 if is("connection") => match value {
                    // Both options together are left to hyper.
                    _ if closes => return None,
                    _ if value.eq_ignore_ascii_case(b"keep-alive") => keeps = true,
                    _ if value.eq_ignore_ascii_case(b"close") => closes = true,
                    _ => return None,
                },
                // A proxy that sends a span of its own expects child spans.
                11 if proxy_trust == Peer::Trusted
                    && is("traceparent")
                    && site.config.traces.is_some() =>
                {
                    return None;
                }
                14 if is("content-length") => return None,
                17 if is("transfer-encoding") => return None,
                17 if proxy_trust == Peer::Trusted
                    && is("x-forwarded-proto")
                    && told_scheme.replace(plain_scheme(value)?).is_some() =>
                {
                    return None;
                }
                // Such a request bypasses the cache in `exchange`.
                _ if site_rules::reason_to_bypass(name, value).is_some() => return None,
                _ => facts.read_line(name, value),
            }
        }
        // The connection itself is not redirected to HTTPS.
        if told_scheme.is_some_and(|scheme| exchange::is_redirected(site, scheme)) {
            return None;
        }
        Some(PlainRequest {
            kind,
            scheme: told_scheme.unwrap_or(scheme),
            host: host?,
            target: self.target,
            // The `Connection` options allowed here nominate no field.
            fields: AllAsSent(self.lines),
            facts,
            has_cookies,
            password: None,
            version: self.version,
            ends_connection: closes || !keeps,
        })
    }
}

/// The scheme that a trusted proxy names in a single word; anything longer is not plain.
fn plain_scheme(value: &[u8]) -> Option<&'static str> {
    match value {
        b"https" => Some("https"),
        b"http" => Some("http"),
        _ => None,
    }
}

fn is_plain_target(target: &str, limits: &Limits) -> bool {
    let visible = target.bytes().fold(true, |all, byte| all & (0x21..=0x7e).contains(&byte));
    visible && target.starts_with('/') && target.len() <= limits.uri_bytes
}

/// The positions in a line that begins at `start`. It uses simple loops, because lines are short, and
/// this is half of the cost of parsing a request.
fn place(line: &[u8], start: usize) -> Option<LineAt> {
    let is_space = |byte: u8| byte == b' ' || byte == b'\t';
    let mut colon = 0;
    while IS_TOKEN[usize::from(*line.get(colon)?)] {
        colon += 1;
    }
    if colon == 0 || line[colon] != b':' {
        return None;
    }
    let (mut from, mut to) = (colon + 1, line.len());
    while from < to && is_space(line[from]) {
        from += 1;
    }
    while from < to && is_space(line[to - 1]) {
        to -= 1;
    }
    // Fits, because of HEAD_BYTES_MAX.
    let at = |place: usize| (start + place) as u16;
    Some(LineAt { name: at(0), name_end: at(colon), value: at(from), value_end: at(to) })
}

/// The number of control characters except tabs.
fn control_characters(head: &[u8]) -> usize {
    // In chunks whose count fits into a byte, so that the compiler can vectorise the loop.
    let count =
        |piece: &[u8]| piece.iter().fold(0u8, |count, byte| count + u8::from(is_control(*byte)));
    head.chunks(128).map(|piece| usize::from(count(piece))).sum()
}

/// Whether a byte is a control character that is not allowed in a field value: all except tab (RFC 9110
/// section 5.5).
pub fn is_control(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\t') | (byte == 0x7f)
}

/// Whether a byte is allowed in a token (RFC 9110 section 5.6.2).
pub fn is_token(byte: u8) -> bool {
    IS_TOKEN[usize::from(byte)]
}

const IS_TOKEN: [bool; 256] = {
    let mut is_token = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_token[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < others.len() {
        is_token[others[at] as usize] = true;
        at += 1;
    }
    is_token
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_head::{Framing, Inspection, Upgrade, inspect};
    use proptest::prelude::*;

    /// Length, whether it is HEAD, minor version, target, lines.
    type Read = (usize, bool, u8, String, Vec<(Vec<u8>, Vec<u8>)>);

    fn reading(bytes: &[u8]) -> Option<Read> {
        let mut places = Vec::new();
        let plain = read(bytes, &Limits::default(), &mut places)?;
        let lines = plain.lines.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
        let minor = u8::from(plain.version == PlainVersion::Http11);
        Some((plain.head_bytes, plain.is_head, minor, plain.target.to_owned(), lines.collect()))
    }

    #[test]
    fn plain_requests_are_read() {
        let text = b"GET /a?b HTTP/1.1\r\nHost: x\r\nA:\t b c \r\nEmpty:\r\n\r\nGET /next";
        let (head_bytes, is_head, minor, target, lines) = reading(text).expect("plain");
        let read = (head_bytes, is_head, minor, &*target);
        assert_eq!(read, (text.len() - 9, false, 1, "/a?b"));
        let line = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(lines, [line("Host", "x"), line("A", "b c"), line("Empty", "")]);
        assert_eq!(reading(b"HEAD / HTTP/1.1\r\n\r\n").map(|r| r.1), Some(true));
        assert_eq!(reading(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n").map(|r| r.2), Some(0));
    }

    /// Over HTTP/2 the fields are converted to such lines first.
    #[test]
    fn a_client_behind_a_proxy_is_the_same_for_hits_and_all_other_requests() {
        let proxies = Networks::read(&["10.0.0.0/8".to_owned()]).expect("a network");
        for (said, right) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("198.51.100.9, 192.0.2.1, 10.0.0.2", Some("192.0.2.1")),
            ("10.0.0.3, 10.0.0.2", Some("10.0.0.3")),
            ("[2001:db8::1]:4711", Some("2001:db8::1")),
            ("unknown", None),
        ] {
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {said}\r\n\r\n");
            let mut places = Vec::new();
            let plain = read(head.as_bytes(), &Limits::default(), &mut places).expect("plain");
            let right = right.map(|address| address.parse::<IpAddr>().expect("an address"));
            assert_eq!(plain.lines.client_address(&proxies), right, "{said}");
            let mut headers = http::HeaderMap::new();
            headers.insert("x-forwarded-for", said.parse().expect("a value"));
            assert_eq!(proxies.client(&headers), right, "{said}");
        }
    }

    #[test]
    fn all_else_is_left_alone() {
        for text in [
            "",
            "GET",
            "GET / HTTP/1.1\r\nHost: x\r\n",
            "GET / HTTP/1.2\r\nHost: x\r\n\r\n",
            "GET / http/1.0\r\nHost: x\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /  HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
            "get / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\n",
            "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
            "GET / HTTP/1.1\r\n: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\ry\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\u{7f}\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            assert!(reading(text.as_bytes()).is_none(), "{text:?}");
        }
        let many = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert!(reading(many(LINES_MAX).as_bytes()).is_some());
        assert!(reading(many(LINES_MAX + 1).as_bytes()).is_none());
        let long = |bytes: usize| format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(bytes));
        assert!(reading(long(20 << 10).as_bytes()).is_some());
        assert!(reading(long(40 << 10).as_bytes()).is_none());
    }

    #[test]
    fn the_password_is_taken_from_the_lines() {
        let text =
            "HEAD /a?b HTTP/1.1\r\nHost: x\r\nauthorization:  Basic YTpi \r\nA: b\r\n\r\nGET";
        let (bytes, mut places) = (text.as_bytes(), Vec::new());
        let facts = read(bytes, &Limits::default(), &mut places).expect("plain").facts();
        let found = PlainHead::without_password(facts, bytes, &mut places);
        let (request, value) = found.expect("a password");
        assert_eq!(value, b"Basic YTpi");
        let found = (request.head_bytes, request.is_head, request.version, request.target);
        assert_eq!(found, (text.len() - 3, true, PlainVersion::Http11, "/a?b"));
        let names: Vec<_> = request.lines.iter().collect();
        assert_eq!(names, [(&b"Host"[..], &b"x"[..]), (&b"A"[..], &b"b"[..])]);
        let facts = request.facts();
        assert!(PlainHead::without_password(facts, bytes, &mut places).is_none());
        let twice =
            "GET / HTTP/1.1\r\nAuthorization: Basic YTpi\r\nAUTHORIZATION: Basic YTpi\r\n\r\n";
        let bytes = twice.as_bytes();
        let facts = read(bytes, &Limits::default(), &mut places).expect("plain").facts();
        assert!(PlainHead::without_password(facts, bytes, &mut places).is_none());
    }

    proptest! {
        /// The other parser accepts the request, too, and finds the same lines.
        #[test]
        fn the_two_readers_agree(
            text in "(GET|HEAD) /[!-~]{0,9} HTTP/1.[01]\r\nHost: a\r\n([A-Za-z-]{0,6}(:|: | :|\t)[ -~\t\u{80}-\u{ff}]{0,9}(\r\n|\n|\r|\r\n ))*(\r\n|\n)?.{0,4}",
        ) {
            let bytes = text.as_bytes();
            let Some((head_bytes, _, version, target, lines)) = reading(bytes) else { return Ok(()) };
            let framed = lines.iter().any(|(name, _)| {
                [&b"content-length"[..], b"transfer-encoding", b"upgrade", b"host"]
                    .iter().filter(|known| name.eq_ignore_ascii_case(known)).count() > 0
            });
            let mut room = [httparse::EMPTY_HEADER; 256];
            let mut request = httparse::Request::new(&mut room);
            let parsed = request.parse(bytes);
            prop_assert_eq!(parsed, Ok(httparse::Status::Complete(head_bytes)));
            prop_assert_eq!(request.path, Some(&*target));
            prop_assert_eq!(request.version, Some(version));
            let theirs: Vec<_> = request.headers.iter()
                .map(|line| (line.name.as_bytes().to_vec(), line.value.to_vec())).collect();
            prop_assert_eq!(&theirs, &lines);
            if lines.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"host")).count() == 1 && !framed {
                let right = Inspection::Complete {
                    head_bytes, framing: Framing::Empty, upgrade: Upgrade::None };
                prop_assert_eq!(inspect(bytes, &Limits::default()), right);
            }
        }
    }
}
