//! Decodes header blocks (RFC 7541 sections 3.2, 5 and 6): indexed fields, literals and table size updates. One
//! decoder receives all blocks of one direction of a connection, in order. The caller interprets the fields and
//! limits their number.

use crate::table::Table;
use crate::{Error, TABLE_BYTES, huffman};

/// Decodes the header blocks of one direction of a connection, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// Buffers for the decoded Huffman strings.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    /// A decoder whose table has the size that applies without a SETTINGS frame, [`TABLE_BYTES`].
    fn default() -> Decoder {
        Decoder { table: Table::new(TABLE_BYTES), name: Vec::new(), value: Vec::new() }
    }
}

/// Whether a literal field is added to the dynamic table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    /// The field is added to the table.
    Indexed,
    /// The field is not added to the table.
    Apart,
}

impl Decoder {
    /// Decodes a whole header block, and calls `visit` with the name and value of each field, in order. A block
    /// of n bytes has at most n fields, but each of them may be as long as the longest field of the table. A
    /// caller that collects fields must therefore limit their total size.
    ///
    /// # Errors
    /// The block is invalid. No later block of this connection can be decoded either (RFC 7541 section 2.3).
    pub fn decode(
        &mut self,
        block: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let mut rest = Rest(block);
        let mut begun = false;
        while let Some(first) = rest.0.first().copied() {
            match first {
                0x80.. => {
                    let (name, value) = self.table.get(rest.integer(7)?)?;
                    visit(name, value);
                }
                0x40.. => self.literal(&mut rest, 6, Indexing::Indexed, &mut visit)?,
                0x20.. => {
                    let bytes = rest.integer(5)?;
                    if begun || bytes > TABLE_BYTES {
                        return Err(Error::TableSize);
                    }
                    self.table.resize(bytes);
                    continue;
                }
                // "Never indexed" (section 6.2.3) concerns only intermediaries that encode the field again.
                _ => self.literal(&mut rest, 4, Indexing::Apart, &mut visit)?,
            }
            begun = true;
        }
        Ok(())
    }

    /// Decodes a literal field: its value, and its name if that is not indexed (section 6.2).
    fn literal(
        &mut self,
        rest: &mut Rest<'_>,
        prefix: u32,
        kept: Indexing,
        visit: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let Decoder { table, name, value } = self;
        let index = rest.integer(prefix)?;
        let known = match index {
            0 => rest.string(name)?,
            _ => table.get(index)?.0,
        };
        let value = rest.string(value)?;
        visit(known, value);
        if kept == Indexing::Indexed {
            // Built before the table is changed: the name may belong to a field that is evicted by this one
            // (section 4.4).
            let (bytes, name) = ([known, value].concat(), known.len());
            table.add(bytes.into(), name);
        }
        Ok(())
    }
}

/// The part of a block that has not been decoded yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Result<u8, Error> {
        let (first, rest) = self.0.split_first().ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Decodes an integer whose first byte holds its `prefix` lowest bits (section 5.1).
    fn integer(&mut self, prefix: u32) -> Result<usize, Error> {
        let most = (1_usize << prefix) - 1;
        let first = usize::from(self.byte()?) & most;
        if first < most {
            return Ok(first);
        }
        let mut value = most;
        // Four bytes hold 28 bits. That is more than the length of any block.
        for shift in [0, 7, 14, 21] {
            let byte = usize::from(self.byte()?);
            value += (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::IntegerTooLarge)
    }

    /// Decodes a string (section 5.2). A plain string is borrowed from the block; a Huffman string is decoded
    /// into `out`.
    fn string<'b>(&mut self, out: &'b mut Vec<u8>) -> Result<&'b [u8], Error>
    where
        'a: 'b,
    {
        let is_coded = self.0.first().ok_or(Error::Truncated)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Error::Truncated)?;
        self.0 = rest;
        if !is_coded {
            return Ok(text);
        }
        out.clear();
        huffman::decode(text, out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(String, String)>;

    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Error> {
        let mut fields = Fields::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    fn fields(list: &[(&str, &str)]) -> Fields {
        list.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    const FIRST: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];

    /// RFC 7541 appendices C.3 and C.4: three requests of one connection.
    #[test]
    fn requests_of_appendix_c() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let coded = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for blocks in [plain, coded] {
            let mut decoder = Decoder::default();
            let second = [&FIRST[..], &[("cache-control", "no-cache")]].concat();
            let third = [
                (":method", "GET"),
                (":scheme", "https"),
                (":path", "/index.html"),
                (":authority", "www.example.com"),
                ("custom-key", "custom-value"),
            ];
            for (block, known) in blocks.iter().zip([&FIRST[..], &second, &third]) {
                assert_eq!(read(&mut decoder, &bytes(block)), Ok(fields(known)));
            }
            assert_eq!(decoder.table.bytes(), 164);
        }
    }

    /// RFC 7541 appendix C.6: Huffman-coded responses, with a table of 256 bytes that evicts fields.
    #[test]
    fn responses_of_appendix_c() {
        let mut decoder = Decoder::default();
        decoder.table.resize(256);
        let first =
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
            2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
        let (date, location) = ("Mon, 21 Oct 2013 20:13:21 GMT", "https://www.example.com");
        let known = |status, date| {
            fields(&[
                (":status", status),
                ("cache-control", "private"),
                ("date", date),
                ("location", location),
            ])
        };
        assert_eq!(read(&mut decoder, &bytes(first)), Ok(known("302", date)));
        assert_eq!(decoder.table.bytes(), 222);
        assert_eq!(read(&mut decoder, &bytes("4883 640e ffc1 c0bf")), Ok(known("307", date)));
        let third = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad
            94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0
            03ed 4ee5 b106 3d50 07";
        let mut last = known("200", "Mon, 21 Oct 2013 20:13:22 GMT");
        let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        last.extend(fields(&[("content-encoding", "gzip"), ("set-cookie", cookie)]));
        assert_eq!(read(&mut decoder, &bytes(third)), Ok(last));
        assert_eq!(decoder.table.bytes(), 215);
    }

    #[test]
    fn errors_are_reported() {
        let error = |hex: &str| read(&mut Decoder::default(), &bytes(hex)).unwrap_err();
        assert_eq!(error("80"), Error::IndexUnknown);
        assert_eq!(error("be"), Error::IndexUnknown, "the dynamic table is empty");
        assert_eq!(error("ff"), Error::Truncated);
        assert_eq!(error("ffffffffff01"), Error::IntegerTooLarge);
        assert_eq!(error("0002 61"), Error::Truncated);
        assert_eq!(error("0001 61"), Error::Truncated);
        assert_eq!(error("0001 6181 ff"), Error::HuffmanInvalid);
        assert_eq!(error("3fe2 1f"), Error::TableSize, "4,097 bytes");
        assert_eq!(error("82 20"), Error::TableSize, "behind a field");
        assert_eq!(read(&mut Decoder::default(), &bytes("3fe1 1f20 82")), Ok(fields(&FIRST[..1])));
    }

    #[test]
    fn a_field_that_is_larger_than_the_table_empties_it() {
        let mut decoder = Decoder::default();
        let small = bytes("4001 6101 62");
        assert_eq!(read(&mut decoder, &small), Ok(fields(&[("a", "b")])));
        assert_eq!(decoder.table.bytes(), 34);
        let large = [&bytes("4001 637f 8120")[..], &[b'v'; 0x7f + 1 + 0x1000]].concat();
        assert_eq!(read(&mut decoder, &large).unwrap()[0].1.len(), 4224);
        assert_eq!(decoder.table.bytes(), 0);
        assert_eq!(read(&mut decoder, &bytes("be")), Err(Error::IndexUnknown));
    }

    /// Section 4.4: the new field takes its name from the field that it evicts.
    #[test]
    fn a_name_may_be_that_of_the_field_that_leaves() {
        let mut decoder = Decoder::default();
        decoder.table.resize(40);
        assert_eq!(read(&mut decoder, &bytes("4003 616263 0131")).unwrap().len(), 1);
        assert_eq!(read(&mut decoder, &bytes("7e01 32")), Ok(fields(&[("abc", "2")])));
        assert_eq!(read(&mut decoder, &bytes("be")), Ok(fields(&[("abc", "2")])));
    }
}
