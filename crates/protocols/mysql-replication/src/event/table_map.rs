//! The table map: the table for a table id, and the types of its columns.
//!
//! Layout: id (6), flags (2), database, table, number of columns, a type code for each, the metadata of the
//! types, a NULL bit for each; then optional metadata, by type and length:
//!
//! | type | content |
//! |---|---|
//! | 1 | a bit for each numeric column: unsigned |
//! | 2, 3 | collations of text columns: a default and the exceptions, or one for each |
//! | 4 | names |
//! | 5, 6 | members of sets, of enums |
//! | 8, 9 | the primary key: whole columns, or with prefix lengths |
//! | 10, 11 | collations of enums and sets, like 2 and 3 |
//!
//! Source: "Table_map_event", `Optional_metadata_fields`. Database and table are decoded even if the columns
//! cannot be: then the table is known, but its rows cannot be decoded.

use crate::charset::Charset;
use crate::column::{COLUMNS_MAX, Column, ColumnKind, Sign, Special};
use crate::table::Table;
use bytes::Bytes;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::sync::Arc;

/// The format limits the members of an enum or set to a two-byte number.
const MEMBERS_MAX: u64 = 65_535;

/// The event that maps a table id to a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMap {
    /// The id of the table.
    pub table_id: u64,
    body: Bytes,
}

impl TableMap {
    pub(super) fn read(body: &Bytes, table_id_bytes: usize) -> Result<TableMap, Refusal> {
        let mut reader = Reader::new(body);
        let table_id = reader.uint(table_id_bytes)?;
        // The flags.
        reader.take(2)?;
        Ok(TableMap { table_id, body: body.slice_ref(reader.rest()) })
    }

    /// The bytes after id and flags. Two maps with the same bytes describe the same table.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// The names of database and table.
    ///
    /// # Errors
    /// `Truncated`, `BadValue`.
    pub fn names(&self) -> Result<(&str, &str), Refusal> {
        names(&mut Reader::new(&self.body))
    }

    /// The table. If its columns cannot be decoded, the error is inside the table.
    ///
    /// # Errors
    /// `Truncated`, `BadValue`: not even the names can be decoded.
    pub fn table(&self) -> Result<Table, Refusal> {
        let mut reader = Reader::new(&self.body);
        let (schema, name) = names(&mut reader)?;
        let (columns, primary_key) = match columns(&mut reader) {
            Ok((columns, primary_key)) => (Ok(columns), primary_key),
            Err(refusal) => (Err(refusal), None),
        };
        Ok(Table { schema: schema.into(), name: name.into(), columns, primary_key })
    }
}

fn names<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, &'a str), Refusal> {
    let mut name = || {
        let len = reader.lenenc()?;
        let name = reader.take_long(len)?;
        // The NUL after the name.
        reader.take(1)?;
        std::str::from_utf8(name).map_err(|_| Refusal::BadValue)
    };
    Ok((name()?, name()?))
}

type Columns = (Vec<Column>, Option<Vec<usize>>);

fn columns(reader: &mut Reader<'_>) -> Result<Columns, Refusal> {
    let count = reader.lenenc()?;
    if count > COLUMNS_MAX {
        return Err(Refusal::TooManyColumns);
    }
    let codes = reader.take_long(count)?;
    let mut metadata = Reader::new(reader.lenenc_bytes()?);
    let mut columns = Vec::with_capacity(codes.len());
    for code in codes {
        let kind = ColumnKind::read(*code, &mut metadata)?;
        let (sign, special) = (Sign::Unknown, Special::None);
        columns.push(Column { kind, name: None, sign, charset: None, members: None, special });
    }
    if !metadata.is_empty() {
        return Err(Refusal::LeftOver);
    }
    // The NULL bits of the columns; the rows have their own.
    reader.take(codes.len().div_ceil(8))?;
    let primary_key = optional(reader, &mut columns)?;
    Ok((columns, primary_key))
}

fn optional(
    reader: &mut Reader<'_>,
    columns: &mut [Column],
) -> Result<Option<Vec<usize>>, Refusal> {
    let is_text = |column: &Column| column.kind.has_charset();
    let is_choice =
        |column: &Column| matches!(column.kind, ColumnKind::Enum { .. } | ColumnKind::Set { .. });
    let mut primary_key = None;
    let mut named = false;
    let (mut sets, mut enums) = (None, None);
    while !reader.is_empty() {
        let kind = reader.u8()?;
        let mut field = Reader::new(reader.lenenc_bytes()?);
        match kind {
            1 => signs(field.rest(), columns)?,
            2 => default_charset(&mut field, columns, is_text)?,
            3 => charsets(&mut field, columns, is_text)?,
            4 => {
                for column in columns.iter_mut() {
                    let name = std::str::from_utf8(field.lenenc_bytes()?);
                    column.name = Some(Arc::from(name.map_err(|_| Refusal::BadValue)?));
                }
                named = true;
            }
            5 => sets = Some(field),
            6 => enums = Some(field),
            8 => primary_key = Some(key(&mut field, columns.len(), KeyParts::Whole)?),
            9 => primary_key = Some(key(&mut field, columns.len(), KeyParts::Prefixes)?),
            10 => default_charset(&mut field, columns, is_choice)?,
            11 => charsets(&mut field, columns, is_choice)?,
            _ => {}
        }
    }
    // The members use the column's character set, which is decoded after them.
    if let Some(mut field) = sets {
        members(&mut field, columns, |column| matches!(column.kind, ColumnKind::Set { .. }))?;
    }
    if let Some(mut field) = enums {
        members(&mut field, columns, |column| matches!(column.kind, ColumnKind::Enum { .. }))?;
    }
    // Names are only sent with full metadata. A table without a key in it has no primary key.
    Ok(primary_key.or(named.then(Vec::new)))
}

/// Decodes a bit for each numeric column, the highest bit of each byte first. Servers and tools differ in
/// whether `YEAR` has a bit (MariaDB 10.11 writes one). If the number of bits fits both readings, only signs
/// that are the same in both are used.
fn signs(bits: &[u8], columns: &mut [Column]) -> Result<(), Refusal> {
    let with_year = signs_by(bits, columns, |kind| kind.has_sign() || kind == ColumnKind::Year);
    let without = signs_by(bits, columns, ColumnKind::has_sign);
    let (first, second) = match (&with_year, &without) {
        (Some(with_year), Some(without)) => (with_year, without),
        (Some(only), None) | (None, Some(only)) => (only, only),
        (None, None) => return Err(Refusal::BadLength),
    };
    for (column, (first, second)) in columns.iter_mut().zip(first.iter().zip(second)) {
        if column.kind.has_sign() && first == second {
            column.sign = *first;
        }
    }
    Ok(())
}

/// The sign of each column, if the number of bits matches the columns that have a bit.
fn signs_by(bits: &[u8], columns: &[Column], has_bit: fn(ColumnKind) -> bool) -> Option<Vec<Sign>> {
    let mut at = 0;
    let mut signs = Vec::with_capacity(columns.len());
    for column in columns {
        let mut sign = Sign::Unknown;
        if has_bit(column.kind) {
            let is_unsigned = bits.get(at / 8)? & (0x80 >> (at % 8)) != 0;
            sign = if is_unsigned { Sign::Unsigned } else { Sign::Signed };
            at += 1;
        }
        signs.push(sign);
    }
    (at.div_ceil(8) == bits.len()).then_some(signs)
}

fn collation(field: &mut Reader<'_>) -> Result<Charset, Refusal> {
    let id = u32::try_from(field.lenenc()?).map_err(|_| Refusal::BadValue)?;
    Ok(Charset::of_collation(id))
}

/// Decodes the default collation, then pairs of an index among these columns and a collation.
fn default_charset(
    field: &mut Reader<'_>,
    columns: &mut [Column],
    is_meant: fn(&Column) -> bool,
) -> Result<(), Refusal> {
    let most = collation(field)?;
    let mut meant: Vec<&mut Column> =
        columns.iter_mut().filter(|column| is_meant(column)).collect();
    meant.iter_mut().for_each(|column| column.charset = Some(most));
    while !field.is_empty() {
        let place = usize::try_from(field.lenenc()?).map_err(|_| Refusal::BadValue)?;
        let column = meant.get_mut(place).ok_or(Refusal::BadValue)?;
        column.charset = Some(collation(field)?);
    }
    Ok(())
}

fn charsets(
    field: &mut Reader<'_>,
    columns: &mut [Column],
    is_meant: fn(&Column) -> bool,
) -> Result<(), Refusal> {
    for column in columns.iter_mut().filter(|column| is_meant(column)) {
        column.charset = Some(collation(field)?);
    }
    Ok(())
}

fn members(
    field: &mut Reader<'_>,
    columns: &mut [Column],
    is_meant: fn(&Column) -> bool,
) -> Result<(), Refusal> {
    for column in columns.iter_mut().filter(|column| is_meant(column)) {
        let count = field.lenenc()?;
        if count > MEMBERS_MAX || count > field.rest().len() as u64 {
            return Err(Refusal::BadLength);
        }
        let mut texts = Some(Vec::new());
        for _ in 0..count {
            let bytes = field.lenenc_bytes()?;
            // A member that cannot be decoded leaves the members unknown.
            let text = column.charset.and_then(|charset| charset.decode(bytes));
            texts = texts.zip(text).map(|(mut texts, text)| {
                texts.push(text.into_owned().into_boxed_str());
                texts
            });
        }
        column.members = texts.map(Into::into);
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyParts {
    Whole,
    Prefixes,
}

fn key(field: &mut Reader<'_>, count: usize, parts: KeyParts) -> Result<Vec<usize>, Refusal> {
    let mut key = Vec::new();
    while !field.is_empty() {
        let place = usize::try_from(field.lenenc()?).map_err(|_| Refusal::BadValue)?;
        if place >= count {
            return Err(Refusal::BadValue);
        }
        if parts == KeyParts::Prefixes {
            field.lenenc()?;
        }
        key.push(place);
    }
    Ok(key)
}
