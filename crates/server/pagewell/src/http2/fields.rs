//! The fields of one header block: as they came, as a plain request of HTTP/1.1, and as a block for hyper.
//! What is written as a request reads as the fields that it was made of, whatever they hold: that is what the
//! tests at the end are about, and nothing is answered by what was read otherwise.

use crate::hit::read::{is_control, is_token};
use hpack::{Decoder, FIELD_BYTES, write_field};

/// A field that no request may have over HTTP/2 (RFC 9113 section 8.2.2). hyper, which finds it in a block,
/// ends the stream with PROTOCOL_ERROR.
const MALFORMED: (&[u8], &[u8]) = (b"connection", b"malformed");

/// The fields of a request's line (RFC 9113 section 8.3.1, RFC 8441 section 4).
const PSEUDO: [&[u8]; 5] = [b":method", b":scheme", b":authority", b":path", b":protocol"];

/// The place of a header block in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// It opens a stream.
    Request,
    /// It comes behind a request's content.
    Trailers,
}

/// Fields, in their order.
#[derive(Debug, Default)]
pub struct Fields {
    /// Names and values, one behind the other.
    bytes: Vec<u8>,
    /// Where each name and each value ends.
    ends: Vec<(u32, u32)>,
    /// What they count, in bytes (RFC 9113 section 6.5.2).
    size: usize,
    /// There were more than the bound: not all are here.
    is_cut: bool,
}

impl Fields {
    /// Reads a header block. Fields beyond `size_max` are not kept but for the one with which it is passed,
    /// so that whoever reads them next sees that there were more.
    ///
    /// # Errors
    /// A block that cannot be read.
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

    /// How many there are, those of the request's line left out.
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

    /// Writes them as a header block that stands by itself. In the place of a malformed one goes a field by
    /// which hyper sees that it is (RFC 9113 section 8.1.1).
    pub fn write_block(&self, block: Block, out: &mut Vec<u8>) {
        if self.are_malformed(block) {
            let (name, value) = MALFORMED;
            return write_field(name, value, out);
        }
        self.iter().for_each(|(name, value)| write_field(name, value, out));
    }

    /// Whether the block is malformed in a way that hyper does not look for, or ends the connection for: a
    /// value with white space around it (RFC 9113 section 8.2.1), trailers with a field of the request's line
    /// (section 8.1), a field of that line that there is not (section 8.3).
    fn are_malformed(&self, block: Block) -> bool {
        let is_odd = |(name, value): (&[u8], &[u8])| {
            let is_of_line = name.first() == Some(&b':');
            let is_known = block == Block::Request && PSEUDO.contains(&name);
            has_space_around(value) || (is_of_line && !is_known)
        };
        self.iter().any(is_odd)
    }

    /// Writes the request that they make, by a connection of this scheme, as the header section of one of
    /// HTTP/1.1, for the reader of plain requests, into `text`, which it empties first. `None` for what is
    /// not plain, or not as it should be (RFC 9113 section 8.3.1), which is hyper's to judge.
    ///
    /// What is written reads as the fields that it was made of: nothing in them ends a line, or a name.
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
                // Of these there are none here (section 8.2.2), but for one word of one.
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade" => return None,
                b"te" if value != b"trailers" => return None,
                // Beside :authority it may say another.
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

    /// They may come in crumbs (section 8.2.3).
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

/// The fields that make a request's line.
#[derive(Default)]
struct Pseudo<'a> {
    method: &'a [u8],
    scheme: &'a [u8],
    authority: &'a [u8],
    path: &'a [u8],
}

impl<'a> Pseudo<'a> {
    /// All of them, each once, before all others.
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
        // Each takes a place that was empty: with four of them there are all.
        (fields.ends.len() >= Pseudo::COUNT).then_some(all)
    }
}

/// A token in lower case (RFC 9113 section 8.2.1): no colon, no capital.
fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_token(*byte) && !byte.is_ascii_uppercase())
}

/// Without control characters, and without white space around it (section 8.2.1).
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
    use crate::config::Limits;
    use crate::hit::read;
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
    fn what_hyper_would_let_pass_is_marked_for_it() {
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
        // A request of which something is missing is none: it might be the session's cookie.
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
        /// Whatever the fields hold: what is written is either nothing, or read back as just these fields.
        #[test]
        fn what_is_written_reads_as_what_it_was_made_of(
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
