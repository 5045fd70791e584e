//! The fields of one header block. They are read from HPACK, and written either as a plain HTTP/1.1
//! request or as a header block for hyper.
//!
//! A request that is written as HTTP/1.1 parses as exactly the fields that it was made from, whatever
//! their content. The tests at the end check this. A plain hit relies on it.

use crate::hit::read::{is_control, is_token};
use hpack::{Decoder, FIELD_BYTES, write_field};

/// A field that no HTTP/2 request may have (RFC 9113 section 8.2.2). If hyper finds it in a block, it
/// ends the stream with PROTOCOL_ERROR.
const MALFORMED: (&[u8], &[u8]) = (b"connection", b"malformed");

/// The pseudo-header fields of a request (RFC 9113 section 8.3.1, RFC 8441 section 4).
const PSEUDO: [&[u8]; 5] = [b":method", b":scheme", b":authority", b":path", b":protocol"];

/// The position of a header block in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The block opens a stream.
    Request,
    /// The block follows the request's content.
    Trailers,
}

/// The fields of a header block, in order.
#[derive(Debug, Default)]
pub struct Fields {
    /// Names and values, concatenated.
    bytes: Vec<u8>,
    /// The end of each name and of its value in `bytes`.
    ends: Vec<(u32, u32)>,
    /// The size of the field list in bytes, as RFC 9113 section 6.5.2 counts it.
    size: usize,
    /// Whether the list exceeded the limit, so that fields are missing.
    is_cut: bool,
}

impl Fields {
    /// Decodes a header block into `self`. After the field that exceeds `size_max` bytes, further
    /// fields are decoded but not stored. That field is stored, so that the next reader of the list
    /// detects the excess.
    ///
    /// # Errors
    /// The block is not valid HPACK.
    pub fn read(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        size_max: usize,
    ) -> Result<(), hpack::Error> {
        self.bytes.clear();
        self.ends.clear();
        self.size = 0;
        self.is_cut = false;
        decoder.decode(block, |name, value| {
            if self.is_cut {
                return;
            }
            self.size += name.len() + value.len() + FIELD_BYTES;
            self.bytes.extend_from_slice(name);
            let name = self.bytes.len() as u32;
            self.bytes.extend_from_slice(value);
            self.ends.push((name, self.bytes.len() as u32));
            self.is_cut = self.size > size_max;
        })
    }

    /// The number of fields without the pseudo-header fields.
    pub fn lines(&self) -> usize {
        self.ends.len().saturating_sub(Pseudo::COUNT)
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |(name, value)| {
            let (name, value) = (*name as usize, *value as usize);
            let field = (&self.bytes[from..name], &self.bytes[name..value]);
            from = value;
            field
        })
    }

    /// Writes the fields as a header block that does not refer to a dynamic table. A malformed list is
    /// replaced by a field that hyper rejects (RFC 9113 section 8.1.1).
    pub fn write_block(&self, block: Block, out: &mut Vec<u8>) {
        if self.are_malformed(block) {
            let (name, value) = MALFORMED;
            return write_field(name, value, out);
        }
        self.iter().for_each(|(name, value)| write_field(name, value, out));
    }

    /// Whether the block is malformed in a way that hyper either does not check or answers by closing
    /// the connection. These are: white space around a value (RFC 9113 section 8.2.1), pseudo-header
    /// fields in trailers (section 8.1), unknown pseudo-header fields (section 8.3), and a path with a fragment.
    fn are_malformed(&self, block: Block) -> bool {
        let is_odd = |(name, value): (&[u8], &[u8])| {
            let is_of_line = name.first() == Some(&b':');
            let is_known = block == Block::Request && PSEUDO.contains(&name);
            // A fragment is no part of a path (section 8.3.1).
            let has_fragment = name == b":path" && value.contains(&b'#');
            has_space_around(value) || has_fragment || (is_of_line && !is_known)
        };
        self.iter().any(is_odd)
    }

    /// Writes the fields as the header section of an HTTP/1.1 request into `text`, which is cleared
    /// first. `scheme` is the connection's scheme. `None` if the request is not plain, or violates RFC
    /// 9113 section 8.3.1; hyper handles it then.
    ///
    /// The text parses as the same fields, because no name or value that is written contains a
    /// delimiter.
    pub fn write_plain(&self, scheme: &str, text: &mut Vec<u8>) -> Option<()> {
        if self.is_cut {
            return None;
        }
        let request = Pseudo::read(self)?;
        if request.scheme != scheme.as_bytes() {
            return None;
        }
        let method: &[u8] = match request.method {
            b"GET" => b"GET ",
            b"HEAD" => b"HEAD ",
            _ => return None,
        };
        text.clear();
        for piece in [method, request.path, b" HTTP/1.1\r\nhost: ", request.authority, b"\r\n"] {
            text.extend_from_slice(piece);
        }
        let mut has_cookies = false;
        for (name, value) in self.iter().skip(Pseudo::COUNT) {
            if !is_plain_name(name) || !is_plain_value(value) {
                return None;
            }
            match name {
                // Connection-specific fields are forbidden, except `te: trailers` (section 8.2.2).
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade" => return None,
                b"te" if value != b"trailers" => return None,
                // It could differ from `:authority`.
                b"host" => return None,
                b"cookie" => has_cookies = true,
                _ => write_line(name, value, text),
            }
        }
        if has_cookies {
            self.write_cookies(text);
        }
        text.extend_from_slice(b"\r\n");
        Some(())
    }

    /// Joins the cookie fields into one line (section 8.2.3).
    fn write_cookies(&self, text: &mut Vec<u8>) {
        let mut before: &[u8] = b"cookie: ";
        for (_, crumb) in self.iter().filter(|(name, _)| *name == b"cookie") {
            text.extend_from_slice(before);
            text.extend_from_slice(crumb);
            before = b"; ";
        }
        text.extend_from_slice(b"\r\n");
    }
}

fn write_line(name: &[u8], value: &[u8], text: &mut Vec<u8>) {
    for piece in [name, b": ", value, b"\r\n"] {
        text.extend_from_slice(piece);
    }
}

/// The pseudo-header fields of a plain request.
#[derive(Default)]
struct Pseudo<'a> {
    method: &'a [u8],
    scheme: &'a [u8],
    authority: &'a [u8],
    path: &'a [u8],
}

impl<'a> Pseudo<'a> {
    /// All four are required, once each, before all other fields.
    const COUNT: usize = 4;

    fn read(fields: &'a Fields) -> Option<Pseudo<'a>> {
        let mut all = Pseudo::default();
        for (name, value) in fields.iter().take(Pseudo::COUNT) {
            let place = match name {
                b":method" => &mut all.method,
                b":scheme" => &mut all.scheme,
                b":authority" => &mut all.authority,
                b":path" => &mut all.path,
                _ => return None,
            };
            let is_visible = value.iter().all(|byte| (0x21..=0x7e).contains(byte));
            if !place.is_empty() || value.is_empty() || !is_visible {
                return None;
            }
            *place = value;
        }
        // Four fields, each in a place that was empty: all are present.
        (fields.ends.len() >= Pseudo::COUNT).then_some(all)
    }
}

/// Whether `name` is a token without capitals (RFC 9113 section 8.2.1).
fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_token(*byte) && !byte.is_ascii_uppercase())
}

/// Whether `value` has neither control characters nor white space around it (section 8.2.1).
fn is_plain_value(value: &[u8]) -> bool {
    !value.iter().fold(false, |any, byte| any | is_control(*byte)) && !has_space_around(value)
}

fn has_space_around(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_space(value.first()) || is_space(value.last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit::read;
    use config::Limits;
    use proptest::prelude::*;

    fn fields(list: &[(&[u8], &[u8])]) -> Fields {
        let mut block = Vec::new();
        list.iter().for_each(|(name, value)| write_field(name, value, &mut block));
        let mut fields = Fields::default();
        fields.read(&mut Decoder::default(), &block, 10_000).unwrap();
        fields
    }

    fn plain(list: &[(&str, &str)]) -> Option<String> {
        let list: Vec<_> = list.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        let mut text = Vec::new();
        fields(&list).write_plain("https", &mut text)?;
        Some(String::from_utf8(text).unwrap())
    }

    const LINE: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/b?c")];

    #[test]
    fn a_plain_request() {
        let more = [("accept", "*/*"), ("cookie", "a=1"), ("te", "trailers"), ("cookie", "b=2")];
        assert_eq!(
            plain(&[&LINE[..], &more].concat()).unwrap(),
            "GET /b?c HTTP/1.1\r\nhost: a.test\r\naccept: */*\r\nte: trailers\r\n\
             cookie: a=1; b=2\r\n\r\n"
        );
    }

    #[test]
    fn all_else_is_hypers() {
        for (at, other) in [
            (0, (":method", "POST")),
            (0, (":method", "CONNECT")),
            (1, (":scheme", "http")),
            (1, (":scheme", "ftp")),
            (1, (":method", "GET")),
            (2, (":authority", "")),
            (2, (":authority", "a b")),
            (2, (":authority", "a\r\nx: y")),
            (3, (":path", "/b HTTP/1.1\r\nx: y")),
            (3, (":path", "")),
            (3, (":path", "/\u{e9}")),
            (3, (":protocol", "websocket")),
            (3, ("accept", "*/*")),
        ] {
            let mut line = LINE;
            line[at] = other;
            assert_eq!(plain(&line), None, "{other:?}");
        }
        assert_eq!(plain(&LINE[..3]), None);
        for more in [
            ("Accept", "*/*"),
            (":path", "/"),
            ("", "x"),
            ("x y", "z"),
            ("x: y", "z"),
            ("x", "y\r\nz: 1"),
            ("x", "y\0"),
            ("x", " y"),
            ("x", "y\t"),
            ("host", "a.test"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            ("cookie", "a\nb"),
        ] {
            assert_eq!(plain(&[&LINE[..], &[more]].concat()), None, "{more:?}");
        }
    }

    #[test]
    fn malformed_requests_are_marked_for_hyper() {
        let is_marked = |list: &[(&str, &str)], block: Block| {
            let list: Vec<_> = list.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
            let mut written = Vec::new();
            fields(&list).write_block(block, &mut written);
            let mut again = Fields::default();
            again.read(&mut Decoder::default(), &written, 10_000).unwrap();
            again.iter().any(|field| field == MALFORMED)
        };
        assert!(!is_marked(&LINE, Block::Request));
        assert!(!is_marked(&[("x", "a b"), ("y", "")], Block::Trailers));
        for value in [" y", "y ", "\ty", "y\t", " "] {
            assert!(is_marked(&[&LINE[..], &[("x", value)]].concat(), Block::Request), "{value:?}");
            assert!(is_marked(&[("x", value)], Block::Trailers), "{value:?}");
        }
        assert!(is_marked(&[(":path", "/"), ("x", "y")], Block::Trailers));
        assert!(is_marked(&[(":path", "/a#b")], Block::Request));
        assert!(is_marked(&[("x", "y"), (":status", "200")], Block::Trailers));
        assert!(is_marked(&[&LINE[..], &[(":x", "y")]].concat(), Block::Request));
    }

    #[test]
    fn of_too_many_fields_those_are_kept_that_show_it() {
        let mut block = Vec::new();
        (0..100).for_each(|_| write_field(b"x", b"y", &mut block));
        let mut fields = Fields::default();
        fields.read(&mut Decoder::default(), &block, 100).unwrap();
        assert_eq!((fields.iter().count(), fields.size), (3, 102));
        // A truncated request must not be answered: the missing field might be a session cookie.
        let mut block = Vec::new();
        let field = |(name, value): &(&str, &str)| {
            write_field(name.as_bytes(), value.as_bytes(), &mut block)
        };
        LINE.iter().for_each(field);
        (0..9).for_each(|_| write_field(b"cookie", b"a=b", &mut block));
        let mut read = |size_max: usize| {
            fields.read(&mut Decoder::default(), &block, size_max).unwrap();
            fields.write_plain("https", &mut Vec::new())
        };
        assert_eq!((read(1000), read(500)), (Some(()), None));
    }

    proptest! {
        /// For any fields, the text is either absent or parses as exactly these fields.
        #[test]
        fn a_written_block_is_read_as_the_same_fields(
            path in "/[ -~\r\n]{0,20}",
            authority in "[a-z.]{1,9}[ -~\r\n]{0,3}",
            more in prop::collection::vec(("[a-zA-Z: \r\n-]{0,8}", "[ -~\r\n\t]{0,12}"), 0..6),
        ) {
            let line = [(":method", "GET"), (":scheme", "https"), (":authority", &*authority), (":path", &*path)];
            let more: Vec<_> = more.iter().map(|(n, v)| (&**n, &**v)).filter(|(n, _)| *n != "cookie").collect();
            let Some(text) = plain(&[&line[..], &more].concat()) else { return Ok(()) };
            let mut places = Vec::new();
            let limits = Limits::default();
            if let Some(read) = read::read(text.as_bytes(), &limits, &mut places) {
                prop_assert_eq!(read.head_bytes, text.len());
                prop_assert_eq!(read.target, &*path);
                let mut lines = read.lines.iter();
                prop_assert_eq!(lines.next(), Some((&b"host"[..], authority.as_bytes())));
                let lines: Vec<_> = lines.collect();
                let more: Vec<_> = more.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
                prop_assert_eq!(lines, more);
            }
        }
    }
}
