//! Decodes the messages of `pgoutput`, protocol version 1.
//!
//! Version 1 sends complete transactions in the order of their commits; the server holds large ones until their
//! end. Later versions send parts of transactions earlier, interleaved, including transactions that are rolled
//! back later. Rows stay encoded ([`crate::row`] decodes them). Source: PostgreSQL's manual, "Logical
//! Replication Message Formats". Not here: the order of messages ([`crate::Transactions`]).

use crate::Refusal;
use crate::position::Lsn;
use crate::reader::Reader;
use std::sync::Arc;

/// The maximum number of columns of a table (`MaxTupleAttributeNumber`, rounded up).
const COLUMNS_MAX: u16 = 2000;
/// The maximum number of tables in one `TRUNCATE`.
const TRUNCATED_MAX: u32 = 100_000;

/// A message of the output plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A transaction begins.
    Begin(Begin),
    /// A transaction was committed.
    Commit(Commit),
    /// The definition of the table whose rows follow.
    Relation(Table),
    /// A row of the table with this OID. [`crate::row::RowChange::read`] decodes the message.
    Row(u32),
    /// The OIDs of tables that were truncated.
    Truncate(Vec<u32>),
    /// A message from `pg_logical_emit_message`: its prefix.
    Emitted(&'a str),
    /// A message without relevant content.
    Nothing,
}

/// The beginning of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// The transaction ID, which [`crate::snapshot::Snapshot`] uses.
    pub xid: u32,
    /// The position of its commit.
    pub commit: Lsn,
    /// The time of the commit: microseconds since 2000-01-01 00:00 UTC by the server's clock.
    pub micros: i64,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The position of its commit.
    pub commit: Lsn,
    /// The position after the transaction.
    pub end: Lsn,
}

/// The columns that identify the old row in a change (`REPLICA IDENTITY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The primary key.
    Default,
    /// No columns.
    Nothing,
    /// All columns.
    Full,
    /// The columns of a unique index.
    Index,
}

impl Identity {
    /// The identity for the letter used in the stream and in `pg_class.relreplident`.
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

/// A table, as described before its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The OID of the table.
    pub oid: u32,
    /// The schema of the table; empty for `pg_catalog`.
    pub schema: Arc<str>,
    /// The name of the table.
    pub name: Arc<str>,
    /// The replica identity of the table.
    pub identity: Identity,
    /// The columns, in order, without dropped and generated ones.
    pub columns: Vec<Column>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name of the column.
    pub name: Box<str>,
    /// The OID of the type.
    pub type_oid: u32,
    /// Whether the column is part of the replica identity.
    pub is_identity: bool,
}

impl Table {
    /// The index of the column with this name. If there is no exact match, the case is ignored.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        let exact = self.columns.iter().position(|column| *column.name == *name);
        exact.or_else(|| {
            let name = name.to_lowercase();
            self.columns.iter().position(|column| column.name.to_lowercase() == name)
        })
    }

    /// The approximate memory that the table needs, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let names: usize = self.columns.iter().map(|column| column.name.len() + 32).sum();
        names + self.schema.len() + self.name.len() + 64
    }
}

/// Decodes a message.
///
/// # Errors
/// The message is invalid; `UnknownMessage` if its type is unknown.
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
        // `Origin` (the server of the original commit) and `Type` (the name of a type).
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
    // The flags CASCADE and RESTART IDENTITY. Tables reached by CASCADE are in the list.
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
    fn unknown_messages_are_refused() {
        assert_eq!(read(b"Stream"), Err(Refusal::UnknownMessage));
        assert_eq!(read(b""), Err(Refusal::Truncated));
        assert_eq!(read(b"T\xff\xff\xff\xff\0"), Err(Refusal::BadLength));
    }
}
