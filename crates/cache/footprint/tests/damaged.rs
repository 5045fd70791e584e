//! Damaged statements, damaged saved reads, and bytes that are none: they are read or refused, without a panic, and
//! the same each time.
//!
//! `fuzz/targets/src/footprint.rs` has the same for libFuzzer. Not here: what statements read.

use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{
    Index, InvalidReads, PartnerRows, ReadsLoader, RecentRows, RowEvent, SqlCharset, SqlMode,
    SqlRow, SqlValue, StatementReader,
};
use proptest::prelude::*;
use std::sync::Arc;

const STATEMENTS: [&str; 10] = [
    "SELECT a.*, COUNT(*) FROM t AS a LEFT JOIN u ON a.id = u.id AND u.name LIKE 'a\\%%' WHERE NOT (a.id IN (1, 2) OR u.name IS NULL)",
    "SELECT DISTINCT name FROM t WHERE id BETWEEN 1 AND 5 AND name <> 'it''s' GROUP BY name HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 5, 10",
    "WITH q AS (SELECT id FROM t) SELECT * FROM q JOIN u USING (id) UNION ALL SELECT 1, \"b\" -- end\n",
    "SELECT (SELECT MAX(id) FROM u WHERE u.name = t.name) FROM `t` WHERE YEAR(day) = 2026 AND day > '2026-01-01'",
    "SELECT /*!40001 SQL_NO_CACHE */ 0x41, b'1', _utf8'a', 1e5, .5 FROM t, site.u /* end */ WHERE id XOR 1 || name",
    "SELECT CASE WHEN id = 5 THEN name ELSE NOW() END AS x FROM (SELECT * FROM t) q WHERE x <=> 5 && x REGEXP '^a'",
    "SELECT t.id FROM t WHERE t.id > 3 AND name = 'a' ORDER BY t.id ASC LIMIT 1",
    "SELECT * FROM t WHERE (day < '2026-01-02' OR day = '2026-01-02' AND id < 5) ORDER BY day DESC, id DESC LIMIT 2",
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
        let table = schema.table_id(table).expect("added");
        schema.set_logged_first(table);
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
    // Reads that exceed a limit are not saved.
    if let Some(saved) = reads.save() {
        let again = ReadsLoader::new(Arc::clone(&schema)).read(&saved);
        assert_eq!(again.as_ref(), Ok(&reads), "saved");
    }
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
    let charset =
        prop::sample::select(vec![SqlCharset::Utf8, SqlCharset::Binary, SqlCharset::Other]);
    let flags = prop::array::uniform3(any::<bool>());
    (flags, charset).prop_map(|([ansi, plain, other], charset)| SqlMode {
        has_ansi_quotes: ansi,
        has_plain_backslashes: plain,
        has_other_meanings: other,
        charset,
    })
}

/// Uses what was read from bytes in every way: nothing panics, and it is the same when it is saved again.
fn use_saved(bytes: &[u8]) {
    let schema = schema();
    let Ok(reads) = ReadsLoader::new(Arc::clone(&schema)).read(bytes) else { return };
    let saved = reads.save().expect("within the limits");
    let again = ReadsLoader::new(Arc::clone(&schema)).read(&saved).expect("it was saved");
    // A number that is none is not equal to itself.
    assert_eq!(format!("{reads:?}"), format!("{again:?}"));
    let mut index = Index::new(Arc::clone(&schema));
    let id = index.acquire(1, || again);
    let values = ["5", "a", "2026-01-01"].map(|text| SqlValue::Text(text.into()));
    for table in schema.table_ids() {
        let row = || Some(SqlRow::new(values.to_vec()));
        for (before, after) in [(None, row()), (row(), None), (row(), row())] {
            let event = RowEvent::new(&schema, table, before, after);
            assert_eq!(index.touched(&event).contains(&id), reads.touched_by(&event), "{reads:?}");
            let recent = RecentRows::new(1);
            let mut partners = PartnerRows::new(&recent);
            reads.affected_by(&event, &mut partners);
            for lookup in partners.take_missing() {
                partners.found(lookup, row().map(|row| vec![row]));
            }
            reads.affected_by(&event, &mut partners);
        }
    }
    reads.footprints().for_each(|own| assert!(!own.describe(&schema).is_empty()));
    index.release(id);
    assert!(index.is_empty());
}

/// The reads of a statement as bytes.
fn saved(statement: &str) -> Option<Vec<u8>> {
    StatementReader::new(schema()).read(statement.as_bytes(), SqlMode::default()).ok()?.save()
}

#[test]
fn reads_of_other_tables_are_refused() {
    let bytes = saved(STATEMENTS[0]).expect("it is read");
    assert!(ReadsLoader::new(schema()).read(&bytes).is_ok());
    assert_eq!(
        ReadsLoader::new(Arc::new(SqlSchema::new("site"))).read(&bytes),
        Err(InvalidReads),
        "no such table"
    );
    for length in 0..bytes.len() {
        assert_eq!(ReadsLoader::new(schema()).read(&bytes[..length]), Err(InvalidReads));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(ReadsLoader::new(schema()).read(&longer), Err(InvalidReads));
}

#[test]
fn equal_forms_are_shared_again() {
    let mut loader = ReadsLoader::new(schema());
    let mut read = |id: u32| {
        let bytes = saved(&format!("SELECT name FROM t WHERE id = {id}")).expect("it is read");
        loader.read(&bytes).expect("it was saved")
    };
    let (one, other) = (read(5), read(6));
    assert_ne!(one, other);
    assert!(one.shares_form(&other));
}

#[test]
fn deep_conditions_are_refused() {
    // No constants; one block with one table, and a condition of conditions.
    let deep = |depth: usize| {
        let begin = [0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let condition = [3, 1, 0, 0, 0].repeat(depth);
        [&begin[..], &condition[..], &[0; 1 + 16 + 16 + 4 + 1][..]].concat()
    };
    assert!(ReadsLoader::new(schema()).read(&deep(100)).is_ok());
    assert_eq!(ReadsLoader::new(schema()).read(&deep(101)), Err(InvalidReads));
    assert_eq!(ReadsLoader::new(schema()).read(&deep(300_000)), Err(InvalidReads));
}

proptest! {
    #[test]
    fn saved_reads_with_faults(
        statement in 0..STATEMENTS.len(),
        faults in prop::collection::vec((0..400_usize, any::<u8>()), 0..4),
    ) {
        let Some(mut bytes) = saved(STATEMENTS[statement]) else { return Ok(()) };
        for (at, to) in faults {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        use_saved(&bytes);
    }

    #[test]
    fn saved_reads_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        use_saved(&bytes);
    }

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
