//! Statements, and the changes of rows that touch them.
//!
//! A change is the name of a table, and the row before and after it (`post status=draft -> status=publish`);
//! a single row was inserted. All other columns have the values of [`column_default`]. Not here: what the
//! database answers (`tests/mariadb`).

mod conditions;
mod texts;

use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{
    Reads, ReadsLoader, RowEvent, SqlMode, SqlRow, SqlValue, StatementReader, UnknownReads,
};
use std::sync::Arc;

/// A table: its name, and for each column name, type and key.
type Definition = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

const TABLES: [Definition; 3] = [
    (
        "post",
        &[
            ("id", "int", "PRI"),
            ("title", "varchar", ""),
            ("status", "varchar", "MUL"),
            ("author", "int", "MUL"),
            ("score", "decimal", ""),
            ("posted", "datetime", ""),
            ("raw", "varbinary", ""),
            ("flag", "enum", ""),
        ],
    ),
    (
        "meta",
        &[
            ("id", "int", "PRI"),
            ("post", "int", "MUL"),
            ("name", "varchar", ""),
            ("value", "text", ""),
        ],
    ),
    ("person", &[("id", "int", "PRI"), ("name", "varchar", "UNI"), ("nick", "varchar", "")]),
];

fn schema() -> Arc<SqlSchema> {
    let mut schema = SqlSchema::new("site");
    for (name, columns) in TABLES {
        let column = |(name, data_type, key): &(&str, &str, &str)| {
            let collation =
                matches!(*data_type, "varchar" | "text").then_some("utf8mb4_general_ci");
            SqlColumn::new(name, data_type, collation, key)
        };
        schema.add(name, columns.iter().map(column).collect());
    }
    Arc::new(schema)
}

/// The value of a column that a change does not give.
fn column_default(data_type: &str) -> &'static str {
    match data_type {
        "int" => "1",
        "decimal" => "1.00",
        "datetime" => "2026-01-01 00:00:00",
        _ => "x",
    }
}

fn row(table: &str, values: &str) -> SqlRow<'static> {
    let given: Vec<(&str, &str)> =
        values.split(';').filter_map(|pair| pair.trim().split_once('=')).collect();
    let (_, columns) = TABLES.iter().find(|(name, _)| *name == table).expect("a table");
    let value = |(name, data_type, _): &(&str, &str, &str)| {
        let own = given.iter().find(|(given, _)| given == name).map(|(_, value)| *value);
        match own {
            Some("NULL") => SqlValue::Null,
            Some("?") => SqlValue::Unknown,
            own => SqlValue::Text(own.unwrap_or(column_default(data_type)).to_owned().into()),
        }
    };
    SqlRow::new(columns.iter().map(value).collect())
}

fn event(schema: &SqlSchema, change: &str) -> RowEvent<'static> {
    let (table, rows) = change.split_once(' ').unwrap_or((change, ""));
    let (before, after) = match rows.split_once("->") {
        None => (None, row(table, rows)),
        Some((before, after)) => (Some(row(table, before)), row(table, after)),
    };
    RowEvent::new(schema, schema.table_id(table).expect("a table"), before, Some(after))
}

/// Reads a statement. Every reads of these tests come back from bytes as they were.
fn read_in(mode: SqlMode, sql: &[u8]) -> Result<Reads, UnknownReads> {
    let reads = StatementReader::new(schema()).read(sql, mode)?;
    let saved = reads.save().expect("within the limits");
    assert_eq!(ReadsLoader::new(schema()).read(&saved).as_ref(), Ok(&reads));
    Ok(reads)
}

fn read(sql: &str) -> Result<Reads, UnknownReads> {
    read_in(SqlMode::default(), sql.as_bytes())
}

fn is_touched(reads: &Reads, change: &str) -> bool {
    reads.touched_by(&event(&schema(), change))
}

/// Checks statements against changes: `+` before a change says that it touches the statement, `-` that it
/// does not.
#[track_caller]
fn check_in(mode: SqlMode, cases: &[(&str, &[&str])]) {
    for (sql, changes) in cases {
        let reads = read_in(mode, sql.as_bytes()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        for change in *changes {
            let (expected, change) = change.split_at(1);
            assert_eq!(is_touched(&reads, change), expected == "+", "{sql}\n{change}\n{reads:?}");
        }
    }
}

#[track_caller]
fn check(cases: &[(&str, &[&str])]) {
    check_in(SqlMode::default(), cases);
}

/// Checks that statements are refused.
#[track_caller]
fn refused(statements: &[&str]) {
    for sql in statements {
        let read = read(sql);
        assert!(read.is_err(), "{sql}: {read:?}");
    }
}

#[test]
fn a_common_table_may_have_the_name_of_a_table() {
    check(&[
        (
            "WITH post AS (SELECT id FROM post WHERE author = 5) SELECT COUNT(*) FROM post",
            &["+post author=5"],
        ),
        (
            "WITH q AS (SELECT id FROM post WHERE author = 5) SELECT COUNT(*) FROM q",
            &["+post author=5", "-post"],
        ),
        (
            "WITH RECURSIVE q AS (SELECT 1 AS n UNION SELECT n + 1 FROM q WHERE n < 3) SELECT n FROM q",
            &["-post"],
        ),
    ]);
    // The `q` inside is a view.
    refused(&[
        "WITH q AS (SELECT * FROM q) SELECT * FROM q",
        "WITH q AS (SELECT * FROM `Q`) SELECT * FROM q",
        "WITH p AS (SELECT * FROM q), q AS (SELECT 1) SELECT * FROM p",
    ]);
}

#[test]
fn the_kind_of_a_statement_decides_its_reads() {
    check(&[
        ("SHOW COLUMNS FROM post", &["-post", "-post id=1 -> id=2"]),
        ("SHOW FULL COLUMNS FROM `post`", &["-post"]),
        ("DESCRIBE post", &["-post"]),
        ("SHOW FIELDS IN post IN site LIKE 't%'", &["-post"]),
        ("desc site.post title", &["-post"]),
        ("SHOW SESSION VARIABLES LIKE 'sql_mode'", &["-post"]),
        ("SHOW VARIABLES WHERE Variable_name IN ('sql_mode', 'time_zone')", &["-post"]),
        ("SELECT @@SESSION.sql_mode, @@version", &["-post"]),
        ("SET sql_mode = REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', '')", &["-post"]),
        ("SET SESSION transaction_isolation = 'READ-COMMITTED', autocommit = 1", &["-post"]),
        ("SET time_zone = (SELECT title FROM post WHERE id = 5)", &["+post id=5"]),
        ("SELECT CONCAT(@@session.time_zone, id) || 'x' FROM post", &["+post"]),
        ("UPDATE post SET title = 'a' WHERE id = 5", &["-post id=5"]),
        ("SET NAMES utf8mb4", &["-post"]),
        ("START TRANSACTION", &["-post"]),
        ("", &["-post"]),
        ("/* nothing */ ;", &["-post"]),
        ("USE site", &["-post"]),
        ("SELECT id FROM post WHERE id = 5;", &["+post id=5", "-post"]),
        ("(SELECT id FROM post WHERE id = 5)", &["+post id=5", "-post"]),
        ("SET STATEMENT max_statement_time = 1 FOR SELECT id FROM post", &["+post"]),
        ("DELETE FROM post WHERE id = 5 RETURNING title", &["+post"]),
        ("SELECT id FROM post WHERE id = 5 FOR UPDATE", &["+post id=5"]),
    ]);
    refused(&[
        "SET @a = 1; SELECT id FROM post",
        "SELECT id FROM post; CALL p",
        "BEGIN NOT ATOMIC SELECT id FROM post; END",
        "CALL p()",
        "EXPLAIN SELECT id FROM post",
        "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT * FROM \"post\"",
        "EXECUTE p",
        "PREPARE p FROM 'SELECT id FROM post'",
        "SHOW TABLES",
        "SHOW COLUMNS FROM view",
        "USE other",
        "CREATE TEMPORARY TABLE post (id INT)",
        "SELECT NEXT VALUE FOR numbers",
        "SELECT site.numbers.nextval",
        "HANDLER post READ FIRST",
        "SELECT @@version, @a",
        "SELECT id FROM post WHERE id = @a",
        "SELECT id FROM post WHERE id = @`a b`",
        "SELECT id INTO @a FROM post",
        "SELECT id, @a := id FROM post",
        "SELECT secret()",
        "SELECT site.secret()",
        "SELECT `max`(id) FROM post",
        "SELECT id || secret (1) FROM post",
        "SELECT LAST_INSERT_ID()",
        "SELECT SLEEP(1)",
        "SELECT LOAD_FILE('/etc/passwd')",
    ]);
}

#[test]
fn a_query_of_unknown_structure_reads_each_table_as_a_whole() {
    check(&[
        ("SELECT title || 1 FROM post WHERE id = 5", &["+post", "-meta"]),
        ("SELECT a.title || 1 FROM post a, meta AS b, site.person", &["+post", "+meta", "+person"]),
        (
            "SELECT id XOR 1 FROM (post, meta) JOIN person USING (id)",
            &["+post", "+meta", "+person"],
        ),
        (
            "SELECT id XOR 1 FROM post USE INDEX (a, b) JOIN meta ON f.x IN (1, 2)",
            &["+post", "+meta"],
        ),
        (
            "SELECT 1 FROM post WHERE id XOR (SELECT id FROM (SELECT id FROM meta) q)",
            &["+post", "+meta"],
        ),
        ("SELECT !id FROM post ORDER BY title, nick, id LIMIT 1, 2", &["+post", "-person"]),
        ("SELECT !1 FROM dual", &["-post"]),
    ]);
    refused(&[
        "SELECT title || 1 FROM post, view",
        "SELECT title || 1 FROM post AS p, view AS v",
        "SELECT title || 1 FROM post JOIN meta ON post.id = meta.post, view",
        "SELECT title || 1 FROM post JOIN meta USING (id), view",
        "SELECT title || 1 FROM (post, view)",
        "SELECT title || 1 FROM (post), view",
        "SELECT title || 1 FROM post JOIN (meta), view",
        "SELECT title || 1 FROM (SELECT 1) q, view",
        "SELECT title || 1 FROM (post JOIN meta) JOIN (meta m, (view))",
        "SELECT title || 1 FROM post USE INDEX FOR ORDER BY (a), view",
        "SELECT title || 1 FROM post, other.meta",
        "SELECT title || 1 FROM site.view",
        "SELECT title || 1 FROM post.meta",
        "SELECT title || 1 FROM post STRAIGHT_JOIN view",
        "SELECT title || 1 FROM site.select STRAIGHT_JOIN view",
        "SELECT title || 1 FROM { OJ view LEFT OUTER JOIN post ON 1 }",
        "SELECT 1 FROM post /*!, view */",
        "SELECT !1 FROM information_schema.tables",
        "SELECT id FROM information_schema.tables, post",
        "SELECT id FROM view",
        "SELECT id FROM other.post",
    ]);
}

#[test]
fn a_name_is_looked_up_as_the_database_does() {
    check(&[
        // A column of an inner block hides one of an outer block, but `ON` sees its own tables only.
        (
            "SELECT COUNT(*) FROM post WHERE EXISTS (SELECT 1 FROM meta m JOIN meta n ON m.id = n.id
             AND nick = 'a' AND title = 'b', person)",
            &["+post title=a -> title=b", "-post score=1 -> score=2"],
        ),
        (
            "SELECT COUNT(*) FROM person o WHERE EXISTS
             (SELECT 1 FROM meta m JOIN meta n ON m.id = n.id AND nick = 'a', person p)",
            &["+person nick=a -> nick=b"],
        ),
        // The case of aliases counts on some servers.
        (
            "SELECT COUNT(*) FROM post A WHERE EXISTS (SELECT 1 FROM post a WHERE A.author = 5)",
            &["+post author=5 -> author=6", "+post id=2;author=7"],
        ),
        ("SELECT COUNT(*) FROM post P WHERE P.AUTHOR = 5", &["+post author=5", "-post"]),
        ("SELECT `a``b`.* FROM post `a``b`", &["+post title=a -> title=b"]),
        ("SELECT site.post.* FROM site.post", &["+post title=a -> title=b"]),
        (
            "SELECT p.title FROM post p, (SELECT 1 AS score) q",
            &["+post title=a -> title=b", "-post score=1 -> score=2"],
        ),
        // `author` is that of `q`, which is another value where `post` has no row.
        (
            "SELECT COUNT(*) FROM post RIGHT JOIN (SELECT id AS author FROM meta) q USING (author)
             WHERE author <> 5",
            &["+post author=5"],
        ),
    ]);
}

#[test]
fn names_of_tables_may_differ_in_case_alone() {
    let mut schema = SqlSchema::new("site");
    for name in ["Post", "post"] {
        schema.add(name, vec![SqlColumn::new("id", "int", None, "PRI")]);
    }
    assert_ne!(schema.table_id("Post"), schema.table_id("post"));
    let mut reader = StatementReader::new(Arc::new(schema));
    for name in ["Post", "post"] {
        let sql = format!("SELECT id FROM {name}");
        let reads = reader.read(sql.as_bytes(), SqlMode::default()).expect("a table");
        let own = reads.footprints().next().map(|own| own.table);
        assert_eq!(own, reader.schema().table_id(name));
    }
    check(&[("SELECT ID FROM POST WHERE Id = 5", &["+post id=5", "-post"])]);
}

#[test]
fn a_statement_that_is_on_no_list_is_refused() {
    refused(&[
        // The state of the server, or statistics.
        "SHOW GLOBAL STATUS",
        "SHOW SESSION STATUS LIKE 'Questions'",
        "SHOW VARIABLES",
        "SHOW GLOBAL VARIABLES LIKE 'gtid%'",
        "SHOW VARIABLES WHERE Variable_name = 'last_insert_id'",
        "SHOW INDEX FROM post",
        "SHOW KEYS IN post",
        "SHOW CREATE TABLE post",
        "SHOW WARNINGS",
        "SHOW FULL PROCESSLIST",
        "SHOW FULL TABLES FROM post",
        "SELECT @@last_insert_id",
        "SELECT @@session.warning_count, id FROM post",
        "SELECT @@GLOBAL.gtid_binlog_pos || 'x' FROM post",
        // No descriptions of a table of this database.
        "SHOW COLUMNS FROM post FROM other",
        "SHOW COLUMNS FROM post WHERE Field IN (SELECT title FROM post)",
        "DESCRIBE other.post",
        "DESC UPDATE post SET id = 1",
        "DESC EXTENDED SELECT * FROM post",
        "DESC (SELECT * FROM post)",
        // Settings whose value is read, and those that show rows that are not committed.
        "SET @a = (SELECT id FROM post)",
        "SET time_zone = stored_zone()",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET tx_isolation = 'READ-UNCOMMITTED'",
        "SET @@session.transaction_isolation = @old",
        "SET tx_isolation = DEFAULT, sql_mode = ''",
        "SET STATEMENT tx_isolation = 'READ-UNCOMMITTED' FOR SELECT * FROM post",
        "SET sql_auto_is_null = 1",
        "BEGIN NOT ATOMIC SELECT 1",
        "START SLAVE",
    ]);
}

/// The server returns rows in the order of an index, usually of the primary key, if nothing else is demanded.
#[test]
fn a_row_whose_primary_key_changes_may_become_the_first() {
    check(&[
        (
            "SELECT title FROM post WHERE author = 5 LIMIT 1",
            &["+post id=1;author=5 -> id=9;author=5", "-post id=1;author=6 -> id=9;author=6"],
        ),
        ("SELECT title FROM post", &["+post id=1 -> id=9", "-post score=1 -> score=2"]),
    ]);
}

#[test]
fn tables_whose_rows_change_without_an_event_are_refused_by_name() {
    let mut schema = SqlSchema::new("site");
    schema.add("post", vec![SqlColumn::new("id", "int", None, "PRI")]);
    schema.add_untracked("remote", "its rows are elsewhere");
    let mut reader = StatementReader::new(Arc::new(schema));
    for sql in [
        "SELECT * FROM post, remote",
        "SELECT id FROM post WHERE id IN (SELECT id FROM site.Remote)",
        "SELECT id || 'x' FROM post, remote",
        "SHOW COLUMNS FROM remote",
    ] {
        let refused = reader.read(sql.as_bytes(), SqlMode::default()).map(drop);
        let expected = UnknownReads::Untracked("remote".into(), "its rows are elsewhere".into());
        assert_eq!(refused, Err(expected.clone()), "{sql}");
        assert_eq!(expected.to_string(), "the table remote: its rows are elsewhere");
    }
}

#[test]
fn the_time_of_day_and_chance_are_noted() {
    for (sql, expected) in [
        ("SELECT IF(GET_LOCK('a', 0), UNIX_TIMESTAMP(SYSDATE(6)), NULL)", (true, true)),
        ("SELECT RELEASE_LOCK('a') AS released", (false, true)),
        ("SELECT id FROM post WHERE posted < NOW()", (true, false)),
        ("SELECT id FROM post WHERE posted < CURRENT_TIMESTAMP", (true, false)),
        ("SELECT id FROM post WHERE posted < UTC_DATE", (true, false)),
        ("SELECT p.id FROM post p, (SELECT 1 AS x) q WHERE posted < UTC_TIMESTAMP", (true, false)),
        ("SELECT @@timestamp", (true, false)),
        ("SELECT id || CURDATE() FROM post", (true, false)),
        ("SELECT id FROM post ORDER BY RAND()", (false, true)),
        ("SELECT id || UUID() FROM post", (false, true)),
        ("SELECT YEAR(posted), 'now()' FROM post", (false, false)),
    ] {
        let reads = read(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!((reads.uses_clock(), reads.is_random()), expected, "{sql}");
    }
}

#[test]
fn a_function_that_may_be_a_stored_one_is_refused() {
    refused(&[
        "SELECT nvl(id, 1) FROM post",
        "SELECT any_value(id) FROM post",
        "SELECT site.lower(title) FROM post",
        "SELECT `lower`(title) FROM post",
        // Also where the structure is not known.
        "SELECT site.lower(title) || 'x' FROM post",
        "SELECT `lower`(title) || 'x' FROM post",
        "CREATE OR REPLACE TEMPORARY TABLE post (id int)",
    ]);
}

#[test]
fn a_search_by_relevance_depends_on_all_rows() {
    let sql = "SELECT id FROM post WHERE status = 'publish' AND MATCH(title) AGAINST('x')";
    check(&[(sql, &["+post status=draft;title=x"])]);
}
