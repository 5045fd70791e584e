//! Texts: quotes, comments, character sets, lengths and depths.
//!
//! Each text is split as the server does it, or refused, and none is too much. Not here: conditions.

use crate::{check, check_in, is_touched, read, read_in, refused};
use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{
    Reads, RowEvent, SqlCharset, SqlMode, SqlRow, SqlValue, StatementReader, UnknownReads,
};
use std::sync::Arc;

#[test]
fn a_comment_that_the_server_executes_is_read() {
    check(&[
        ("SELECT 1 FROM post /*! , meta */", &["+meta", "+post", "-person"]),
        (
            "SELECT 1 FROM post /*!50000 JOIN meta */ /*M!100000 JOIN person */",
            &["+meta", "+person"],
        ),
        ("SELECT /*!40001 SQL_NO_CACHE */ id FROM post WHERE id = 5", &["+post id=5", "-post"]),
        (
            "SELECT id FROM post /* , meta */ WHERE id = 5 -- , meta",
            &["+post id=5", "-post", "-meta"],
        ),
        // A hint does not change the rows, so the structure is known.
        (
            "SELECT DISTINCT /*! STRAIGHT_JOIN */ /*!40001 SQL_NO_CACHE*/ id FROM post WHERE id = 5",
            &["+post id=5", "-post"],
        ),
        ("SELECT STRAIGHT_JOIN title || 1 FROM post WHERE id = 5", &["+post", "-meta"]),
        ("SELECT id FROM post # , meta\n WHERE id = 5", &["+post id=5", "-post", "-meta"]),
        ("SELECT id FROM post WHERE id = 5--1", &["+post id=6", "-meta"]),
        ("SELECT /*! 1 /* inside */ FROM post */", &["+post"]),
    ]);
    refused(&[
        "SELECT 1 /*! FROM post",
        "SELECT 1 /* FROM post",
        "/*! SELECT id FROM post */",
        "/*!40101 SET @a = (SELECT 1) */",
        "/*!99999 SET */ SELECT id FROM post",
    ]);
}

#[test]
fn texts_in_other_character_sets_are_read_as_far_as_they_are_clear() {
    let mode = SqlMode { charset: SqlCharset::Other, ..SqlMode::default() };
    let statement = |title: &[u8]| [b"SELECT id FROM post WHERE title = '", title, b"'"].concat();
    let reads = read_in(mode, &statement(b"caf\xe9")).expect("a constant of unknown value");
    assert!(is_touched(&reads, "post title=a"));
    let reads = read_in(mode, &statement(b"cafe")).expect("ASCII");
    assert!(!is_touched(&reads, "post title=a") && is_touched(&reads, "post title=Caf\u{e9}"));
    // In GBK, a character may end with the byte of a backslash.
    assert_eq!(read_in(mode, &statement(b"\xbf\\")), Err(UnknownReads::Text));
    // In UTF-8, a constant that is none.
    let reads = read_in(SqlMode::default(), &statement(b"caf\xe9")).expect("no text");
    assert!(is_touched(&reads, "post title=a"));
    assert_eq!(read_in(SqlMode::default(), b"SELECT \xe9 FROM post"), Err(UnknownReads::Text));
}

#[test]
fn bytes_are_compared_as_bytes() {
    let mode = SqlMode { charset: SqlCharset::Binary, ..SqlMode::default() };
    let statement = |test: &[u8]| [b"SELECT id FROM post WHERE title ", test].concat();
    let reads = |test: &[u8]| read_in(mode, &statement(test)).expect("a constant");
    let is_new = |test: &[u8], row: &str| is_touched(&reads(test), row);
    // Bytes that end with a backslash or grave accent are no halves of characters.
    assert!(is_new(b"<> 'a\xbf\\\\\xbf`'", "post title=b"));
    // A column with a collation: other letters differ, but equal ones may differ in case.
    assert!(!is_new(b"= 'cafe'", "post title=tea") && is_new(b"= 'cafe'", "post title=CAFE"));
    assert!(is_new(b"<> 'cafe'", "post title=CAFE") && is_new(b"LIKE 'cafe'", "post title=tea"));
    assert!(is_new("= 'caf\u{e9}'".as_bytes(), "post title=tea"));
    assert!(is_new(b"= 'caf\xe9'", "post title=tea"));
}

#[test]
fn texts_are_split_as_the_server_does() {
    let is_a: &[&str] = &["+post title=a'b", "-post title=a"];
    check(&[
        ("SELECT 1 FROM post WHERE title = 'a''b'", is_a),
        ("SELECT 1 FROM post WHERE title = 'a\\'b'", is_a),
        ("SELECT 1 FROM post WHERE title = \"a'b\"", is_a),
        ("SELECT 1 FROM post WHERE title = 'a''' 'b'", is_a),
        ("SELECT 1 FROM post WHERE title = \"a\"'\\''\n'b'", is_a),
        ("SELECT 1 FROM post WHERE title = '\\a\\'b'", is_a),
        ("SELECT 1 FROM post WHERE title = 'a\\'b' -- ' OR 1 = 1", is_a),
        ("SELECT 1 FROM post WHERE `title` = 'a\\'b' /* ' */", is_a),
        ("SELECT 1 FROM `site`.`post` WHERE `post`.`title` = 'a\\'b'", is_a),
        ("SELECT 1 FROM post WHERE title = _utf8mb4'a'", &["+post title=b"]),
        ("SELECT 1 FROM post WHERE title = N'a'", &["+post title=b"]),
        ("SELECT 1 FROM post WHERE title = x'61'", &["+post title=b"]),
        ("SELECT 1 FROM post WHERE raw = 0x61", &["+post raw=b"]),
        ("SELECT 1 FROM post WHERE author = b'101'", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE author = 0x05", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE author = 5e0", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE author = 5.0", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE title = \"status\"", &["+post title=status", "-post title=x"]),
    ]);
    let mode = SqlMode::of("ANSI_QUOTES");
    check_in(
        mode,
        &[
            ("SELECT 1 FROM post WHERE title = \"status\"", &["+post title=x"]),
            (
                "SELECT \"p\".* FROM \"post\" \"p\" WHERE \"p\".\"title\" = 'a'",
                &["-post title=x", "+post title=a"],
            ),
        ],
    );
    let mode = SqlMode::of("NO_BACKSLASH_ESCAPES");
    check_in(
        mode,
        &[
            (
                "SELECT 1 FROM post WHERE title = 'a\\' AND author = 5 -- '",
                &["-post title=a\\", "+post title=a\\;author=5"],
            ),
            ("SELECT 1 FROM post WHERE title LIKE 'a\\%'", &["+post title=b"]),
        ],
    );
}

#[test]
fn names_may_begin_with_digits() {
    let mut schema = SqlSchema::new("site");
    let columns = ["id", "2g", "1e5x"].map(|name| SqlColumn::new(name, "int", None, ""));
    schema.add("3d", columns.to_vec());
    let schema = Arc::new(schema);
    let mut reader = StatementReader::new(Arc::clone(&schema));
    let row = |value: &'static str| {
        SqlRow::new(["1", value, value].map(|text| SqlValue::Text(text.into())).to_vec())
    };
    let insert = |value| {
        RowEvent::new(&schema, schema.table_id("3d").expect("a table"), None, Some(row(value)))
    };
    for sql in [
        "SELECT id FROM 3d WHERE 2g = 5",
        "SELECT id FROM site.3d WHERE 3d.2g = 5",
        "SELECT id FROM `3d` WHERE `3d`.`2g` = 5",
        "SELECT id FROM 3d WHERE 1e5x = 5",
    ] {
        let reads = reader.read(sql.as_bytes(), SqlMode::default()).expect("it can be read");
        let is_touched = |value| reads.footprints().any(|own| own.touch(&insert(value)).is_some());
        assert!(is_touched("5"), "{sql}");
        // The last one is a number and a name, or a name, in the eyes of the parser.
        assert!(!is_touched("6") || sql.contains("1e5x"), "{sql}: {reads:?}");
    }
}

/// Reads a statement in a thread with a small stack.
fn read_with_small_stack(sql: String) -> Result<Reads, UnknownReads> {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(move || read(&sql)).expect("a thread").join().expect("no panic")
}

#[test]
fn long_and_deep_statements_are_bounded() {
    let ids: Vec<String> = (0..10_000).map(|id| (2 * id).to_string()).collect();
    let list = format!("SELECT title FROM post WHERE id IN ({})", ids.join(", "));
    let reads = read_with_small_stack(list).expect("a list");
    assert!(is_touched(&reads, "post id=9998") && !is_touched(&reads, "post id=9999"));
    let around = |begin: &str, end: &str, count: usize| {
        let (begin, end) = (begin.repeat(count), end.repeat(count));
        format!("SELECT title FROM post WHERE {begin}id = 5{end}")
    };
    for count in [1, 10, 40, 100, 200, 300, 370, 490, 740, 1_000, 10_000] {
        for sql in [
            around("(", ")", count),
            around("NOT ", "", count),
            around("- ", "", count),
            around("NOT (", ")", count),
            around("", " AND author = 5", count),
            around("", " OR author = 5", count),
            around("", " OR author IN (SELECT id FROM meta)", count),
            around("", " AND author = 5 OR title = 'a'", count),
            around("", " + 1", count),
            around("id IN (SELECT id FROM meta WHERE ", ")", count),
            around("IF(1, 1, ", ")", count),
            around("", " UNION SELECT id FROM post", count),
            around("(id = 5 AND author = 5 OR NOT ", ")", count),
            around("EXISTS (SELECT 1 FROM post JOIN meta JOIN meta JOIN post WHERE ", ")", count),
            around("CASE WHEN ", " THEN 1 END", count),
            format!("SELECT 1 FROM {}post{}", "(".repeat(count), ")".repeat(count)),
            format!("SELECT title FROM post{} WHERE post.id = 5", " JOIN meta".repeat(count)),
            format!("SELECT * FROM {}post{}", "(SELECT * FROM ".repeat(count), ") q".repeat(count)),
        ] {
            let start: String = sql.chars().take(80).collect();
            let reads =
                read_with_small_stack(sql).unwrap_or_else(|error| panic!("{start}: {error}"));
            let changes = ["post id=5;author=5 -> id=6;author=5", "post id=5 -> id=6"];
            let is_any = changes.iter().any(|change| is_touched(&reads, change));
            assert!(is_any, "{count} {start}");
        }
    }
    let text =
        |length: usize| format!("SELECT id FROM post WHERE title = '{}'", "a".repeat(length));
    let reads = read_with_small_stack(text(1_000_000)).expect("a long text");
    assert!(!is_touched(&reads, "post title=b"));
    assert_eq!(read_with_small_stack(text(1 << 20)), Err(UnknownReads::Text));
}

#[test]
fn a_name_that_begins_like_a_number_in_hexadecimal_is_a_name() {
    for (text, is_refused) in [
        // A constant, and a name that is no column.
        ("SELECT 0x1F FROM post", false),
        ("SELECT 0b01 FROM post", false),
        ("SELECT 0 FROM 0xyz", true),
        ("SELECT 0 FROM 0based", true),
    ] {
        assert_eq!(read(text).is_err(), is_refused, "{text}");
    }
}
