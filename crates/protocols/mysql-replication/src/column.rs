//! The columns of a table, with the properties by which their values are decoded.
//!
//! The stream always contains the types ([`ColumnKind`]). It has the other properties only if the server is
//! configured so. Not here: where they come from otherwise ([`crate::schema`], [`crate::Table::of`]).

use crate::charset::Charset;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::sync::Arc;

/// The maximum number of columns of a table in both servers.
pub(crate) const COLUMNS_MAX: u64 = 4096;

/// The type of a column in the stream. Sizes are in bytes, fractions in digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as in SQL; `Old` are the forms without a fraction")]
pub enum ColumnKind {
    Null,
    Tiny,
    Short,
    Int24,
    Long,
    LongLong,
    Float,
    Double,
    Decimal { precision: u8, scale: u8 },
    Bit { bits: u16 },
    Year,
    Date,
    OldTime,
    Time { digits: u8 },
    OldDateTime,
    DateTime { digits: u8 },
    OldTimestamp,
    Timestamp { digits: u8 },
    Varchar { max_bytes: u16 },
    Char { max_bytes: u16 },
    CompressedVarchar { max_bytes: u16 },
    Blob { length_bytes: u8 },
    CompressedBlob { length_bytes: u8 },
    Json { length_bytes: u8 },
    Geometry { length_bytes: u8 },
    Vector { length_bytes: u8 },
    Enum { bytes: u8 },
    Set { bytes: u8 },
}

impl ColumnKind {
    /// Decodes a column type from the type code of a table map and its part of the map's metadata.
    ///
    /// # Errors
    /// `Truncated`, `BadLength`, `UnknownColumnType`.
    pub(crate) fn read(code: u8, metadata: &mut Reader<'_>) -> Result<ColumnKind, Refusal> {
        Ok(match code {
            1 => ColumnKind::Tiny,
            2 => ColumnKind::Short,
            3 => ColumnKind::Long,
            4 => sized(metadata, 4, ColumnKind::Float)?,
            5 => sized(metadata, 8, ColumnKind::Double)?,
            6 => ColumnKind::Null,
            7 => ColumnKind::OldTimestamp,
            8 => ColumnKind::LongLong,
            9 => ColumnKind::Int24,
            10 => ColumnKind::Date,
            11 => ColumnKind::OldTime,
            12 => ColumnKind::OldDateTime,
            13 => ColumnKind::Year,
            15 => ColumnKind::Varchar { max_bytes: metadata.u16()? },
            16 => bit(metadata)?,
            17 => ColumnKind::Timestamp { digits: digits(metadata)? },
            18 => ColumnKind::DateTime { digits: digits(metadata)? },
            19 => ColumnKind::Time { digits: digits(metadata)? },
            140 => ColumnKind::CompressedBlob { length_bytes: length(metadata)? },
            141 => ColumnKind::CompressedVarchar { max_bytes: metadata.u16()? },
            242 => ColumnKind::Vector { length_bytes: length(metadata)? },
            245 => ColumnKind::Json { length_bytes: length(metadata)? },
            246 => ColumnKind::Decimal { precision: metadata.u8()?, scale: metadata.u8()? },
            252 => ColumnKind::Blob { length_bytes: length(metadata)? },
            254 => string(metadata)?,
            255 => ColumnKind::Geometry { length_bytes: length(metadata)? },
            _ => return Err(Refusal::UnknownColumnType),
        })
    }

    /// Whether the optional metadata has a sign for this type.
    pub(crate) fn has_sign(self) -> bool {
        matches!(
            self,
            ColumnKind::Tiny
                | ColumnKind::Short
                | ColumnKind::Int24
                | ColumnKind::Long
                | ColumnKind::LongLong
                | ColumnKind::Float
                | ColumnKind::Double
                | ColumnKind::Decimal { .. }
        )
    }

    /// Whether the optional metadata has a collation for this type, other than for enums and sets.
    pub(crate) fn has_charset(self) -> bool {
        matches!(
            self,
            ColumnKind::Varchar { .. }
                | ColumnKind::Char { .. }
                | ColumnKind::Blob { .. }
                | ColumnKind::CompressedVarchar { .. }
                | ColumnKind::CompressedBlob { .. }
        )
    }
}

fn sized(metadata: &mut Reader<'_>, size: u8, kind: ColumnKind) -> Result<ColumnKind, Refusal> {
    if metadata.u8()? == size { Ok(kind) } else { Err(Refusal::BadLength) }
}

fn digits(metadata: &mut Reader<'_>) -> Result<u8, Refusal> {
    let digits = metadata.u8()?;
    if digits <= 6 { Ok(digits) } else { Err(Refusal::BadLength) }
}

fn length(metadata: &mut Reader<'_>) -> Result<u8, Refusal> {
    let length = metadata.u8()?;
    if (1..=4).contains(&length) { Ok(length) } else { Err(Refusal::BadLength) }
}

fn bit(metadata: &mut Reader<'_>) -> Result<ColumnKind, Refusal> {
    let (odd, bytes) = (u16::from(metadata.u8()?), u16::from(metadata.u8()?));
    let bits = bytes * 8 + odd;
    if odd < 8 && (1..=64).contains(&bits) {
        Ok(ColumnKind::Bit { bits })
    } else {
        Err(Refusal::BadLength)
    }
}

/// Code 254 is used for three types. The length of a `CHAR` over 255 bytes has two inverted bits in the first
/// byte.
fn string(metadata: &mut Reader<'_>) -> Result<ColumnKind, Refusal> {
    let (first, second) = (metadata.u8()?, metadata.u8()?);
    let bytes_up_to =
        |most| if (1..=most).contains(&second) { Ok(second) } else { Err(Refusal::BadLength) };
    match first {
        247 => Ok(ColumnKind::Enum { bytes: bytes_up_to(2)? }),
        248 => Ok(ColumnKind::Set { bytes: bytes_up_to(8)? }),
        first if first | 0x30 == 254 => {
            let high = u16::from(first & 0x30 ^ 0x30) << 4;
            Ok(ColumnKind::Char { max_bytes: high | u16::from(second) })
        }
        _ => Err(Refusal::UnknownColumnType),
    }
}

/// Whether a numeric column is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// The column is signed.
    Signed,
    /// The column is unsigned.
    Unsigned,
    /// The sign is unknown.
    Unknown,
}

/// The format in which the values of a type are written, which only the schema contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// No special format, as far as is known.
    None,
    /// `UUID`.
    Uuid,
    /// `INET6`.
    Inet6,
    /// `INET4`.
    Inet4,
    /// `ZEROFILL`: the minimum number of digits of an integer, or before the decimal point of a `DECIMAL`.
    Filled(u8),
    /// `FLOAT(M,D)`, `DOUBLE(M,D)`: the number of digits after the decimal point.
    Scaled(u8),
    /// A floating-point number with `ZEROFILL`.
    FilledFloat,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The type of the column.
    pub kind: ColumnKind,
    /// The name of the column, if known.
    pub name: Option<Arc<str>>,
    /// Whether the column is signed.
    pub sign: Sign,
    /// The character set, if known.
    pub charset: Option<Charset>,
    /// The members of an enum or a set, if known.
    pub members: Option<Arc<[Box<str>]>>,
    /// The format of the values, from the schema.
    pub special: Special,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u8, metadata: &[u8]) -> Result<ColumnKind, Refusal> {
        ColumnKind::read(code, &mut Reader::new(metadata))
    }

    #[test]
    fn kinds_are_read_with_their_metadata() {
        assert_eq!(read(254, &[254, 40]), Ok(ColumnKind::Char { max_bytes: 40 }));
        // CHAR(255) of utf8mb4: 1020 bytes.
        assert_eq!(read(254, &[0xce, 0xfc]), Ok(ColumnKind::Char { max_bytes: 1020 }));
        assert_eq!(read(254, &[247, 2]), Ok(ColumnKind::Enum { bytes: 2 }));
        assert_eq!(read(16, &[3, 1]), Ok(ColumnKind::Bit { bits: 11 }));
        assert_eq!(read(252, &[5]), Err(Refusal::BadLength));
        assert_eq!(read(18, &[7]), Err(Refusal::BadLength));
        assert_eq!(read(20, &[]), Err(Refusal::UnknownColumnType));
        assert_eq!(read(15, &[1]), Err(Refusal::Truncated));
    }
}
