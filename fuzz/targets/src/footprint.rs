//! Statements to what they read: no text is a panic, the same text always has the same reads, and a value
//! that is not known touches at least as much as a known one.
//!
//! The data are a statement, which is read in several modes of the session. They are also the bytes of saved reads:
//! what is read of them can be used and saved again.

use footprint::schema::{SqlColumn, SqlSchema, TableId};
use footprint::{
    Index, Reads, ReadsLoader, RowEvent, SqlCharset, SqlMode, SqlRow, SqlValue, StatementReader,
};
use std::sync::{Arc, OnceLock};

const VALUES: [&str; 6] = ["5", "", "publish", "Stra\u{df}e", "2026-01-02 00:00:00", "-1.50"];

/// Reads the statement, and tries changes of rows on what it reads.
pub fn run(data: &[u8]) {
    let schema = schema();
    for sql_mode in ["", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"] {
        let mode = SqlMode::of(sql_mode);
        let mut reader = StatementReader::new(Arc::clone(&schema));
        let read = reader.read(data, mode);
        assert_eq!(read, reader.read(data, mode), "the second time");
        // At the limit of the length, one more byte is too much.
        if data.len() < 1 << 20 {
            assert_eq!(read, reader.read(&[data, b"\n"].concat(), mode), "with a blank");
        }
        let Ok(reads) = read else { continue };
        if let Some(saved) = reads.save() {
            let again = ReadsLoader::new(Arc::clone(&schema)).read(&saved);
            assert_eq!(again.as_ref(), Ok(&reads), "saved");
        }
        for table in schema.table_ids() {
            changes(&schema, &reads, table);
        }
    }
    use_saved(&schema, data);
    for charset in [SqlCharset::Binary, SqlCharset::Other] {
        let mode = SqlMode { charset, ..SqlMode::default() };
        let _ = StatementReader::new(schema.clone()).read(data, mode);
    }
}

/// Uses the bytes as saved reads.
fn use_saved(schema: &Arc<SqlSchema>, data: &[u8]) {
    let Ok(reads) = ReadsLoader::new(Arc::clone(schema)).read(data) else { return };
    let saved = reads.save().expect("within the limits");
    let again = ReadsLoader::new(Arc::clone(schema)).read(&saved).expect("it was saved");
    let mut index = Index::new(Arc::clone(schema));
    let id = index.acquire(1, || again);
    for table in schema.table_ids() {
        changes(schema, &reads, table);
        let _ = index.of_table(table);
    }
    reads.footprints().for_each(|own| assert!(!own.describe(schema).is_empty()));
    index.release(id);
    assert!(index.is_empty());
}

fn schema() -> Arc<SqlSchema> {
    static SCHEMA: OnceLock<Arc<SqlSchema>> = OnceLock::new();
    let text = Some("utf8mb4_general_ci");
    let columns = [
        SqlColumn::new("ID", "bigint", None, "PRI"),
        SqlColumn::new("post_status", "varchar", text, "MUL"),
        SqlColumn::new("post_title", "text", text, ""),
        SqlColumn::new("post_date", "datetime", None, "MUL"),
        SqlColumn::new("post_parent", "int", None, "MUL"),
        SqlColumn::new("score", "decimal", None, ""),
        SqlColumn::new("raw", "blob", None, ""),
    ];
    let tables = SCHEMA.get_or_init(|| {
        let mut schema = SqlSchema::new("site");
        for table in ["wp_posts", "wp_postmeta", "wp_terms"] {
            schema.add(table, columns.to_vec());
        }
        Arc::new(schema)
    });
    Arc::clone(tables)
}

fn changes(schema: &SqlSchema, reads: &Reads, table: TableId) {
    let columns = schema.table(table).columns.len();
    let touches = |event: &RowEvent<'_>| {
        let mut own = reads.footprints().filter(|own| own.table == table);
        own.any(|own| own.touch(event).is_some())
    };
    for first in 0..VALUES.len() {
        let mut known: Vec<SqlValue<'static>> = (0..columns)
            .map(|at| SqlValue::Text(VALUES[(first + at) % VALUES.len()].into()))
            .collect();
        known[first] = SqlValue::Null;
        let mut unknown = known.clone();
        unknown[(first + 1) % columns] = SqlValue::Unknown;
        let other = || SqlRow::new(vec![SqlValue::Text(VALUES[first].into()); columns]);
        let insert = |row: &[SqlValue<'static>]| {
            RowEvent::new(schema, table, None, Some(SqlRow::new(row.to_vec())))
        };
        let update = |row: &[SqlValue<'static>]| {
            RowEvent::new(schema, table, Some(other()), Some(SqlRow::new(row.to_vec())))
        };
        assert!(!touches(&insert(&known)) || touches(&insert(&unknown)), "an insertion");
        assert!(!touches(&update(&known)) || touches(&update(&unknown)), "an update");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement with conditions of several kinds, on each table.
    const STATEMENT: &[u8] =
        br"SELECT p.post_title FROM wp_posts p JOIN wp_postmeta m ON m.post_parent = p.ID
        LEFT JOIN wp_terms t ON t.ID = m.score AND t.post_title LIKE '%lantern\%\_'
        WHERE p.post_status IN ('publish', 'draft') AND p.post_date <= '2026-01-02 00:00:00'
        AND NOT (m.post_title = 'publish' OR m.raw IS NULL)";

    /// Saves the reads again after a change of their format: `cargo test -p fuzz-targets -- --ignored record`.
    #[test]
    #[ignore = "writes into fuzz/corpus"]
    fn record() {
        let reads = StatementReader::new(schema()).read(STATEMENT, SqlMode::default());
        let saved = reads.expect("it can be read").save().expect("within the limits");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/footprint/saved");
        std::fs::write(path, saved).expect("a file");
    }

    #[test]
    fn the_corpus_has_saved_reads() {
        let bytes = include_bytes!("../../corpus/footprint/saved");
        let reads = ReadsLoader::new(schema()).read(bytes).expect("the tables are those above");
        assert_eq!(reads.footprints().count(), 3);
    }
}
