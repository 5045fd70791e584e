//! A statement in the log: table definitions, begin and commit, and writes in statement format.
//!
//! Fixed part: thread (4), seconds (4), length of the database's name (1), error (2), length of the variables
//! (2); then variables, name, NUL, statement. MariaDB may compress the statement (code 165). `LOAD DATA` (code
//! 18) has 13 more bytes in its fixed part. Source: "Query_event", "Execute_load_query_event". Of the
//! variables only the SQL mode is read (`Q_FLAGS2_CODE`, `Q_SQL_MODE_CODE`): none affects the table names.

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
    /// Whether a backslash escapes the next character of a literal: not in the SQL mode `NO_BACKSLASH_ESCAPES`.
    pub has_escapes: bool,
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
        let has_escapes = has_escapes(reader.take(variables_len)?);
        let schema = String::from_utf8_lossy(reader.take(schema_len)?).into_owned();
        reader.take(1)?;
        Ok(QueryEvent { schema, sql: body.slice_ref(reader.rest()), has_escapes })
    }
}

/// Whether the SQL mode among these variables lets backslashes escape. Both servers write the flags and the mode first.
fn has_escapes(variables: &[u8]) -> bool {
    const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
    let rest = if variables.first() == Some(&0) {
        variables.get(5..).unwrap_or_default()
    } else {
        variables
    };
    let mode = rest.strip_prefix(b"\x01").and_then(|rest| rest.first_chunk::<8>());
    mode.is_none_or(|mode| u64::from_le_bytes(*mode) & NO_BACKSLASH_ESCAPES == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_a_statement_tells_whether_backslashes_escape() {
        let flags = [0_u8; 5];
        let mode = |bits: u64| [&[1_u8][..], &bits.to_le_bytes()].concat();
        for (variables, expected) in [
            (vec![], true),
            (flags.to_vec(), true),
            (mode(1 << 20), false),
            ([&flags[..], &mode((1 << 20) | (1 << 21))[..]].concat(), false),
            ([&flags[..], &mode(1 << 21)[..], &[6, 3, b's', b't', b'd']].concat(), true),
        ] {
            let len = [variables.len() as u8, 0];
            let body = [&[0_u8; 8][..], &[2, 0, 0], &len, &variables[..], b"wp\0SELECT 1"].concat();
            let query = QueryEvent::read(&body.into()).expect("a statement");
            assert_eq!((&*query.schema, &*query.sql), ("wp", &b"SELECT 1"[..]));
            assert_eq!(query.has_escapes, expected, "{variables:?}");
        }
    }
}
