//! Decodes a column value from a row: first its bytes, by the column type, then their meaning.
//!
//! The two steps are separate so that an unused column costs only the computation of its length. Sources:
//! `log_event_print_value` and `Field::unpack` of the servers.

use super::network::uuid_of_record;
use super::temporal::{Date, DateTime, Time, Timestamp, fraction_len};
use super::{Value, decimal};
use crate::charset::Charset;
use crate::column::{Column, ColumnKind, Sign, Special};
use crate::compressed;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::borrow::Cow;

/// Consumes the bytes of a value of this column type.
///
/// # Errors
/// `Truncated`, `BadLength`.
pub(crate) fn raw<'a>(kind: ColumnKind, row: &mut Reader<'a>) -> Result<&'a [u8], Refusal> {
    let len = match kind {
        ColumnKind::Null => 0,
        ColumnKind::Tiny | ColumnKind::Year => 1,
        ColumnKind::Short => 2,
        ColumnKind::Int24 | ColumnKind::Date | ColumnKind::OldTime => 3,
        ColumnKind::Long | ColumnKind::Float | ColumnKind::OldTimestamp => 4,
        ColumnKind::LongLong | ColumnKind::Double | ColumnKind::OldDateTime => 8,
        ColumnKind::Decimal { precision, scale } => decimal::packed_len(precision, scale)?,
        ColumnKind::Bit { bits } => usize::from(bits).div_ceil(8),
        ColumnKind::Time { digits } => 3 + fraction_len(digits),
        ColumnKind::DateTime { digits } => 5 + fraction_len(digits),
        ColumnKind::Timestamp { digits } => 4 + fraction_len(digits),
        ColumnKind::Enum { bytes } | ColumnKind::Set { bytes } => usize::from(bytes),
        ColumnKind::Varchar { max_bytes }
        | ColumnKind::Char { max_bytes }
        | ColumnKind::CompressedVarchar { max_bytes } => {
            if max_bytes > 255 {
                usize::from(row.u16()?)
            } else {
                usize::from(row.u8()?)
            }
        }
        ColumnKind::Blob { length_bytes }
        | ColumnKind::CompressedBlob { length_bytes }
        | ColumnKind::Json { length_bytes }
        | ColumnKind::Geometry { length_bytes }
        | ColumnKind::Vector { length_bytes } => {
            let len = row.uint(usize::from(length_bytes))?;
            return row.take_long(len);
        }
    };
    row.take(len)
}

/// Decodes the bytes of a value.
///
/// # Errors
/// `BadValue`, `BadLength`, `BadCompression`.
pub(crate) fn meaning<'a>(column: &'a Column, raw: &'a [u8]) -> Result<Value<'a>, Refusal> {
    let mut reader = Reader::new(raw);
    Ok(match column.kind {
        ColumnKind::Null => Value::Null,
        ColumnKind::Tiny
        | ColumnKind::Short
        | ColumnKind::Int24
        | ColumnKind::Long
        | ColumnKind::LongLong => match (integer(column.sign, raw)?, column.special) {
            (Value::UInt(number), Special::Filled(digits)) => {
                Value::Text(format!("{number:0digits$}", digits = usize::from(digits)).into())
            }
            (number, _) => number,
        },
        ColumnKind::Float => match column.special {
            Special::Scaled(digits) => scaled(f32::from_le_bytes(reader.array()?).into(), digits),
            _ => Value::Float(f32::from_le_bytes(reader.array()?)),
        },
        ColumnKind::Double => match column.special {
            Special::Scaled(digits) => scaled(f64::from_le_bytes(reader.array()?), digits),
            _ => Value::Double(f64::from_le_bytes(reader.array()?)),
        },
        ColumnKind::Decimal { precision, scale } => {
            let text = decimal::text(raw, precision, scale)?;
            match column.special {
                Special::Filled(digits) => Value::Decimal(filled_up(text, usize::from(digits))),
                _ => Value::Decimal(text),
            }
        }
        ColumnKind::Bit { .. } => Value::Bits(reader.uint_big(raw.len())?),
        ColumnKind::Year => match reader.u8()? {
            0 => Value::Year(0),
            year => Value::Year(1900 + u16::from(year)),
        },
        ColumnKind::Date => Value::Date(Date::of_row(&mut reader)?),
        ColumnKind::OldTime => Value::Time(Time::of_old_row(&mut reader)?),
        ColumnKind::Time { digits } => Value::Time(Time::of_row(&mut reader, digits)?),
        ColumnKind::OldDateTime => Value::DateTime(DateTime::of_old_row(&mut reader)?),
        ColumnKind::DateTime { digits } => Value::DateTime(DateTime::of_row(&mut reader, digits)?),
        ColumnKind::OldTimestamp => Value::Timestamp(Timestamp::of_old_row(&mut reader)?),
        ColumnKind::Timestamp { digits } => {
            Value::Timestamp(Timestamp::of_row(&mut reader, digits)?)
        }
        ColumnKind::Varchar { .. } | ColumnKind::Blob { .. } => {
            text(column.charset, Cow::Borrowed(raw))
        }
        ColumnKind::Char { max_bytes } => character(column, raw, usize::from(max_bytes)),
        ColumnKind::CompressedVarchar { .. } | ColumnKind::CompressedBlob { .. } => {
            text(column.charset, Cow::Owned(compressed::column(raw)?))
        }
        ColumnKind::Enum { .. } => member(column, reader.uint(raw.len())? as u16),
        ColumnKind::Set { .. } => members(column, reader.uint(raw.len())?),
        ColumnKind::Json { .. } => Value::Json(Cow::Borrowed(raw)),
        ColumnKind::Geometry { .. } | ColumnKind::Vector { .. } => Value::Bytes(Cow::Borrowed(raw)),
    })
}

/// A number with `digits` digits after the decimal point.
fn scaled<'a>(number: f64, digits: u8) -> Value<'a> {
    Value::Text(format!("{number:.digits$}", digits = usize::from(digits)).into())
}

/// A number with leading zeros, so that it has at least `digits` digits before the decimal point.
fn filled_up(text: String, digits: usize) -> String {
    let before = text.find('.').unwrap_or(text.len());
    "0".repeat(digits.saturating_sub(before)) + &text
}

/// An integer of one to eight bytes, sign-extended if it is signed.
fn integer<'a>(sign: Sign, raw: &[u8]) -> Result<Value<'a>, Refusal> {
    let bits = Reader::new(raw).uint(raw.len())?;
    let unused = 64 - 8 * raw.len() as u32;
    let is_high = bits >> (63 - unused) & 1 == 1;
    Ok(match sign {
        Sign::Unsigned => Value::UInt(bits),
        Sign::Signed => Value::Int(((bits << unused) as i64) >> unused),
        // The value is the same with either sign.
        Sign::Unknown if !is_high => Value::Int(bits as i64),
        Sign::Unknown => Value::SignUnknown(bits, raw.len() as u8),
    })
}

fn text(charset: Option<Charset>, bytes: Cow<'_, [u8]>) -> Value<'_> {
    let Some(charset) = charset else { return Value::Coded(bytes, None) };
    if charset == Charset::Binary {
        return Value::Bytes(bytes);
    }
    let decoded = match &bytes {
        Cow::Borrowed(bytes) => charset.decode(bytes),
        Cow::Owned(bytes) => charset.decode(bytes).map(|text| Cow::Owned(text.into_owned())),
    };
    match decoded {
        Some(text) => Value::Text(text),
        None => Value::Coded(bytes, charset.collation()),
    }
}

/// Decodes `CHAR` and `BINARY`, and MariaDB types that are stored like them. The padding to their length
/// (spaces or zeros) is not sent.
fn character<'a>(column: &'a Column, raw: &'a [u8], max_bytes: usize) -> Value<'a> {
    let filled = |len: usize| {
        let mut bytes = raw.to_vec();
        bytes.resize(len.max(raw.len()), 0);
        bytes
    };
    match column.special {
        Special::Uuid | Special::Inet6 => match <[u8; 16]>::try_from(filled(16)) {
            Ok(bytes) if column.special == Special::Uuid => Value::Uuid(uuid_of_record(bytes)),
            Ok(bytes) => Value::Inet6(bytes),
            Err(bytes) => Value::Bytes(Cow::Owned(bytes)),
        },
        Special::Inet4 => match <[u8; 4]>::try_from(filled(4)) {
            Ok(bytes) => Value::Inet4(bytes),
            Err(bytes) => Value::Bytes(Cow::Owned(bytes)),
        },
        _ if column.charset == Some(Charset::Binary) && raw.len() < max_bytes => {
            Value::Bytes(Cow::Owned(filled(max_bytes)))
        }
        _ => text(column.charset, Cow::Borrowed(raw)),
    }
}

fn member(column: &Column, number: u16) -> Value<'_> {
    let text = number
        .checked_sub(1)
        .and_then(|at| column.members.as_ref()?.get(usize::from(at)))
        .map(AsRef::as_ref);
    Value::Enum(number, text)
}

fn members(column: &Column, bits: u64) -> Value<'_> {
    let Some(names) = &column.members else { return Value::Set(bits, None) };
    if names.len() < 64 && bits >> names.len() != 0 {
        return Value::Set(bits, None);
    }
    let chosen: Vec<&str> = names
        .iter()
        .take(64)
        .enumerate()
        .filter(|(at, _)| bits >> at & 1 == 1)
        .map(|(_, name)| name.as_ref())
        .collect();
    Value::Set(bits, Some(chosen.join(",")))
}
