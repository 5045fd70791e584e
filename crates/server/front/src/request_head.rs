//! Validates a request's header section strictly before hyper parses it (RFC 9112).
//!
//! Request smuggling exploits two parsers that interpret one message differently. So ambiguous requests
//! are refused: bare line feeds, two lengths, a length together with chunked, codings other than
//! chunked, two Hosts. A request that passes is well-formed for every parser. The functions are pure:
//! they map bytes to a result, and do not consider the requested resource.

use config::Limits;
use http::{HeaderValue, Uri};
use reasons::refusal::Refusal;
use std::mem::MaybeUninit;

/// Maximum number of header lines that are parsed; `Limits::headers` can be lower but not higher.
const HEADERS_MAX: usize = 256;

/// The framing of the request's content (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no content.
    Empty,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// The result of inspecting the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// The header section is incomplete.
    Incomplete,
    /// The header section is complete and well-formed.
    Complete {
        /// Its length in bytes, including the empty line.
        head_bytes: usize,
        /// The framing of the content after it.
        framing: Framing,
        /// Whether the client asks for another protocol on this connection.
        upgrade: Upgrade,
    },
    /// The request must be answered with an error, and the connection closed.
    Refused(Refusal),
}

/// Whether the client asks for another protocol (RFC 9110 section 7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// The request has no Upgrade field.
    None,
    /// The Upgrade field is ignored: the request is not a GET of HTTP/1.1 without content, Connection
    /// does not list it, or it names `h2c`.
    Unheeded,
    /// The upgrade is valid, and an HTTP origin may accept it.
    Possible,
}

/// Inspects the bytes received so far from the start of a request.
pub fn inspect(bytes: &[u8], limits: &Limits) -> Inspection {
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let allowed = limits.headers.min(HEADERS_MAX);
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut lines[..allowed]);
    let head_bytes = match parsed {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return while_incomplete(bytes, &request, limits),
        Err(httparse::Error::TooManyHeaders) => {
            return Inspection::Refused(Refusal::TooManyHeaders);
        }
        Err(_) => return Inspection::Refused(Refusal::Malformed),
    };
    let decisive = Decisive::of(&request);
    match check(&bytes[..head_bytes], &request, &decisive, limits) {
        Ok(framing) => {
            let upgrade =
                if decisive.upgrade { read_upgrade(&request, framing) } else { Upgrade::None };
            Inspection::Complete { head_bytes, framing, upgrade }
        }
        Err(refusal) => Inspection::Refused(refusal),
    }
}

/// Separates a validated header section from its Upgrade lines. Returns the rest of the section, and
/// the values of those lines.
pub fn take_upgrade(head: &[u8]) -> (Vec<u8>, Vec<HeaderValue>) {
    let (mut kept, mut protocols) = (Vec::with_capacity(head.len()), Vec::new());
    for line in head.split_inclusive(|b| *b == b'\n') {
        let end = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(end);
        if !name.eq_ignore_ascii_case(b"upgrade") {
            kept.extend_from_slice(line);
            continue;
        }
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let value = HeaderValue::from_bytes(value).ok().filter(|value| !value.is_empty());
        protocols.extend(value);
    }
    (kept, protocols)
}

/// Waits for more bytes, unless a limit has been exceeded already.
fn while_incomplete(bytes: &[u8], request: &httparse::Request, limits: &Limits) -> Inspection {
    let target_bytes = match (request.method, request.path) {
        (_, Some(path)) => path.len(),
        // httparse returns the target only when it is complete.
        (Some(method), None) => bytes.len().saturating_sub(method.len() + 1),
        (None, None) => 0,
    };
    if target_bytes > limits.uri_bytes {
        return Inspection::Refused(Refusal::TargetTooLong);
    }
    if bytes.len() >= limits.header_bytes {
        return Inspection::Refused(Refusal::HeadTooLarge);
    }
    Inspection::Incomplete
}

/// The fields that determine where a message ends and which host it is for, collected in one pass.
#[derive(Default)]
struct Decisive<'a> {
    hosts: usize,
    lengths: usize,
    codings: usize,
    length: &'a [u8],
    coding: &'a [u8],
    upgrade: bool,
}

impl<'a> Decisive<'a> {
    fn of(request: &httparse::Request<'_, 'a>) -> Decisive<'a> {
        let mut found = Decisive::default();
        for line in request.headers.iter() {
            let is = |name: &str| line.name.eq_ignore_ascii_case(name);
            match line.name.len() {
                4 if is("host") => found.hosts += 1,
                7 if is("upgrade") => found.upgrade = true,
                14 if is("content-length") => {
                    found.lengths += 1;
                    found.length = line.value;
                }
                17 if is("transfer-encoding") => {
                    found.codings += 1;
                    found.coding = line.value;
                }
                _ => {}
            }
        }
        found
    }
}

fn check(
    head: &[u8],
    request: &httparse::Request,
    decisive: &Decisive<'_>,
    limits: &Limits,
) -> Result<Framing, Refusal> {
    if request.path.is_some_and(|path| path.len() > limits.uri_bytes) {
        return Err(Refusal::TargetTooLong);
    }
    if request.path.is_some_and(|path| path.parse::<Uri>().is_err()) {
        return Err(Refusal::TargetInvalid);
    }
    if head.len() > limits.header_bytes {
        return Err(Refusal::HeadTooLarge);
    }
    if has_bare_line_feed(head) {
        return Err(Refusal::BareLineFeed);
    }
    if request.method == Some("CONNECT") {
        return Err(Refusal::MethodConnect);
    }
    let is_http_11 = request.version == Some(1);
    match decisive.hosts {
        0 if is_http_11 => return Err(Refusal::HostMissing),
        0 | 1 => {}
        _ => return Err(Refusal::HostRepeated),
    }
    match read_framing(decisive, is_http_11)? {
        Framing::Length(length) if length > limits.body_bytes => Err(Refusal::ContentTooLarge),
        framing => Ok(framing),
    }
}

/// RFC 9110 section 7.8: Upgrade applies only in HTTP/1.1, and only if Connection lists it.
fn read_upgrade(request: &httparse::Request, framing: Framing) -> Upgrade {
    let any = |name: &str, wanted: &[u8]| {
        let mut lines = request.headers.iter().filter(|line| line.name.eq_ignore_ascii_case(name));
        lines.any(|line| {
            let mut words = line.value.split(|b| *b == b',');
            words.any(|word| word.trim_ascii().eq_ignore_ascii_case(wanted))
        })
    };
    let plain = request.method == Some("GET") && request.version == Some(1);
    match plain && framing == Framing::Empty && any("connection", b"upgrade") {
        true if !any("upgrade", b"h2c") => Upgrade::Possible,
        _ => Upgrade::Unheeded,
    }
}

/// RFC 9112 section 2.2 allows a bare LF as a line end, but not every parser accepts it.
fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

/// Determines the framing as in RFC 9112 section 6.3, without the options that parsers interpret
/// differently.
fn read_framing(decisive: &Decisive<'_>, is_http_11: bool) -> Result<Framing, Refusal> {
    match (decisive.codings, decisive.lengths) {
        (0, 0) => Ok(Framing::Empty),
        (0, 1) => read_length(decisive.length),
        (0, _) => Err(Refusal::LengthInvalid),
        (1, 0) if is_http_11 && decisive.coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        (_, 0) => Err(Refusal::CodingUnknown),
        (_, _) => Err(Refusal::LengthAndCoding),
    }
}

fn read_length(value: &[u8]) -> Result<Framing, Refusal> {
    let digits = std::str::from_utf8(value).ok().filter(|text| {
        !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit())
    });
    match digits.and_then(|text| text.parse().ok()) {
        Some(0) => Ok(Framing::Empty),
        Some(length) => Ok(Framing::Length(length)),
        None => Err(Refusal::LengthInvalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Inspection {
        inspect(text.as_bytes(), &Limits::default())
    }

    fn framing(text: &str) -> Framing {
        match of(text) {
            Inspection::Complete { framing, head_bytes, .. } => {
                assert_eq!(head_bytes, text.len());
                framing
            }
            other => panic!("{other:?}"),
        }
    }

    fn refused(text: &str) -> Refusal {
        match of(text) {
            Inspection::Refused(refusal) => refusal,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn well_formed_requests_pass() {
        assert_eq!(framing("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Framing::Empty);
        assert_eq!(framing("GET / HTTP/1.0\r\n\r\n"), Framing::Empty);
        assert_eq!(
            framing("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"),
            Framing::Length(5)
        );
        assert_eq!(
            framing("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"),
            Framing::Chunked
        );
        assert_eq!(of("GET / HTTP/1.1\r\nHos"), Inspection::Incomplete);
        assert_eq!(of(""), Inspection::Incomplete);
    }

    #[test]
    fn upgrade_requests_are_recognised() {
        let asks = |lines: &str| match of(&format!("{lines}\r\n")) {
            Inspection::Complete { upgrade, .. } => upgrade,
            other => panic!("{other:?}"),
        };
        let get = "GET / HTTP/1.1\r\nHost: a\r\n";
        assert_eq!(asks(get), Upgrade::None);
        let both = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
        assert_eq!(asks(&format!("{get}{both}")), Upgrade::Possible);
        assert_eq!(asks(&format!("GET / HTTP/1.0\r\nHost: a\r\n{both}")), Upgrade::Unheeded);
        assert_eq!(asks(&format!("{get}{both}Content-Length: 1\r\n")), Upgrade::Unheeded);
        assert_eq!(asks(&format!("{get}Upgrade: websocket\r\n")), Upgrade::Unheeded);
        assert_eq!(asks(&format!("{get}{both}Upgrade: a, h2c\r\n")), Upgrade::Unheeded);
    }

    #[test]
    fn upgrade_lines_are_taken_out() {
        let head = b"GET /upgrade:x HTTP/1.1\r\nupgrade: a\r\nUpgrades: b\r\nUPGRADE:\r\n\r\n";
        let kept = b"GET /upgrade:x HTTP/1.1\r\nUpgrades: b\r\n\r\n";
        let (left, protocols) = take_upgrade(head);
        assert_eq!((&left[..], &protocols[..]), (&kept[..], &[HeaderValue::from_static("a")][..]));
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        let host = "HTTP/1.1\r\nHost: a\r\n";
        assert_eq!(
            refused(&format!("POST / {host}Content-Length: 5\r\nContent-Length: 5\r\n\r\n")),
            Refusal::LengthInvalid
        );
        assert_eq!(
            refused(&format!("POST / {host}Content-Length: 5, 5\r\n\r\n")),
            Refusal::LengthInvalid
        );
        assert_eq!(
            refused(&format!("POST / {host}Content-Length: +5\r\n\r\n")),
            Refusal::LengthInvalid
        );
        assert_eq!(
            refused(&format!(
                "POST / {host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
            )),
            Refusal::LengthAndCoding
        );
        assert_eq!(
            refused(&format!("POST / {host}Transfer-Encoding: gzip, chunked\r\n\r\n")),
            Refusal::CodingUnknown
        );
        assert_eq!(
            refused(&format!(
                "POST / {host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
            )),
            Refusal::CodingUnknown
        );
        assert_eq!(
            refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Refusal::CodingUnknown
        );
        assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), Refusal::HostMissing);
        assert_eq!(refused(&format!("GET / {host}Host: b\r\n\r\n")), Refusal::HostRepeated);
        assert_eq!(refused("GET / HTTP/1.1\nHost: a\n\n"), Refusal::BareLineFeed);
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n"), Refusal::Malformed);
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"), Refusal::Malformed);
        assert_eq!(refused("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::MethodConnect);
    }

    #[test]
    fn sizes_are_bounded() {
        let long = "x".repeat(9_000);
        assert_eq!(
            refused(&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n")),
            Refusal::TargetTooLong
        );
        assert_eq!(refused(&format!("GET /{long}")), Refusal::TargetTooLong);
        let longer = "x".repeat(40_000);
        assert_eq!(
            refused(&format!("GET / HTTP/1.1\r\nHost: a\r\nA: {longer}")),
            Refusal::HeadTooLarge
        );
        let many = "A: b\r\n".repeat(101);
        assert_eq!(
            refused(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")),
            Refusal::TooManyHeaders
        );
        assert_eq!(
            refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n"),
            Refusal::ContentTooLarge
        );
    }
}
