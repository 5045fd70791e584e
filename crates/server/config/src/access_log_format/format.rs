//! How a line of the access log is written: one of the usual formats, or one of the operator's own with
//! fields in braces. A format is read once, at the start, into pieces: what stands there as it is, and
//! fields.
//!
//! Every value that came from outside is cut off at [`VALUE_BYTES_MAX`] and escaped. Cookies are no
//! field: whoever has the cookie of a session is who it belongs to.

use super::escape::{self, network_of};
use super::outcome::Outcome;
use super::stamp::Stamp;
use http_cache::Timestamp;
use std::io::Write;
use std::net::IpAddr;

/// More of a value is not written.
pub const VALUE_BYTES_MAX: usize = 2_048;
/// What stands between the fields of a format of the operator's own, together.
const TEXT_BYTES_MAX: usize = 4_096;

/// One answer.
pub struct Line<'a> {
    /// When the request was there.
    pub time: Timestamp,
    /// Whose it was.
    pub client: &'a Client,
    /// The method; empty where it is not known, like all that follows.
    pub method: &'a [u8],
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host, as the request has it.
    pub host: &'a [u8],
    /// Path and query, as the request has them.
    pub target: &'a [u8],
    /// `HTTP/1.1` and the like.
    pub protocol: &'a [u8],
    /// The status of the answer.
    pub status: u16,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// Microseconds from when the request was there to the answer's end.
    pub duration_us: u64,
    /// Microseconds of these that the origin took; none where it was not asked.
    pub origin_us: Option<u64>,
    /// What the cache did.
    pub outcome: Outcome<'a>,
    /// Whether the answer broke off.
    pub broken: bool,
    /// The field `Referer`.
    pub referer: &'a [u8],
    /// The field `User-Agent`.
    pub user_agent: &'a [u8],
}

/// A client's address, as it is written.
#[derive(Clone, Debug, Default)]
pub struct Client {
    text: Vec<u8>,
}

/// What is left out of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// The part of addresses that tells one client from his neighbours.
    pub addresses: bool,
    /// What query parameters say.
    pub queries: bool,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// As text, `-` where there is none.
    Text,
    /// As JSON, `null` where there is none.
    Json,
}

/// What can stand in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Time,
    ClfTime,
    Client,
    Method,
    Scheme,
    Host,
    Target,
    Protocol,
    Status,
    Bytes,
    DurationUs,
    OriginUs,
    Cache,
    Detail,
    Broken,
    Referer,
    UserAgent,
}

/// The names by which an operator's own format calls the fields; the manual has this table too.
const FIELDS: [(&str, Field); 17] = [
    ("time", Field::Time),
    ("clf_time", Field::ClfTime),
    ("client", Field::Client),
    ("method", Field::Method),
    ("scheme", Field::Scheme),
    ("host", Field::Host),
    ("target", Field::Target),
    ("protocol", Field::Protocol),
    ("status", Field::Status),
    ("bytes", Field::Bytes),
    ("duration_us", Field::DurationUs),
    ("origin_us", Field::OriginUs),
    ("cache", Field::Cache),
    ("detail", Field::Detail),
    ("broken", Field::Broken),
    ("referer", Field::Referer),
    ("user_agent", Field::UserAgent),
];

/// What the format `json` has, in this order.
const JSON: [Field; 16] = [
    Field::Time,
    Field::Client,
    Field::Method,
    Field::Scheme,
    Field::Host,
    Field::Target,
    Field::Protocol,
    Field::Status,
    Field::Bytes,
    Field::DurationUs,
    Field::OriginUs,
    Field::Cache,
    Field::Detail,
    Field::Broken,
    Field::Referer,
    Field::UserAgent,
];

const COMMON: &str =
    "{client} - - [{clf_time}] \"{method} {target} {protocol}\" {status} {bytes} {cache} {detail}";
const COMBINED: &str = "{client} - - [{clf_time}] \"{method} {target} {protocol}\" {status} {bytes} \
                        \"{referer}\" \"{user_agent}\" {cache} {detail}";

#[derive(Clone, Debug)]
enum Piece {
    Text(Box<[u8]>),
    Field(Field),
}

/// How lines are written.
#[derive(Clone, Debug)]
pub struct Format {
    pieces: Vec<Piece>,
    values: Values,
    masks: Masks,
    /// Whether lines say how long an answer took.
    is_timed: bool,
}

/// Why a format cannot be used: a sentence for the operator.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl Format {
    /// Reads a format: `common`, `combined`, `json`, or one with fields in braces.
    ///
    /// # Errors
    /// A brace without its other half, a field that there is not, or that is there twice, or nothing
    /// that would differ from line to line.
    pub fn read(text: &str, masks: Masks) -> Result<Format, Unreadable> {
        let (pieces, values) = match text {
            "json" => (json_pieces(), Values::Json),
            "common" => (pieces(COMMON)?, Values::Text),
            "combined" => (pieces(COMBINED)?, Values::Text),
            own => (pieces(own)?, Values::Text),
        };
        let timed = |piece: &Piece| matches!(piece, Piece::Field(Field::DurationUs));
        let is_timed = pieces.iter().any(timed);
        Ok(Format { pieces, values, masks, is_timed })
    }

    /// Whether lines say how long an answer took; where not, nobody need measure it.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// A client's address as lines have it; none over a Unix socket.
    pub fn client(&self, address: Option<IpAddr>) -> Client {
        let mut client = Client::default();
        self.set_client(&mut client, address);
        client
    }

    /// The same, where there was one before.
    pub fn set_client(&self, client: &mut Client, address: Option<IpAddr>) {
        client.text.clear();
        let masked = address.map(|address| match self.masks.addresses {
            true => network_of(address),
            false => address.to_canonical(),
        });
        // Writing to memory does not fail.
        let _ = match masked {
            Some(address) => write!(client.text, "{address}"),
            None => write!(client.text, "unix"),
        };
    }

    /// Writes a line, its end included.
    pub fn write(&self, line: &Line<'_>, stamp: &Stamp, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Field(field) => self.field(*field, line, stamp, out),
            }
        }
        out.push(b'\n');
    }

    fn field(&self, field: Field, line: &Line<'_>, stamp: &Stamp, out: &mut Vec<u8>) {
        match field {
            Field::Time => self.own(&stamp.iso(), out),
            Field::ClfTime => self.own(stamp.clf(), out),
            Field::Client => self.own(&line.client.text, out),
            Field::Method => self.value(line.method, out),
            Field::Scheme => self.own(line.scheme.as_bytes(), out),
            Field::Host => self.value(line.host, out),
            Field::Target => self.address(line.target, out),
            Field::Protocol => self.value(line.protocol, out),
            Field::Status => number(Some(u64::from(line.status)), self.values, out),
            Field::Bytes => number(Some(line.bytes), self.values, out),
            Field::DurationUs => number(Some(line.duration_us), self.values, out),
            Field::OriginUs => number(line.origin_us, self.values, out),
            Field::Cache => self.own(line.outcome.word.as_bytes(), out),
            // Where there is no field of its own for it, it must not get lost.
            Field::Detail if line.broken && self.values == Values::Text => {
                self.own(b"broken-off", out);
            }
            Field::Detail => self.value(line.outcome.detail, out),
            Field::Broken => out.extend_from_slice(if line.broken { b"true" } else { b"false" }),
            Field::Referer => self.address(line.referer, out),
            Field::UserAgent => self.value(line.user_agent, out),
        }
    }

    /// What visitors have sent.
    fn value(&self, value: &[u8], out: &mut Vec<u8>) {
        let value = &value[..value.len().min(VALUE_BYTES_MAX)];
        match (self.values, value.is_empty()) {
            (Values::Text, true) => out.push(b'-'),
            (Values::Json, true) => out.extend_from_slice(b"null"),
            (Values::Text, false) => escape::text(value, out),
            (Values::Json, false) => {
                out.push(b'"');
                escape::json(value, out);
                out.push(b'"');
            }
        }
    }

    /// What visitors have sent, and may have a query.
    fn address(&self, value: &[u8], out: &mut Vec<u8>) {
        if !self.masks.queries || memchr::memchr(b'?', value).is_none() {
            return self.value(value, out);
        }
        let mut left = Vec::with_capacity(value.len());
        escape::without_values(value, |piece| left.extend_from_slice(piece));
        self.value(&left, out);
    }

    /// What needs no escaping.
    fn own(&self, value: &[u8], out: &mut Vec<u8>) {
        if self.values == Values::Json {
            out.push(b'"');
        }
        out.extend_from_slice(value);
        if self.values == Values::Json {
            out.push(b'"');
        }
    }
}

fn number(number: Option<u64>, values: Values, out: &mut Vec<u8>) {
    match (number, values) {
        (Some(number), _) => {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        (None, Values::Text) => out.push(b'-'),
        (None, Values::Json) => out.extend_from_slice(b"null"),
    }
}

fn json_pieces() -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (count, field) in JSON.into_iter().enumerate() {
        let name = FIELDS.iter().find(|(_, known)| *known == field).map_or("", |(name, _)| *name);
        let before = if count == 0 { "{" } else { "," };
        pieces.push(Piece::Text(format!("{before}\"{name}\":").into_bytes().into()));
        pieces.push(Piece::Field(field));
    }
    pieces.push(Piece::Text(b"}"[..].into()));
    pieces
}

/// Reads a format with fields in braces; `{{` and `}}` are braces.
fn pieces(format: &str) -> Result<Vec<Piece>, Unreadable> {
    let unreadable = |why: String| Err(Unreadable(why));
    if format.len() > TEXT_BYTES_MAX || format.contains(char::is_control) {
        return unreadable(format!("{TEXT_BYTES_MAX} bytes at most, on one line"));
    }
    let (mut pieces, mut text, mut seen) = (Vec::new(), String::new(), Vec::new());
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            text.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let Some((name, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}'))
        else {
            return unreadable("a brace without its other half; {{ and }} are braces".into());
        };
        let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
            return unreadable(format!(
                "there is no field {{{name}}}; there are {}",
                known.join(", ")
            ));
        };
        if seen.contains(field) {
            return unreadable(format!("{{{name}}} is there twice"));
        }
        seen.push(*field);
        pieces.push(Piece::Text(std::mem::take(&mut text).into_bytes().into()));
        pieces.push(Piece::Field(*field));
        rest = after;
    }
    if seen.is_empty() {
        return unreadable(format!(
            "{format:?}: common, combined, json, or fields in braces such as {{client}} {{target}}"
        ));
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text.into_bytes().into()));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log_format::LINE_BYTES_MAX;

    fn written(format: &Format, line: &Line<'_>) -> String {
        let mut stamp = Stamp::default();
        stamp.set(line.time);
        let mut out = Vec::new();
        format.write(line, &stamp, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    fn line<'a>(client: &'a Client, value: &'a [u8]) -> Line<'a> {
        Line {
            time: Timestamp(1_763_780_992_007),
            client,
            method: b"GET",
            scheme: "https",
            host: b"example.org",
            target: b"/a?b=1",
            protocol: b"HTTP/1.1",
            status: 200,
            bytes: 1234,
            duration_us: 57,
            origin_us: None,
            outcome: Outcome { word: "hit", detail: b"" },
            broken: false,
            referer: b"",
            user_agent: value,
        }
    }

    fn format(text: &str, masks: Masks) -> Format {
        Format::read(text, masks).expect("a format")
    }

    #[test]
    fn the_usual_formats() {
        let address = Some("192.0.2.77".parse().unwrap());
        let common = format("common", Masks::default());
        let client = common.client(address);
        assert_eq!(
            written(&common, &line(&client, b"x")),
            "192.0.2.77 - - [22/Nov/2025:03:09:52 +0000] \"GET /a?b=1 HTTP/1.1\" 200 1234 hit -\n"
        );
        let combined = format("combined", Masks { addresses: true, queries: true });
        let client = combined.client(address);
        let broken = Line { broken: true, ..line(&client, b"a \"b\"\n") };
        assert_eq!(
            written(&combined, &broken),
            "192.0.2.0 - - [22/Nov/2025:03:09:52 +0000] \"GET /a?b= HTTP/1.1\" 200 1234 \"-\" \
             \"a \\x22b\\x22\\x0a\" hit broken-off\n"
        );
        let json = format("json", Masks::default());
        assert_eq!(
            written(&json, &line(&json.client(None), b"a \"b\"\n")),
            "{\"time\":\"2025-11-22T03:09:52.007Z\",\"client\":\"unix\",\"method\":\"GET\",\
             \"scheme\":\"https\",\"host\":\"example.org\",\"target\":\"/a?b=1\",\
             \"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":1234,\"duration_us\":57,\
             \"origin_us\":null,\"cache\":\"hit\",\"detail\":null,\"broken\":false,\
             \"referer\":null,\"user_agent\":\"a \\\"b\\\"\\u000a\"}\n"
        );
    }

    #[test]
    fn a_format_of_ones_own() {
        let own = format("{{{client}}} {target}|{origin_us}", Masks::default());
        assert_eq!(written(&own, &line(&own.client(None), b"")), "{unix} /a?b=1|-\n");
        for (text, part) in [
            ("{clint}", "there is no field {clint}; there are time, "),
            ("{client", "other half"),
            ("client}", "other half"),
            ("apache", "common, combined, json"),
            ("{host} {host}", "twice"),
            ("{host}\n", "on one line"),
        ] {
            let said = Format::read(text, Masks::default()).unwrap_err().0;
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn no_line_is_longer_than_there_is_room_for() {
        let long = vec![1; 100_000];
        for text in ["json", "common", "combined"] {
            let format = format(text, Masks::default());
            let client =
                format.client(Some("2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap()));
            let line = Line {
                method: &long,
                host: &long,
                target: &long,
                protocol: &long,
                outcome: Outcome { word: "own", detail: &long },
                referer: &long,
                ..line(&client, &long)
            };
            let length = written(&format, &line).len();
            assert!(length + TEXT_BYTES_MAX < LINE_BYTES_MAX, "{text}: {length}");
        }
    }
}
