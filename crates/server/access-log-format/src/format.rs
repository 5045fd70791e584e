//! Formats a line of the access log: a predefined format, or the operator's own with field names in
//! braces. The format is parsed at the start into literal text and fields.
//!
//! Every value that a client or an origin sends is truncated to [`VALUE_BYTES_MAX`] and escaped. There
//! is no field for cookies, because anyone who reads a session cookie in the log can use that session.

use super::escape::{self, network_of};
use super::outcome::Outcome;
use super::stamp::Stamp;
use http_cache::Timestamp;
use std::io::Write;
use std::net::IpAddr;

/// Maximum length of one value, in bytes before escaping. Longer values are truncated.
pub const VALUE_BYTES_MAX: usize = 2_048;
/// Maximum length of the operator's own format, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// One response, as the access log records it.
pub struct Line<'a> {
    /// When the request was received.
    pub time: Timestamp,
    /// The client's address, formatted by [`Format::client`].
    pub client: &'a ClientText,
    /// The request method. Empty if unknown; the same applies to the following byte strings.
    pub method: &'a [u8],
    /// The scheme: `http` or `https`.
    pub scheme: &'static str,
    /// The `Host` of the request, unchanged.
    pub host: &'a [u8],
    /// The path and query of the request, unchanged.
    pub target: &'a [u8],
    /// The protocol version, for example `HTTP/1.1`.
    pub protocol: &'a [u8],
    /// The response's status code.
    pub status: u16,
    /// Bytes of response content that were sent.
    pub bytes: u64,
    /// Microseconds from the request's arrival to the end of the response.
    pub duration_us: u64,
    /// Microseconds of `duration_us` that the origin took; `None` if it was not contacted.
    pub origin_us: Option<u64>,
    /// The cache result of the response.
    pub outcome: Outcome<'a>,
    /// Whether the response was cut off.
    pub broken: bool,
    /// The value of the `Referer` field.
    pub referer: &'a [u8],
    /// The value of the `User-Agent` field.
    pub user_agent: &'a [u8],
}

/// A client's address as text, masked if the format masks addresses.
#[derive(Clone, Debug, Default)]
pub struct ClientText {
    text: Vec<u8>,
}

/// Which personal data is omitted from the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    /// The host part of client addresses.
    pub addresses: bool,
    /// The values of query parameters.
    pub queries: bool,
}

/// The notation in which a format writes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Text; `-` if there is no value.
    Text,
    /// JSON; `null` if there is no value.
    Json,
}

/// A field of a line.
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

/// The field names in an operator's own format; the manual has the same table.
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

/// The fields of the predefined format `json`, in order.
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

/// A format of log lines, after parsing.
#[derive(Clone, Debug)]
pub struct Format {
    pieces: Vec<Piece>,
    values: Values,
    masks: Masks,
    /// Whether the lines contain the response's duration.
    is_timed: bool,
}

/// Why a format is invalid: a sentence for the operator.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl Format {
    /// Parses a format: `common`, `combined`, `json`, or text with field names in braces.
    ///
    /// # Errors
    /// An unbalanced brace, an unknown or repeated field, control characters, more than 4,096 bytes, or
    /// no field at all.
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

    /// Whether lines contain the response's duration; otherwise it need not be measured.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Formats a client's address, masked as configured; `unix` if there is none, as on a Unix socket.
    pub fn client(&self, address: Option<IpAddr>) -> ClientText {
        let mut client = ClientText::default();
        self.set_client(&mut client, address);
        client
    }

    /// Like [`Format::client`], but reuses the memory of `client`.
    pub fn set_client(&self, client: &mut ClientText, address: Option<IpAddr>) {
        client.text.clear();
        let masked = address.map(|address| {
            if self.masks.addresses { network_of(address) } else { address.to_canonical() }
        });
        // Writing to memory does not fail.
        let _ = match masked {
            Some(address) => write!(client.text, "{address}"),
            None => write!(client.text, "unix"),
        };
    }

    /// Appends a line to `out`, including the line break.
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
            // A text format has no field for a response that was cut off, so the detail shows it.
            Field::Detail if line.broken && self.values == Values::Text => {
                self.own(b"broken-off", out);
            }
            Field::Detail => self.value(line.outcome.detail, out),
            Field::Broken => out.extend_from_slice(if line.broken { b"true" } else { b"false" }),
            Field::Referer => self.address(line.referer, out),
            Field::UserAgent => self.value(line.user_agent, out),
        }
    }

    /// Writes a value that a client or an origin has sent.
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

    /// Writes a target or URL that a client has sent. The values in its query are omitted if
    /// configured.
    fn address(&self, value: &[u8], out: &mut Vec<u8>) {
        if !self.masks.queries || memchr::memchr(b'?', value).is_none() {
            return self.value(value, out);
        }
        let mut left = Vec::with_capacity(value.len());
        escape::without_values(value, |piece| left.extend_from_slice(piece));
        self.value(&left, out);
    }

    /// Writes a value that needs no escaping.
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

/// Parses a format with field names in braces; `{{` and `}}` stand for literal braces.
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
    use crate::LINE_BYTES_MAX;

    fn written(format: &Format, line: &Line<'_>) -> String {
        let mut stamp = Stamp::default();
        stamp.set(line.time);
        let mut out = Vec::new();
        format.write(line, &stamp, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    fn line<'a>(client: &'a ClientText, value: &'a [u8]) -> Line<'a> {
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
