//! MySQL's binary JSON as text.
//!
//! | type | content |
//! |---|---|
//! | 0, 2 | a small object or array: two-byte offsets |
//! | 1, 3 | a large object or array: four-byte offsets |
//! | 4 | null, true or false |
//! | 5 to 11 | integers of 16, 32, 64 bits, and a double |
//! | 12 | a string in UTF-8 |
//! | 15 | a value of another column type |
//!
//! The text is formatted like the server's: `{"a": 1, "b": [true, null]}`, keys in the server's order (by
//! length, then by bytes). Decimals and times are written as in SQL, other opaque values as `"base16:type…:…"`.
//! Depth, text length and number of values are limited. Source: `sql/json_binary.h`. MariaDB's JSON is text and
//! is not handled here.

use super::temporal::{Date, DateTime, Time};
use super::{decimal, hex};
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::fmt::Write as _;

/// Limits for the conversion of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum nesting depth of objects and arrays.
    pub depth: usize,
    /// The maximum length of the text in bytes.
    pub text_bytes: usize,
    /// The maximum number of values in total.
    pub values: usize,
}

impl Default for Limits {
    /// 100 levels (MySQL's own limit), 1 MiB of text, 100,000 values.
    fn default() -> Limits {
        Limits { depth: 100, text_bytes: 1 << 20, values: 100_000 }
    }
}

const SMALL_MAP: u8 = 0;
const LARGE_MAP: u8 = 1;
const SMALL_LIST: u8 = 2;
const LARGE_LIST: u8 = 3;
const LITERAL: u8 = 4;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

/// The document as text. As in the server, an empty document is `null`.
///
/// # Errors
/// `Truncated`, `BadValue`, `BadLength` if the document is invalid; `TooDeep`, `TooLong` if it exceeds the
/// limits.
pub fn text(document: &[u8], limits: Limits) -> Result<String, Refusal> {
    let Some((kind, body)) = document.split_first() else { return Ok("null".to_owned()) };
    let mut writer = Writer { out: String::new(), limits, values: 0 };
    writer.value(*kind, body, 0)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    limits: Limits,
    values: usize,
}

/// The size of offsets in bytes: two or four.
#[derive(Clone, Copy)]
struct Width(usize);

impl Writer {
    fn value(&mut self, kind: u8, body: &[u8], depth: usize) -> Result<(), Refusal> {
        self.values += 1;
        if self.values > self.limits.values || self.out.len() > self.limits.text_bytes {
            return Err(Refusal::TooLong);
        }
        if depth > self.limits.depth {
            return Err(Refusal::TooDeep);
        }
        match kind {
            SMALL_MAP => self.map(body, Width(2), depth),
            LARGE_MAP => self.map(body, Width(4), depth),
            SMALL_LIST => self.list(body, Width(2), depth),
            LARGE_LIST => self.list(body, Width(4), depth),
            STRING => self.string(variable(body)?),
            OPAQUE => self.opaque(body),
            _ => self.scalar(kind, body),
        }
    }

    fn scalar(&mut self, kind: u8, body: &[u8]) -> Result<(), Refusal> {
        let mut reader = Reader::new(body);
        let text = match kind {
            LITERAL => match reader.u8()? {
                0 => "null".to_owned(),
                1 => "true".to_owned(),
                2 => "false".to_owned(),
                _ => return Err(Refusal::BadValue),
            },
            5 => i16::from_le_bytes(reader.array()?).to_string(),
            6 => reader.u16()?.to_string(),
            7 => i32::from_le_bytes(reader.array()?).to_string(),
            8 => reader.u32()?.to_string(),
            9 => i64::from_le_bytes(reader.array()?).to_string(),
            10 => reader.u64()?.to_string(),
            11 => {
                let number = f64::from_le_bytes(reader.array()?);
                // A double is written with a decimal point: 1 and 1.0 are different documents.
                if number == number.trunc() { format!("{number}.0") } else { number.to_string() }
            }
            _ => return Err(Refusal::BadValue),
        };
        self.out.push_str(&text);
        Ok(())
    }

    fn map(&mut self, body: &[u8], width: Width, depth: usize) -> Result<(), Refusal> {
        let (count, size) = sizes(body, width)?;
        let body = body.get(..size).ok_or(Refusal::Truncated)?;
        let keys = 2 * width.0;
        let values = keys + count * (width.0 + 2);
        self.out.push('{');
        for at in 0..count {
            let mut entry = Reader::new(body.get(keys + at * (width.0 + 2)..).unwrap_or_default());
            let offset = entry.uint(width.0)? as usize;
            let len = usize::from(entry.u16()?);
            let key = body.get(offset..).and_then(|rest| rest.get(..len));
            if at > 0 {
                self.out.push_str(", ");
            }
            self.string(key.ok_or(Refusal::Truncated)?)?;
            self.out.push_str(": ");
            self.entry(body, values + at * (width.0 + 1), width, depth)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn list(&mut self, body: &[u8], width: Width, depth: usize) -> Result<(), Refusal> {
        let (count, size) = sizes(body, width)?;
        let body = body.get(..size).ok_or(Refusal::Truncated)?;
        self.out.push('[');
        for at in 0..count {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.entry(body, 2 * width.0 + at * (width.0 + 1), width, depth)?;
        }
        self.out.push(']');
        Ok(())
    }

    /// Writes a value from its entry: its type, and either the value itself (if it fits) or its offset.
    fn entry(&mut self, body: &[u8], at: usize, width: Width, depth: usize) -> Result<(), Refusal> {
        let mut entry = Reader::new(body.get(at..).unwrap_or_default());
        let kind = entry.u8()?;
        let is_inline = matches!(kind, LITERAL | 5 | 6) || width.0 == 4 && matches!(kind, 7 | 8);
        let value = if is_inline {
            entry.take(width.0)?
        } else {
            let offset = entry.uint(width.0)? as usize;
            body.get(offset..).ok_or(Refusal::Truncated)?
        };
        self.value(kind, value, depth + 1)
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::BadValue)?;
        if self.out.len() + text.len() > self.limits.text_bytes {
            return Err(Refusal::TooLong);
        }
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                // Writing to a string cannot fail.
                letter if u32::from(letter) < 0x20 => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(letter));
                }
                letter => self.out.push(letter),
            }
        }
        self.out.push('"');
        Ok(())
    }

    /// Writes a value of a column type: the type, a variable-length integer, the bytes.
    fn opaque(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let (kind, rest) = body.split_first().ok_or(Refusal::Truncated)?;
        let bytes = variable(rest)?;
        let mut reader = Reader::new(bytes);
        match kind {
            // NEWDECIMAL: precision, scale, packed digits.
            246 => {
                let (precision, scale) = (reader.u8()?, reader.u8()?);
                let text = decimal::text(reader.rest(), precision, scale)?;
                self.out.push_str(&text);
                Ok(())
            }
            // DATE, TIME, DATETIME, TIMESTAMP in their packed format.
            10 | 11 | 12 | 7 => {
                let text = packed_time(*kind, i64::from_le_bytes(reader.array()?));
                self.string(text.as_bytes())
            }
            kind => {
                if self.out.len() + 2 * bytes.len() > self.limits.text_bytes {
                    return Err(Refusal::TooLong);
                }
                let text = format!("base16:type{kind}:{}", hex(bytes));
                self.string(text.as_bytes())
            }
        }
    }
}

/// The number of entries, and the size in bytes. The entries must fit into the size.
fn sizes(body: &[u8], width: Width) -> Result<(usize, usize), Refusal> {
    let mut reader = Reader::new(body);
    let (count, size) = (reader.uint(width.0)? as usize, reader.uint(width.0)? as usize);
    let least = count.checked_mul(width.0 + 1).ok_or(Refusal::BadLength)?;
    if least > size || size > body.len() {
        return Err(Refusal::BadLength);
    }
    Ok((count, size))
}

/// Bytes preceded by their length: seven bits per byte, little-endian, at most five bytes.
fn variable(body: &[u8]) -> Result<&[u8], Refusal> {
    let mut len = 0u64;
    for (at, byte) in body.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Reader::new(&body[at + 1..]).take_long(len);
        }
    }
    Err(Refusal::Truncated)
}

/// `TIME_to_longlong_packed`: 40 bits of date and time, 24 bits of microseconds.
fn packed_time(kind: u8, packed: i64) -> String {
    let magnitude = packed.unsigned_abs();
    let (whole, microseconds) = (magnitude >> 24, (magnitude & 0xff_ffff) as u32);
    let months = whole >> 22;
    let date = Date {
        year: (months / 13).min(9999) as u16,
        month: (months % 13) as u8,
        day: (whole >> 17 & 31) as u8,
    };
    let time = Time {
        is_negative: kind == 11 && packed < 0,
        hours: (whole >> 12 & if kind == 11 { 0x3ff } else { 31 }) as u16,
        minutes: (whole >> 6 & 63) as u8,
        seconds: (whole & 63) as u8,
        microseconds: microseconds.min(999_999),
        digits: 6,
    };
    match kind {
        10 => date.to_string(),
        11 => time.to_string(),
        _ => DateTime { date, time }.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &[u8]) -> Result<String, Refusal> {
        text(document, Limits::default())
    }

    /// `{"a": 1, "b": [true, "x"]}`, encoded by hand according to `json_binary.h`.
    fn document() -> Vec<u8> {
        let mut list = vec![2, 0, 12, 0, LITERAL, 1, 0, STRING, 10, 0, 1, b'x'];
        let mut map = vec![SMALL_MAP, 2, 0, 0, 0];
        map.extend_from_slice(&[18, 0, 1, 0, 19, 0, 1, 0]);
        map.extend_from_slice(&[5, 1, 0, SMALL_LIST, 20, 0]);
        map.extend_from_slice(b"ab");
        map.append(&mut list);
        map[3] = (map.len() - 1) as u8;
        map
    }

    #[test]
    fn a_document_is_written_as_the_server_does() {
        assert_eq!(read(&document()).as_deref(), Ok(r#"{"a": 1, "b": [true, "x"]}"#));
        assert_eq!(read(&[STRING, 3, b'"', b'\n', 1]).as_deref(), Ok(r#""\"\n\u0001""#));
        assert_eq!(read(&[]).as_deref(), Ok("null"));
        assert_eq!(read(&[9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).as_deref(), Ok("-1"));
    }

    #[test]
    fn a_cut_document_is_refused() {
        let whole = document();
        for len in 1..whole.len() {
            assert!(read(&whole[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn a_list_that_holds_itself_comes_to_an_end() {
        // Each of its entries is the list itself.
        let list = [SMALL_LIST, 2, 0, 10, 0, SMALL_LIST, 0, 0, SMALL_LIST, 0, 0];
        let limits = Limits { depth: 30, text_bytes: 1000, values: 1000 };
        assert!(matches!(text(&list, limits), Err(Refusal::TooLong | Refusal::TooDeep)));
    }
}
