//! A statement in the log: table definitions, begin and commit, and writes in statement format.
//!
//! Fixed part: thread (4), seconds (4), length of the database's name (1), error (2), length of the variables
//! (2); then variables, name, NUL, statement. MariaDB may compress the statement (code 165). `LOAD DATA` (code
//! 18) has 13 more bytes in its fixed part. Source: "Query_event", "Execute_load_query_event". The variables
//! are skipped, because none affects the table names.

use crate::compressed;
use bytes::Bytes;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;

/// A statement of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryEvent {
    /// The default database, for table names without a database.
    pub schema: String,
    /// The text of the statement.
    pub sql: Bytes,
}

impl QueryEvent {
    pub(super) fn read(body: &Bytes) -> Result<QueryEvent, Refusal> {
        Self::read_after(body, 0)
    }

    pub(super) fn read_load(body: &Bytes) -> Result<QueryEvent, Refusal> {
        Self::read_after(body, 13)
    }

    pub(super) fn read_compressed(body: &Bytes, max_bytes: usize) -> Result<QueryEvent, Refusal> {
        let mut query = Self::read_after(body, 0)?;
        query.sql = compressed::event(&query.sql, max_bytes)?.into();
        Ok(query)
    }

    fn read_after(body: &Bytes, more_fixed: usize) -> Result<QueryEvent, Refusal> {
        let mut reader = Reader::new(body);
        reader.take(8)?;
        let schema_len = usize::from(reader.u8()?);
        reader.take(2)?;
        let variables_len = usize::from(reader.u16()?);
        reader.take(more_fixed)?;
        reader.take(variables_len)?;
        let schema = String::from_utf8_lossy(reader.take(schema_len)?).into_owned();
        reader.take(1)?;
        Ok(QueryEvent { schema, sql: body.slice_ref(reader.rest()) })
    }
}
