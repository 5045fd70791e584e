//! Values of every type that occurs in keys: the stream writes them as `SELECT` shows them.
//!
//! The server is the reference: each value in the stream is compared with the text that a statement returns.
//! The session has the same settings, whatever the settings of the database. The recordings for the fuzzer are
//! also made here.

mod common;

use common::{Follower, Paper};
use postgres_replication::position::Lsn;
use postgres_replication::wire::login::Purpose;
use postgres_replication::{Cell, ChangeScope};

const COLUMNS: &[(&str, &[&str])] = &[
    ("smallint", &["-32768", "0", "32767"]),
    ("integer", &["-2147483648", "7", "2147483647"]),
    ("bigint", &["-9223372036854775808", "9223372036854775807"]),
    ("numeric", &["0", "-12.50", "1e30", "'NaN'", "'Infinity'"]),
    ("numeric(10,3)", &["1", "-0.001", "1234567.891"]),
    ("real", &["0.1", "-1e-30", "'NaN'", "3.4028235e38"]),
    ("double precision", &["0.1", "1e300", "'-Infinity'", "0.30000000000000004"]),
    ("boolean", &["true", "false"]),
    ("text", &["''", "'straße'", "E'tab\\tline\\nquote''\\\\'", "'日本語'", "repeat('x', 3000)"]),
    ("varchar(20)", &["'a b '", "'é'"]),
    ("char(5)", &["'ab'", "''"]),
    ("\"char\"", &["'x'"]),
    ("bytea", &["'\\x'", "'\\x00ff41'"]),
    ("date", &["'2026-02-28'", "'infinity'", "'0044-03-15 BC'"]),
    ("time", &["'23:59:59.999999'", "'00:00'"]),
    ("timestamp", &["'2026-02-28 09:30:00.5'", "'-infinity'"]),
    ("timestamptz", &["'2026-07-01 12:00:00+02'", "'1900-01-01 00:00:00 Europe/Amsterdam'"]),
    ("interval", &["'1 year 2 months 3 days 04:05:06.7'", "'-1 day'"]),
    ("uuid", &["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    ("inet", &["'192.168.0.1/24'", "'::1'"]),
    ("cidr", &["'10.0.0.0/8'"]),
    ("macaddr", &["'08-00-2b-01-02-03'"]),
    ("json", &["'{\"b\":  1, \"a\": [null]}'"]),
    ("jsonb", &["'{\"b\":  1, \"a\": [null]}'"]),
    ("bit(5)", &["B'10101'"]),
    ("varbit", &["B''", "B'1'"]),
    ("money", &["12.5"]),
    ("integer[]", &["'{1,NULL,3}'", "'{}'"]),
    ("text[]", &["ARRAY['a b', 'c,\"d']"]),
    ("int4range", &["'[1,5]'", "'empty'"]),
    ("point", &["'(1,2.5)'"]),
    ("xml", &["'<a b=\"c\"/>'"]),
    ("tsvector", &["'the fat cat'"]),
    ("mood", &["'so so'"]),
    ("pair", &["ROW(1, 'x y')"]),
    ("short", &["'abc'"]),
    ("oid", &["4294967295"]),
    ("regclass", &["'pg_class'"]),
];

#[test]
fn values_are_written_as_a_statement_shows_them() {
    let paper = Paper::new(
        "CREATE TYPE mood AS ENUM ('sad', 'so so'); CREATE TYPE pair AS (a int, b text);
         CREATE DOMAIN short AS varchar(3);
         ALTER DATABASE paper SET datestyle = 'German'; ALTER DATABASE paper SET timezone = 'Asia/Tokyo';
         ALTER DATABASE paper SET bytea_output = 'escape'; ALTER DATABASE paper SET extra_float_digits = 0;
         ALTER DATABASE paper SET intervalstyle = 'iso_8601';",
    );
    let mut stream = paper.follow();
    let mut reader = paper.connect(Purpose::Statements);
    for (number, (kind, values)) in COLUMNS.iter().enumerate() {
        let table = format!("t{number}");
        let rows: Vec<String> =
            values.iter().enumerate().map(|(id, value)| format!("({id}, {value})")).collect();
        paper.sql(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, v {kind});
             GRANT SELECT ON {table} TO follower;
             INSERT INTO {table} VALUES {}, (99, NULL)",
            rows.join(", ")
        ));
        let shown = reader.query(&format!("SELECT v FROM {table} ORDER BY id")).expect("rows");
        let sent = values_of(&mut stream);
        assert_eq!(sent.len(), values.len() + 1);
        for (row, sent) in sent.iter().enumerate() {
            let mut text = shown.text(row, 0);
            if *kind == "bytea" {
                text = text.map(|text| text.trim_start_matches("\\x").to_owned());
            }
            assert_eq!(*sent, text, "{kind}");
        }
    }
}

/// The second column of each row of the next transaction; `None` for NULL.
fn values_of(stream: &mut Follower) -> Vec<Option<String>> {
    let transaction = stream.next();
    let [ChangeScope::Rows(rows)] = transaction.changes.as_slice() else { panic!("rows") };
    let value = |cell: Cell<'_>| match cell {
        Cell::Text(text) => Some(text.to_owned()),
        Cell::Null => None,
        Cell::Unknown => panic!("not known"),
    };
    rows.changes().map(|row| value(row.expect("a row").after(1))).collect()
}

#[test]
fn text_that_is_no_utf_8_is_not_known() {
    let paper = Paper::new("");
    // A database without an encoding forwards any bytes.
    paper.sql("CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0 OWNER writer");
    let sql = |sql: &str| paper.database.sql_in("raw", sql).expect("it runs");
    sql("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION pagewell FOR ALL TABLES;
         SELECT pg_drop_replication_slot('pagewell')");
    sql("SELECT pg_create_logical_replication_slot('pagewell', 'pgoutput')");
    sql("SET client_encoding = 'SQL_ASCII'; INSERT INTO t VALUES (1, E'\\xe9'), (2, 'plain')");
    let mut account = common::account("follower");
    account.database = "raw".into();
    let mut stream = paper.follow_as(account);
    assert_eq!(stream.told(), ["insert t id=1 v=?", "insert t id=2 v=plain"]);
}

/// Makes the recordings that the fuzzer and `tests/damaged.rs` start from: `cargo test -p postgres-replication
/// --test postgres_types -- --ignored record`.
#[test]
#[ignore = "writes into fuzz/corpus"]
fn record() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fuzz/corpus/logical_replication");
    std::fs::create_dir_all(&corpus).expect("a directory");
    let tables = "CREATE TABLE news (id int PRIMARY KEY, title text, body text);
         ALTER TABLE news ALTER body SET STORAGE EXTERNAL;
         CREATE TABLE comments (id int PRIMARY KEY, news_id int REFERENCES news ON DELETE CASCADE);
         CREATE TABLE types (a int, b numeric, c bytea, d timestamptz, e text[], f boolean);";
    let scenes = [
        (
            "default",
            "",
            "INSERT INTO news VALUES (1, 'one', repeat('x', 3000)), (2, NULL, 'short');
            INSERT INTO comments VALUES (1, 1), (2, 2); UPDATE news SET title = 'uno' WHERE id = 1;
            UPDATE news SET id = 3 WHERE id = 1 AND false; UPDATE comments SET id = 7 WHERE id = 1;
            DELETE FROM news; TRUNCATE news, comments",
        ),
        (
            "full",
            "ALTER TABLE news REPLICA IDENTITY FULL; ALTER TABLE types REPLICA IDENTITY FULL",
            "INSERT INTO news VALUES (1, 'one', repeat('x', 3000)); UPDATE news SET title = NULL;
            INSERT INTO types VALUES (1, 2.50, '\\x00ff', now(), '{a,NULL}', true);
            UPDATE types SET a = 5; DELETE FROM types; DELETE FROM news",
        ),
        (
            "definitions",
            "",
            "INSERT INTO news VALUES (1); ALTER TABLE news ADD lead text;
            UPDATE news SET id = 2; ALTER TABLE news RENAME TO stories; DELETE FROM stories;
            SELECT pg_logical_emit_message(true, 'pagewell-defined', 'x');
            BEGIN; INSERT INTO comments SELECT i FROM generate_series(1, 200) i; TRUNCATE types;
            SAVEPOINT a; DELETE FROM comments WHERE id < 9; ROLLBACK TO a; COMMIT",
        ),
    ];
    for (name, before, sql) in scenes {
        let paper = Paper::new(tables);
        paper.sql(before);
        let mut stream = paper.follow();
        paper.sql(sql);
        let mut spare = paper.connect(Purpose::Statements);
        let place: Lsn = spare.one("SELECT pg_current_wal_insert_lsn()").parse().expect("a place");
        while stream.transactions.position() < place.before_header() {
            stream.step().expect("the stream goes on");
        }
        let mut recording = Vec::new();
        for frame in &stream.recorded {
            recording.extend_from_slice(&(frame.len() as u16).to_be_bytes());
            recording.extend_from_slice(frame);
        }
        std::fs::write(corpus.join(name), recording).expect("a recording");
    }
}
