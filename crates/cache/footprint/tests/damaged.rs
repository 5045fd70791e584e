//! Damaged statements, and bytes that are none: they are read or refused, without a panic, and the same each
//! time.
//!
//! `fuzz/targets/src/footprint.rs` has the same for libFuzzer. Not here: what statements read.

use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{RowEvent, SqlMode, SqlRow, SqlValue, StatementReader};
use proptest::prelude::*;
use std::sync::Arc;

const STATEMENTS: [&str; 8] = [
    "SELECT a.*, COUNT(*) FROM t AS a LEFT JOIN u ON a.id = u.id AND u.name LIKE 'a\\%%' WHERE NOT (a.id IN (1, 2) OR u.name IS NULL)",
    "SELECT DISTINCT name FROM t WHERE id BETWEEN 1 AND 5 AND name <> 'it''s' GROUP BY name HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 5, 10",
    "WITH q AS (SELECT id FROM t) SELECT * FROM q JOIN u USING (id) UNION ALL SELECT 1, \"b\" -- end\n",
    "SELECT (SELECT MAX(id) FROM u WHERE u.name = t.name) FROM `t` WHERE YEAR(day) = 2026 AND day > '2026-01-01'",
    "SELECT /*!40001 SQL_NO_CACHE */ 0x41, b'1', _utf8'a', 1e5, .5 FROM t, site.u /* end */ WHERE id XOR 1 || name",
    "SELECT CASE WHEN id = 5 THEN name ELSE NOW() END AS x FROM (SELECT * FROM t) q WHERE x <=> 5 && x REGEXP '^a'",
    "SHOW FULL COLUMNS FROM `t`",
    "DELETE FROM t WHERE id = 5 RETURNING name",
];

const WORDS: [&str; 32] = [
    "'",
    "\"",
    "`",
    "\\",
    "(",
    ")",
    ",",
    ";",
    "--",
    "-- ",
    "/*",
    "*/",
    "/*!",
    "#",
    " NOT ",
    " OR ",
    " AND ",
    " IN (",
    " SELECT ",
    " FROM ",
    " t ",
    " u ",
    ".",
    "*",
    "0x",
    "@",
    "1e",
    " JOIN ",
    " UNION ",
    "\0",
    "\u{e9}",
    " WITH q AS (",
];

fn schema() -> Arc<SqlSchema> {
    let mut schema = SqlSchema::new("site");
    for table in ["t", "u"] {
        let columns = [
            SqlColumn::new("id", "int", None, "PRI"),
            SqlColumn::new("name", "varchar", Some("utf8mb4_general_ci"), "MUL"),
            SqlColumn::new("day", "date", None, ""),
        ];
        schema.add(table, columns.to_vec());
    }
    Arc::new(schema)
}

/// Reads a text twice, and tries a row whose values are known and one whose values are not.
fn check(text: &[u8], mode: SqlMode) {
    let schema = schema();
    let mut reader = StatementReader::new(Arc::clone(&schema));
    let read = reader.read(text, mode);
    assert_eq!(read, reader.read(text, mode), "the second time");
    let Ok(reads) = read else { return };
    let known = ["5", "a", "2026-01-01"].map(|text| SqlValue::Text(text.into())).to_vec();
    for table in schema.table_ids() {
        let touches = |values: Vec<SqlValue<'static>>| {
            let event = RowEvent::new(&schema, table, None, Some(SqlRow::new(values)));
            reads.footprints().any(|own| own.table == table && own.touch(&event).is_some())
        };
        assert!(!touches(known.clone()) || touches(Vec::new()), "unknown values touch less");
    }
}

fn mode() -> impl Strategy<Value = SqlMode> {
    prop::array::uniform4(any::<bool>()).prop_map(|[ansi, plain, other, utf8]| SqlMode {
        has_ansi_quotes: ansi,
        has_plain_backslashes: plain,
        has_other_meanings: other,
        is_utf8: utf8,
    })
}

proptest! {
    #[test]
    fn any_bytes(text in prop::collection::vec(any::<u8>(), 0..200), mode in mode()) {
        check(&text, mode);
        check(&[b"SELECT ", &text[..]].concat(), mode);
    }

    /// Pieces of statements in another order, with words between them.
    #[test]
    fn damaged_statements(
        pieces in prop::collection::vec(
            (0..STATEMENTS.len(), 0..150_usize, 0..60_usize, 0..2 * WORDS.len()), 1..5),
        mode in mode(),
    ) {
        let mut text = STATEMENTS[pieces[0].0].as_bytes()[..7].to_vec();
        for (statement, from, length, word) in pieces {
            let statement = STATEMENTS[statement].as_bytes();
            let from = from.min(statement.len());
            text.extend(&statement[from..(from + length).min(statement.len())]);
            text.extend(WORDS.get(word).unwrap_or(&"").bytes());
        }
        check(&text, mode);
    }

    /// A statement with a word put in, or bytes left out.
    #[test]
    fn one_fault(statement in 0..STATEMENTS.len(), at in 0..150_usize, left_out in 0..6_usize, word in 0..WORDS.len(), mode in mode()) {
        let statement = STATEMENTS[statement].as_bytes();
        let at = at.min(statement.len());
        let rest = &statement[(at + left_out).min(statement.len())..];
        check(&[&statement[..at], WORDS[word].as_bytes(), rest].concat(), mode);
    }
}
