//! Column values as decoded from a row event, and the text that represents them in a tag.
//!
//! [`Value::tag_text`] is the canonical text of a value, which replaces `{id}` in a tag:
//!
//! | type | text | example |
//! |---|---|---|
//! | integers, `BIT`, `YEAR` | decimal; `YEAR` with four digits; `ZEROFILL` with leading zeros | `-17`, `5`, `0000`, `00042` |
//! | `DECIMAL` | as SQL writes it, with all digits after the point | `12.50` |
//! | `DOUBLE` | the shortest decimal that parses to the same number; none if SQL writes an exponent | `0.1` |
//! | `FLOAT(M,D)`, `DOUBLE(M,D)` | with D digits after the decimal point | `1.50` |
//! | `FLOAT` | like `DOUBLE`; none with more than six digits, because SQL does not show all | `0.5` |
//! | `DATE`, `TIME`, `DATETIME` | as SQL writes it, with the column's digits after the point | `2026-02-28 09:30:00.500` |
//! | `TIMESTAMP` | like `DATETIME`, in UTC whatever the session's time zone | `2026-02-28 08:30:00` |
//! | character types | the text in UTF-8; trailing spaces of `CHAR` are not sent | `straße` |
//! | `BINARY`, `VARBINARY`, `BLOB`, `GEOMETRY` | lower-case hexadecimal digits | `00ff` |
//! | `ENUM`, `SET` | the member's text; members in the column's order with commas | `a,c` |
//! | `JSON` | the document as formatted by [`super::value::json`] | `{"a": 1}` |
//! | `UUID`, `INET6`, `INET4` | as MariaDB writes it | `192.0.2.1` |
//!
//! A value has no text if missing information could make it ambiguous; the tag of the whole table must then be
//! used. NULL has no text either. Nothing here guesses.

mod decimal;
pub mod json;
mod network;
pub(crate) mod read;
mod temporal;

pub use network::{inet4_text, inet6_text, uuid_text};
pub use temporal::{Date, DateTime, Time, Timestamp};

use std::borrow::Cow;
use std::fmt::Write as _;

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// An integer with its highest bit set in a column of unknown sign: its bits, and the size of the column in
    /// bytes.
    SignUnknown(u64, u8),
    /// `DECIMAL`, as SQL writes it.
    Decimal(String),
    /// `FLOAT`.
    Float(f32),
    /// `DOUBLE`.
    Double(f64),
    /// `BIT`, up to 64 bits.
    Bits(u64),
    /// `YEAR`; 0 is the year 0000.
    Year(u16),
    /// `DATE`.
    Date(Date),
    /// `TIME`.
    Time(Time),
    /// `DATETIME`.
    DateTime(DateTime),
    /// `TIMESTAMP`.
    Timestamp(Timestamp),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes without a character set.
    Bytes(Cow<'a, [u8]>),
    /// Text in a character set that is unknown or not supported, and the id of its collation, if known.
    Coded(Cow<'a, [u8]>, Option<u32>),
    /// A member of an `ENUM`: its number from 1 (0 is the empty text of an invalid value), and its text if the
    /// members are known.
    Enum(u16, Option<&'a str>),
    /// Members of a `SET`: one bit for each, and their texts if the members are known.
    Set(u64, Option<String>),
    /// `JSON` in MySQL's binary form ([`json::text`]).
    Json(Cow<'a, [u8]>),
    /// `JSON` that was changed in part: the new document is unknown.
    JsonInPart,
    /// `UUID` of MariaDB, in the byte order of its text.
    Uuid([u8; 16]),
    /// `INET6` of MariaDB.
    Inet6([u8; 16]),
    /// `INET4` of MariaDB.
    Inet4([u8; 4]),
}

/// The reason why a value has no canonical text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoText {
    /// The value is NULL.
    Null,
    /// The stream does not contain the sign of the column, and no schema is known.
    SignUnknown,
    /// The character set is unknown or not supported, and the value contains bytes outside ASCII.
    CharsetUnknown,
    /// The members of the `ENUM` or `SET` are unknown.
    MembersUnknown,
    /// Only the changes of the JSON document were sent.
    InPart,
    /// The JSON document is invalid, or exceeds a limit.
    BadJson,
    /// SQL does not show all digits of the number, or shows it with an exponent.
    Inexact,
}

impl NoText {
    /// The name of the reason in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NoText::Null => "null",
            NoText::SignUnknown => "sign-unknown",
            NoText::CharsetUnknown => "charset-unknown",
            NoText::MembersUnknown => "members-unknown",
            NoText::InPart => "in-part",
            NoText::BadJson => "bad-json",
            NoText::Inexact => "inexact",
        }
    }
}

impl Value<'_> {
    /// The canonical text (see the table at the top of this module).
    ///
    /// # Errors
    /// The reason why there is no canonical text.
    pub fn tag_text(&self) -> Result<Cow<'_, str>, NoText> {
        Ok(match self {
            Value::Null => return Err(NoText::Null),
            Value::SignUnknown(..) => return Err(NoText::SignUnknown),
            Value::Coded(..) => return Err(NoText::CharsetUnknown),
            Value::JsonInPart => return Err(NoText::InPart),
            Value::Enum(0, _) => Cow::Borrowed(""),
            Value::Enum(_, None) | Value::Set(_, None) => return Err(NoText::MembersUnknown),
            Value::Enum(_, Some(text)) => Cow::Borrowed(*text),
            Value::Set(_, Some(text)) | Value::Decimal(text) => Cow::Borrowed(text.as_str()),
            Value::Text(text) => Cow::Borrowed(text.as_ref()),
            Value::Json(bytes) => {
                Cow::Owned(json::text(bytes, json::Limits::default()).map_err(|_| NoText::BadJson)?)
            }
            Value::Bytes(bytes) => Cow::Owned(hex(bytes)),
            Value::Int(number) => Cow::Owned(number.to_string()),
            Value::UInt(number) | Value::Bits(number) => Cow::Owned(number.to_string()),
            Value::Double(number) if is_written_out(*number) => Cow::Owned(number.to_string()),
            Value::Float(number) => Cow::Owned(float_text(*number).ok_or(NoText::Inexact)?),
            Value::Double(_) => return Err(NoText::Inexact),
            Value::Year(year) => Cow::Owned(format!("{year:04}")),
            Value::Date(date) => Cow::Owned(date.to_string()),
            Value::Time(time) => Cow::Owned(time.to_string()),
            Value::DateTime(time) => Cow::Owned(time.to_string()),
            Value::Timestamp(time) => Cow::Owned(time.to_string()),
            Value::Uuid(bytes) => Cow::Owned(uuid_text(bytes)),
            Value::Inet6(bytes) => Cow::Owned(inet6_text(bytes)),
            Value::Inet4(bytes) => Cow::Owned(inet4_text(bytes)),
        })
    }
}

/// Whether SQL writes such a number without an exponent. `my_gcvt` uses one from sixteen digits before the
/// decimal point, and for small numbers; the exact limit is not needed here.
fn is_written_out(number: f64) -> bool {
    number == 0.0 || (1e-4..1e15).contains(&number.abs())
}

/// A `FLOAT` as SQL writes it, if that is exact.
fn float_text(number: f32) -> Option<String> {
    let text = number.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0');
    let is_short = digits.count() <= FLOAT_DIGITS && number.abs() < 1e6;
    (is_short && is_written_out(number.into())).then_some(text)
}

/// The number of digits that SQL shows of a `FLOAT`.
const FLOAT_DIGITS: usize = 6;

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
