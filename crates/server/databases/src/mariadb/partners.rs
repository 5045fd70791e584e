//! Look-ups of the rows that have a value in a column: the partners that a changed row needs in joins.
//!
//! Values and names are written by `footprint::sql_text`. Rows have the form of the rows in the stream (`followed`),
//! apart from long values and columns that no condition tests, which are unknown. Not here: how many look-ups are made,
//! and how long they take (`partner_search` in `change_sources`).

use super::connection::Connection;
use database_links::fault::ConnectionError;
use footprint::schema::{SqlColumnKind, SqlSchema};
use footprint::sql_text::{TEXT_MAX, put_column, put_name, put_value};
use footprint::{Lookup, NearestLookup, SqlRow, SqlValue};
use mysql_wire::greeting::Flavour;
use mysql_wire::query::{QueryLimits, Rows, TextRow};
use std::fmt::Write as _;
use std::time::Duration;

/// The maximum number of rows of a look-up. If there are more, they are not known.
const ROWS_MAX: usize = 64;
/// The maximum size of a result in bytes.
const RESULT_BYTES: usize = 4 << 20;

/// The statement of a look-up, and how its result is read.
#[derive(Clone, Debug)]
pub struct PartnerQuery {
    sql: String,
    columns: Vec<SqlColumnKind>,
}

impl PartnerQuery {
    /// The query for a look-up in tables of this schema.
    pub fn new(schema: &SqlSchema, lookup: &Lookup) -> PartnerQuery {
        let table = schema.table(lookup.table);
        let mut sql = "SELECT ".to_owned();
        for (at, column) in table.columns.iter().enumerate() {
            if at > 0 {
                sql.push(',');
            }
            put_column(&mut sql, &column.name, column.kind);
        }
        sql.push_str(" FROM ");
        put_name(&mut sql, &table.name);
        sql.push_str(" WHERE ");
        match table.columns.get(usize::from(lookup.column)) {
            Some(column) => {
                put_name(&mut sql, &column.name);
                sql.push('=');
                put_value(&mut sql, column.kind, &lookup.value);
            }
            // No such column: more rows than the maximum, unless the table is small.
            None => sql.push('1'),
        }
        // Writing to a string cannot fail.
        let _ = write!(sql, " LIMIT {}", ROWS_MAX + 1);
        let columns = table.columns.iter().map(|column| column.kind).collect();
        PartnerQuery { sql, columns }
    }

    /// The query for the rows near a changed row.
    pub fn nearest(schema: &SqlSchema, lookup: &NearestLookup) -> PartnerQuery {
        let (sql, columns) = lookup.query(schema);
        PartnerQuery { sql, columns }
    }

    /// Runs the query. `None`: the server refused it, or there are too many rows.
    ///
    /// # Errors
    /// The connection failed, and cannot be used again.
    pub async fn run(
        &self,
        connection: &mut Connection,
    ) -> Result<Option<Vec<SqlRow<'static>>>, ConnectionError> {
        let limits = QueryLimits { rows: ROWS_MAX + 1, bytes: RESULT_BYTES };
        let rows = connection.try_query(&self.sql, limits).await?;
        Ok(rows.filter(|rows| rows.rows.len() <= ROWS_MAX).map(|rows| self.read(&rows)))
    }

    fn read(&self, rows: &Rows) -> Vec<SqlRow<'static>> {
        let row = |row: &TextRow| {
            let value = |(kind, value): (&SqlColumnKind, &Option<Vec<u8>>)| read(*kind, value);
            SqlRow::new(self.columns.iter().zip(row).map(value).collect())
        };
        rows.rows.iter().map(row).collect()
    }
}

/// Prepares a session for look-ups. `max_statement_time` ends statements that the client no longer waits for.
///
/// # Errors
/// A statement or the connection failed.
pub async fn prepare(
    connection: &mut Connection,
    time_max: Duration,
) -> Result<(), ConnectionError> {
    let limit = match connection.flavour() {
        Flavour::MariaDb => format!("max_statement_time = {}", time_max.as_secs_f64()),
        Flavour::MySql => format!("max_execution_time = {}", time_max.as_millis()),
    };
    // Without `autocommit`, each look-up would see the rows of the first one. Rows that are not committed do not count.
    let sql =
        format!("SET NAMES utf8mb4, sql_mode = '', time_zone = '+00:00', autocommit = 1, {limit}");
    connection.query(&sql).await?;
    let sql = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    connection.query(sql).await.map(drop)
}

fn read(kind: SqlColumnKind, value: &Option<Vec<u8>>) -> SqlValue<'static> {
    let Some(bytes) = value.as_ref().filter(|_| kind != SqlColumnKind::Opaque) else {
        let is_null = kind != SqlColumnKind::Opaque;
        return if is_null { SqlValue::Null } else { SqlValue::Unknown };
    };
    match str::from_utf8(bytes) {
        // The server cuts after characters, or after bytes: what is shorter than both is not cut.
        Ok(text) if text.len() <= TEXT_MAX => SqlValue::Text(text.to_owned().into()),
        _ => SqlValue::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footprint::schema::SqlColumn;

    fn sql(column: SqlColumn, value: &str) -> String {
        let mut schema = SqlSchema::new("site");
        schema.add("a`b", vec![column]);
        let table = schema.table_id("a`b").expect("added");
        PartnerQuery::new(&schema, &Lookup { table, column: 0, value: value.into() }).sql
    }

    #[test]
    fn a_value_cannot_end_its_literal() {
        let text = || SqlColumn::new("x`", "text", Some("utf8mb4_unicode_ci"), "");
        let long = "SELECT LEFT(`x```,2049) FROM `a``b` WHERE `x```=";
        assert_eq!(sql(text(), "a'\\\0"), format!("{long}_utf8mb4 0x61275c00 LIMIT 65"));
        assert_eq!(sql(text(), ""), format!("{long}'' LIMIT 65"));
        assert_eq!(sql(text(), "12"), format!("{long}_utf8mb4 0x3132 LIMIT 65"));
        let number = || SqlColumn::new("id", "bigint(20)", None, "PRI");
        let short = "SELECT `id` FROM `a``b` WHERE `id`=";
        assert_eq!(sql(number(), "-12"), format!("{short}-12 LIMIT 65"));
        assert_eq!(sql(number(), "1 OR 1"), format!("{short}_utf8mb4 0x31204f522031 LIMIT 65"));
        assert_eq!(sql(number(), "-"), format!("{short}_utf8mb4 0x2d LIMIT 65"));
    }

    #[test]
    fn a_long_value_is_unknown() {
        let text = |len: usize| Some("x".repeat(len).into_bytes());
        let kind = SqlColumnKind::Text { is_case_sensitive: true };
        assert!(matches!(read(kind, &text(TEXT_MAX)), SqlValue::Text(_)));
        assert_eq!(read(kind, &text(TEXT_MAX + 1)), SqlValue::Unknown);
        assert_eq!(read(kind, &None), SqlValue::Null);
        assert_eq!(read(SqlColumnKind::Opaque, &None), SqlValue::Unknown);
        assert_eq!(read(SqlColumnKind::Bytes, &Some(vec![0xff])), SqlValue::Unknown);
        // Cut by the server after 2,049 bytes, at the end of a character.
        let cut = "ü".repeat(1_024) + "x";
        assert_eq!(read(SqlColumnKind::Bytes, &Some(cut.into_bytes())), SqlValue::Unknown);
    }
}
