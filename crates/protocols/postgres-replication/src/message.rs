//! The messages of `pgoutput`, protocol version 1, one by one.
//!
//! Version 1 sends whole transactions, in the order of their commits; large ones too wait for their
//! end, at the server. Later versions send parts of them before, in between each other, and of those
//! that are rolled back in the end as well. Rows stay bytes ([`crate::row`] reads them). Source:
//! PostgreSQL's manual, "Logical Replication Message Formats". Not here: their order
//! ([`crate::Transactions`]).

use crate::Refusal;
use crate::position::Lsn;
use crate::reader::Reader;
use std::sync::Arc;

/// The most columns that a table can have (`MaxTupleAttributeNumber`, rounded up).
const COLUMNS_MAX: u16 = 2000;
/// The most tables that one `TRUNCATE` names.
const TRUNCATED_MAX: u32 = 100_000;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A transaction begins.
    Begin(Begin),
    /// It was committed.
    Commit(Commit),
    /// How a table looks whose rows come now.
    Relation(Table),
    /// A row of the table with this number: [`crate::row::RowChange::read`] reads all of the message.
    Row(u32),
    /// Tables that were emptied, by number.
    Truncate(Vec<u32>),
    /// What somebody has put into the log (`pg_logical_emit_message`): its prefix.
    Emitted(&'a str),
    /// It says nothing that matters.
    Nothing,
}

/// The beginning of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// Its number, by which [`crate::snapshot::Snapshot`] knows it.
    pub xid: u32,
    /// Where its commit is.
    pub commit: Lsn,
    /// When it was committed: microseconds since 2000-01-01 00:00 UTC by the server's clock.
    pub micros: i64,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// Where its commit is.
    pub commit: Lsn,
    /// The place after it.
    pub end: Lsn,
}

/// By what the server tells the row before a change (`REPLICA IDENTITY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The primary key.
    Default,
    /// Nothing.
    Nothing,
    /// All columns.
    Full,
    /// A unique index.
    Index,
}

impl Identity {
    /// From the letter that the stream and `pg_class.relreplident` have.
    #[must_use]
    pub fn of(letter: u8) -> Option<Identity> {
        match letter {
            b'd' => Some(Identity::Default),
            b'n' => Some(Identity::Nothing),
            b'f' => Some(Identity::Full),
            b'i' => Some(Identity::Index),
            _ => None,
        }
    }
}

/// A table, as its rows are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its number.
    pub oid: u32,
    /// The schema that it is in; empty for PostgreSQL's own.
    pub schema: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// By what rows are told.
    pub identity: Identity,
    /// Its columns, in order; dropped and generated ones are left out.
    pub columns: Vec<Column>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Box<str>,
    /// Its type, by number.
    pub type_oid: u32,
    /// Whether rows are told by it.
    pub is_identity: bool,
}

impl Table {
    /// The place of the column of this name, without regard to capitals where none is written so.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        let exact = self.columns.iter().position(|column| *column.name == *name);
        exact.or_else(|| {
            let name = name.to_lowercase();
            self.columns.iter().position(|column| column.name.to_lowercase() == name)
        })
    }

    /// How much memory it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let names: usize = self.columns.iter().map(|column| column.name.len() + 32).sum();
        names + self.schema.len() + self.name.len() + 64
    }
}

/// Reads one.
///
/// # Errors
/// Why it cannot be read. `UnknownMessage` for a kind that is not known.
pub fn read(bytes: &[u8]) -> Result<Message<'_>, Refusal> {
    let mut reader = Reader::new(bytes);
    match reader.u8()? {
        b'B' => {
            let (commit, micros) = (Lsn(reader.u64()?), reader.u64()?.cast_signed());
            let xid = reader.u32()?;
            reader.end()?;
            Ok(Message::Begin(Begin { xid, commit, micros }))
        }
        b'C' => {
            reader.u8()?;
            let (commit, end) = (Lsn(reader.u64()?), Lsn(reader.u64()?));
            reader.u64()?;
            reader.end()?;
            Ok(Message::Commit(Commit { commit, end }))
        }
        b'R' => relation(reader).map(Message::Relation),
        b'I' | b'U' | b'D' => reader.u32().map(Message::Row),
        b'T' => truncate(reader).map(Message::Truncate),
        b'M' => {
            reader.u8()?;
            reader.u64()?;
            reader.text().map(Message::Emitted)
        }
        // Where it came from first, and names of types.
        b'O' | b'Y' => Ok(Message::Nothing),
        _ => Err(Refusal::UnknownMessage),
    }
}

fn relation(mut reader: Reader<'_>) -> Result<Table, Refusal> {
    let oid = reader.u32()?;
    let (schema, name) = (reader.text()?.into(), reader.text()?.into());
    let identity = Identity::of(reader.u8()?).ok_or(Refusal::BadValue)?;
    let count = reader.u16()?;
    if count > COLUMNS_MAX {
        return Err(Refusal::TooManyColumns);
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        let flags = reader.u8()?;
        let name = reader.text()?.into();
        let type_oid = reader.u32()?;
        reader.u32()?;
        columns.push(Column { name, type_oid, is_identity: flags & 1 != 0 });
    }
    reader.end()?;
    Ok(Table { oid, schema, name, identity, columns })
}

fn truncate(mut reader: Reader<'_>) -> Result<Vec<u32>, Refusal> {
    let count = reader.u32()?;
    if count > TRUNCATED_MAX {
        return Err(Refusal::BadLength);
    }
    // CASCADE, RESTART IDENTITY: the tables that it reaches are listed.
    reader.u8()?;
    let tables = (0..count).map(|_| reader.u32()).collect::<Result<Vec<u32>, Refusal>>()?;
    reader.end()?;
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_has_its_columns() {
        let bytes = b"R\0\0\x40\x01public\0news\0d\0\x02\x01id\0\0\0\0\x17\xff\xff\xff\xff\
                      \0Title\0\0\0\0\x19\xff\xff\xff\xff";
        let Ok(Message::Relation(table)) = read(bytes) else { panic!("a relation") };
        assert_eq!((&*table.schema, &*table.name), ("public", "news"));
        assert_eq!(table.identity, Identity::Default);
        assert_eq!((table.column("id"), table.column("title")), (Some(0), Some(1)));
        assert!(table.columns[0].is_identity && !table.columns[1].is_identity);
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(read(b"Stream"), Err(Refusal::UnknownMessage));
        assert_eq!(read(b""), Err(Refusal::Truncated));
        assert_eq!(read(b"T\xff\xff\xff\xff\0"), Err(Refusal::BadLength));
    }
}
