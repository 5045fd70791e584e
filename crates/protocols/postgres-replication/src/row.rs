//! A changed row, with the known values before and after the change.
//!
//! | identity | old row in an update | old row in a delete |
//! |---|---|---|
//! | primary key, index | absent if the key is unchanged, otherwise the key | the key |
//! | `FULL` | all columns | all columns |
//! | `NOTHING` | (the server refuses updates) | (the server refuses deletes) |
//!
//! A long value that an update does not change is not sent (`unchanged TOAST`): it is the same as before.
//! Values are text, as `SELECT` shows them in a session with the settings of [`crate::wire::login`]; for
//! `bytea`, the hexadecimal digits. Invariant: an unknown value is [`Cell::Unknown`], never NULL and never
//! "unchanged". Source: PostgreSQL's manual, "Logical Replication Message Formats", "TupleData".

use crate::Refusal;
use crate::message::{Identity, Table};
use crate::reader::Reader;

const BYTEA: u32 = 17;

/// A value in a column, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// The value as text.
    Text(&'a str),
    /// NULL.
    Null,
    /// The stream does not contain the value.
    Unknown,
}

/// A value as the server sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WireValue<'a> {
    Text(&'a [u8]),
    Null,
    Unchanged,
    Binary,
}

/// A row as the server sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    values: Vec<WireValue<'a>>,
}

/// The old row as the server sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OldRow<'a> {
    /// There is no old row.
    None,
    /// The old row is not sent: it has the same key as the new one.
    SameKey,
    /// The key of the old row.
    Key(Row<'a>),
    /// All columns of the old row.
    Full(Row<'a>),
}

/// The images of a changed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange<'a> {
    table: &'a Table,
    before: OldRow<'a>,
    after: Option<Row<'a>>,
}

impl<'a> RowChange<'a> {
    /// Decodes an insert, update or delete message.
    ///
    /// # Errors
    /// The message is invalid. Any row of the table may have changed.
    pub fn read(bytes: &'a [u8], table: &'a Table) -> Result<RowChange<'a>, Refusal> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8()?;
        reader.u32()?;
        let (mut before, mut after) = (OldRow::None, None);
        if kind == b'U' {
            before = OldRow::SameKey;
        }
        while !reader.is_empty() {
            let (part, row) = (reader.u8()?, Row::read(&mut reader, table.columns.len())?);
            match part {
                b'K' if kind != b'I' && after.is_none() => before = OldRow::Key(row),
                b'O' if kind != b'I' && after.is_none() => before = OldRow::Full(row),
                b'N' if kind != b'D' && after.is_none() => after = Some(row),
                _ => return Err(Refusal::BadValue),
            }
        }
        match (kind, &before, &after) {
            (b'I', OldRow::None, Some(_)) | (b'U', _, Some(_)) => {}
            (b'D', OldRow::Key(_) | OldRow::Full(_), None) => {}
            _ => return Err(Refusal::Truncated),
        }
        Ok(RowChange { table, before, after })
    }

    /// Whether the row was inserted.
    #[must_use]
    pub fn is_insert(&self) -> bool {
        self.before == OldRow::None
    }

    /// Whether the row was deleted.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.after.is_none()
    }

    /// The value of the column with this index before the change.
    #[must_use]
    pub fn before(&self, place: usize) -> Cell<'a> {
        let is_key = || {
            let told_by_key = matches!(self.table.identity, Identity::Default | Identity::Index);
            told_by_key && self.table.columns.get(place).is_some_and(|column| column.is_identity)
        };
        match (&self.before, &self.after) {
            (OldRow::Full(row), _) => self.cell(row, place),
            // The server sends NULL for all columns outside the key, whatever their value.
            (OldRow::Key(row), _) if is_key() => self.cell(row, place),
            (OldRow::SameKey, Some(row)) if is_key() => self.cell(row, place),
            _ => Cell::Unknown,
        }
    }

    /// The value of the column with this index after the change.
    #[must_use]
    pub fn after(&self, place: usize) -> Cell<'a> {
        match &self.after {
            Some(row) if row.values.get(place) == Some(&WireValue::Unchanged) => self.before(place),
            Some(row) => self.cell(row, place),
            None => Cell::Unknown,
        }
    }

    /// Whether the column with this index may have changed.
    #[must_use]
    pub fn changed(&self, place: usize) -> bool {
        let Some(row) = &self.after else { return true };
        if self.is_insert() {
            return true;
        }
        if row.values.get(place) == Some(&WireValue::Unchanged) {
            return false;
        }
        match (self.before(place), self.after(place)) {
            (Cell::Unknown, _) | (_, Cell::Unknown) => true,
            (before, after) if before == after => false,
            _ => true,
        }
    }

    fn cell(&self, row: &Row<'a>, place: usize) -> Cell<'a> {
        match row.values.get(place) {
            Some(WireValue::Null) => Cell::Null,
            Some(WireValue::Text(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Cell::Text(self.plain(text, place)),
                Err(_) => Cell::Unknown,
            },
            Some(WireValue::Unchanged | WireValue::Binary) | None => Cell::Unknown,
        }
    }

    fn plain(&self, text: &'a str, place: usize) -> &'a str {
        let is_bytes = self.table.columns.get(place).is_some_and(|own| own.type_oid == BYTEA);
        if is_bytes { text.strip_prefix("\\x").unwrap_or(text) } else { text }
    }
}

impl<'a> Row<'a> {
    fn read(reader: &mut Reader<'a>, columns: usize) -> Result<Row<'a>, Refusal> {
        if usize::from(reader.u16()?) != columns {
            return Err(Refusal::ColumnMismatch);
        }
        let mut values = Vec::with_capacity(columns);
        for _ in 0..columns {
            values.push(match reader.u8()? {
                b'n' => WireValue::Null,
                b'u' => WireValue::Unchanged,
                b't' => WireValue::Text(reader.counted()?),
                b'b' => {
                    reader.counted()?;
                    WireValue::Binary
                }
                _ => return Err(Refusal::BadValue),
            });
        }
        Ok(Row { values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Column;

    fn table(identity: Identity) -> Table {
        let column = |name: &str, type_oid, is_identity| Column {
            name: name.into(),
            type_oid,
            is_identity: is_identity || identity == Identity::Full,
        };
        let columns = vec![column("id", 23, true), column("a", 25, false), column("b", 17, false)];
        Table { oid: 1, schema: "public".into(), name: "t".into(), identity, columns }
    }

    fn message(kind: u8, parts: &[(u8, [&str; 3])]) -> Vec<u8> {
        let mut out = vec![kind, 0, 0, 0, 1];
        for (part, values) in parts {
            out.extend_from_slice(&[*part, 0, 3]);
            for value in values {
                match *value {
                    "NULL" => out.push(b'n'),
                    "TOAST" => out.push(b'u'),
                    text => {
                        out.push(b't');
                        out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                        out.extend_from_slice(text.as_bytes());
                    }
                }
            }
        }
        out
    }

    #[test]
    fn an_update_that_keeps_the_key_says_nothing_of_the_rest() {
        let table = table(Identity::Default);
        let bytes = message(b'U', &[(b'N', ["7", "x", "TOAST"])]);
        let row = RowChange::read(&bytes, &table).expect("a row");
        assert_eq!([row.before(0), row.after(0)], [Cell::Text("7"); 2]);
        assert_eq!((row.before(1), row.after(1)), (Cell::Unknown, Cell::Text("x")));
        assert_eq!((row.before(2), row.after(2)), (Cell::Unknown, Cell::Unknown));
        let changed = [0, 1, 2, 9].map(|place| row.changed(place));
        assert_eq!(changed, [false, true, false, true]);
    }

    #[test]
    fn a_key_says_nothing_of_other_columns() {
        let table = table(Identity::Index);
        let bytes = message(b'U', &[(b'K', ["7", "NULL", "NULL"]), (b'N', ["8", "x", "NULL"])]);
        let row = RowChange::read(&bytes, &table).expect("a row");
        assert_eq!((row.before(0), row.after(0)), (Cell::Text("7"), Cell::Text("8")));
        assert_eq!((row.before(1), row.before(2)), (Cell::Unknown, Cell::Unknown));
        let bytes = message(b'D', &[(b'K', ["7", "NULL", "NULL"])]);
        let row = RowChange::read(&bytes, &table).expect("a row");
        assert!(row.is_delete() && row.before(1) == Cell::Unknown && row.after(0) == Cell::Unknown);
    }

    #[test]
    fn with_all_columns_all_is_known() {
        let table = table(Identity::Full);
        let bytes = message(b'U', &[(b'O', ["7", "x", "\\x00ff"]), (b'N', ["7", "x", "TOAST"])]);
        let row = RowChange::read(&bytes, &table).expect("a row");
        assert_eq!([row.before(2), row.after(2)], [Cell::Text("00ff"); 2]);
        assert!(![0, 1, 2].iter().any(|place| row.changed(*place)));
    }

    #[test]
    fn rows_that_cannot_be_are_refused() {
        let table = table(Identity::Default);
        let row = ["1", "2", "3"];
        for (kind, parts) in [
            (b'I', &[][..]),
            (b'I', &[(b'K', row), (b'N', row)]),
            (b'U', &[(b'K', row)]),
            (b'U', &[(b'N', row), (b'K', row)]),
            (b'D', &[(b'N', row)]),
            (b'D', &[]),
            (b'X', &[(b'N', row)]),
        ] {
            let bytes = message(kind, parts);
            assert!(RowChange::read(&bytes, &table).is_err(), "{kind} {parts:?}");
        }
        let bytes = message(b'I', &[(b'N', row)]);
        assert!((0..bytes.len()).all(|end| RowChange::read(&bytes[..end], &table).is_err()));
    }
}
