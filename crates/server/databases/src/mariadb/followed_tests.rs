//! Changed rows in the stream of a real MariaDB, and the same rows in look-ups. The server is the reference for how
//! values are written.

use super::*;
use crate::mariadb::{PartnerQuery, Session, Stream, connect};
use crate::stream_types::{Resume, RowDetail, StreamRead, TransactionBody};
use config::Database;
use footprint::Lookup;
use harness::{MariaDb, MariaDbOptions, PrivateDir, SqlProduct, numbers};
use std::fmt::Write as _;
use std::time::Duration;

/// A server, and the stream of its database `paper`.
struct Stage {
    server: MariaDb,
    config: Arc<Database>,
    stream: Stream,
    schema: SqlSchema,
    /// The number of times that the tables were read.
    definitions: usize,
}

fn server() -> MariaDb {
    let dir = PrivateDir::temporary("rows").expect("a directory");
    let server = MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("a server");
    server.create_database("paper", "writer", "secret").expect("a database");
    server.create_follower("localhost", "paper").expect("an account");
    server
}

/// The configuration for a server, with a rule that no table has.
fn config(server: &MariaDb) -> Arc<Database> {
    let text = format!(
        "site.origin = \"http://127.0.0.1:1\"\n[[database]]\n\
         url = \"mysql://follower:secret@localhost/paper?socket={}\"\n\
         [[change]]\ntable = \"news\"\ntags = [\"news\"]",
        server.socket().display()
    );
    let file = toml::from_str(&text).expect("a configuration");
    config::resolve(&file).expect("it can be used").databases[0].clone()
}

impl Stage {
    async fn start(tables: &str) -> Stage {
        let server = server();
        server.sql_in("paper", &format!("CREATE TABLE news (id INT); {tables}")).expect("tables");
        let config = config(&server);
        let connected = connect(&config, RowDetail::Values).await.expect("a connection");
        let mut stream = connected.stream;
        let schema = stream.take_definitions().expect("definitions");
        assert!(stream.take_definitions().is_none(), "once");
        stream.start(&connected.committed, Resume::Never).await.expect("a stream");
        Stage { server, config, stream, schema, definitions: 1 }
    }

    /// Runs statements, and returns the changes of each transaction, with the tables as they were then.
    async fn changes(&mut self, sql: &str) -> Vec<(Vec<TableChange>, SqlSchema)> {
        self.server.sql_in("paper", sql).expect("statements");
        let mut session =
            Session::open(&self.config.server, Duration::from_secs(60)).await.expect("a session");
        let committed = session.committed().await.expect("a position");
        let mut all = Vec::new();
        while !self.stream.position().is_some_and(|position| position.has_all(&committed)) {
            let read = self.stream.next().await;
            if let Some(schema) = self.stream.take_definitions() {
                self.schema = schema;
                self.definitions += 1;
            }
            if let StreamRead::Transaction(transaction) = read.expect("a packet")
                && let TransactionBody::Rows(changed) = transaction.made
            {
                all.push((changed.rows, self.schema.clone()));
            }
        }
        all
    }

    /// The same as text, without transactions that change nothing.
    async fn shown(&mut self, sql: &str) -> Vec<String> {
        let all = self.changes(sql).await;
        all.iter()
            .flat_map(|(rows, schema)| rows.iter().map(|change| shown(change, schema)))
            .collect()
    }
}

fn shown(change: &TableChange, schema: &SqlSchema) -> String {
    let event = match change {
        TableChange::Row(event) => event,
        TableChange::Table(table) => return format!("{}: any row", schema.table(*table).name),
        TableChange::Everything => return "everything".to_owned(),
    };
    let table = schema.table(event.table);
    let value = |value: &SqlValue<'_>| match value {
        SqlValue::Null => "NULL".to_owned(),
        SqlValue::Text(text) => text.to_string(),
        SqlValue::Unknown => "?".to_owned(),
    };
    let row = |row: &Option<SqlRow<'_>>| {
        let columns = 0..table.columns.len() as u16;
        let values = |row: &SqlRow<'_>| columns.map(|at| value(row.get(at))).collect::<Vec<_>>();
        row.as_ref().map_or("-".to_owned(), |row| values(row).join(","))
    };
    let mut text = format!("{}: {} > {}", table.name, row(&event.before), row(&event.after));
    if event.changed != Columns::ALL {
        let changed =
            table.columns.iter().enumerate().filter(|(at, _)| event.changed.contains(*at));
        let names: Vec<&str> = changed.map(|(_, column)| column.name.as_str()).collect();
        let _ = write!(text, " ({})", names.join(","));
    }
    text
}

const TYPES: &str = "CREATE TABLE types (
    id INT UNSIGNED NOT NULL PRIMARY KEY, ti TINYINT, tb TINYINT(1), si SMALLINT, mi MEDIUMINT,
    bi BIGINT, bu BIGINT UNSIGNED, z INT(5) ZEROFILL, de DECIMAL(20,6), dz DECIMAL(8,2) ZEROFILL,
    db DOUBLE, dm DOUBLE(10,2), da DATE, dt DATETIME, d6 DATETIME(6), c CHAR(10), vc VARCHAR(50),
    vl VARCHAR(50) CHARACTER SET latin1, vu VARCHAR(50) CHARACTER SET ucs2, vi VARCHAR(50) COLLATE utf8mb4_bin,
    tx TEXT, lt LONGTEXT, js JSON, vb VARBINARY(50), bl BLOB, fl FLOAT, bn BINARY(4), bt BIT(9), tm TIME(2),
    ts TIMESTAMP NULL, ye YEAR, en ENUM('a','it''s'), se SET('x','y'), uu UUID,
    cd VARCHAR(50) COLLATE utf8mb4_danish_ci, ge INT AS (ti + 1), pe INT AS (ti + 1) STORED)";

const VALUES: &str = "SET sql_mode = '', time_zone = '+00:00'; INSERT INTO types
    (id, ti, tb, si, mi, bi, bu, z, de, dz, db, dm, da, dt, d6, c, vc, vl, vu, vi, tx, lt, js, vb, bl, fl, bn, bt,
     tm, ts, ye, en, se, uu, cd) VALUES
    (1, -1, 1, -2, -3, -9223372036854775808, 18446744073709551615, 42, -1234567890.123456, 12.5, 0.1, 1.5,
     '2026-02-28', '2026-02-28 09:30:00', '2026-02-28 09:30:00.123456', 'abc  ', 'größe  ', 'stra\u{df}e',
     'ωü\u{1f600}', 'ÄÖ', 'it''s \\\\ \"x\"', '\u{1f600}', '{\"a\": [1, 2]}', 'plain', 'text', 0.5, 'ab', 257,
     '-12:34:56.5', '2026-02-28 09:30:00', 2026, 'it''s', 'x,y', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'aa'),
    (2, 127, 0, 32767, 8388607, 9223372036854775807, 0, 123456, 0, 0, 123456.789, -0.25, '0000-00-00',
     '0000-00-00 00:00:00', '1000-01-01 00:00:00', '', '', '', '', '', '', '', '[]', '', '', 0, '', 0, '00:00:00',
     '1970-01-01 00:00:01', 0, '', '', '00000000-0000-0000-0000-000000000000', ''),
    (3, 0, NULL, 0, 0, 0, 0, 0, 99999999999999.999999, 999999.99, -1e14, 99999999.99, '9999-12-31',
     '9999-12-31 23:59:59', '2020-01-01 00:00:00.000001', 'a\\0b', 'a\\0b\\nc', 'x', 'y', ' z', ' x ', 'y', '1',
     X'61ff', X'00', 1.25, X'00ff00ff', 1, '1:00', NULL, 2155, 'a', 'y', NULL, NULL);
    INSERT INTO types (id, db) VALUES (4, 1e300)";

/// The columns whose values are unknown in the stream, by row: no text, an exponent, or computed.
fn is_unknown(id: usize, column: &str) -> bool {
    matches!(column, "bn" | "bt" | "ge" | "pe")
        || (id, column) == (3, "vb")
        || (id, column) == (4, "db")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_written_alike_in_the_stream_in_select_and_in_a_look_up() {
    let mut stage = Stage::start("").await;
    let product = stage.server.product();
    // MySQL has no UUID.
    let uuid = match product {
        SqlProduct::MariaDb => "uu UUID",
        SqlProduct::MySql => "uu CHAR(36)",
    };
    stage.server.sql_in("paper", &TYPES.replace("uu UUID", uuid)).expect("a table");
    let transactions = stage.changes(VALUES).await;
    let rows: Vec<_> = transactions.iter().flat_map(|(rows, _)| rows).collect();
    assert_eq!(rows.len(), 4);
    let mut session =
        Session::open(&stage.config.server, Duration::from_secs(60)).await.expect("a session");
    let id = stage.schema.table_id("types").expect("a table");
    let columns = &stage.schema.table(id).columns;
    for (number, change) in rows.into_iter().enumerate().map(|(at, row)| (at + 1, row)) {
        let TableChange::Row(RowEvent { after: Some(after), .. }) = change else { panic!("a row") };
        let number_text = number.to_string();
        let found = look_up(&mut session, &stage.schema, id, 0, &number_text).await.expect("known");
        let [found] = found.as_slice() else { panic!("{found:?}") };
        for (at, column) in (0_u16..).zip(columns) {
            let (own, other) = (after.get(at), found.get(at));
            let name = format!("{} of row {number}", column.name);
            if is_unknown(number, &column.name) {
                let is_null = *own == SqlValue::Null;
                assert!(*own == SqlValue::Unknown || is_null, "{name}: {own:?}");
                continue;
            }
            let sql = format!(
                "SET time_zone = '+00:00', sql_mode = '';
                 SELECT HEX(CONVERT({} USING utf8mb4)) FROM types WHERE id = {number}",
                column.name
            );
            let selected = stage.server.sql_in("paper", &sql).expect("a value");
            let text = match own {
                SqlValue::Text(text) => {
                    text.bytes().fold(String::new(), |all, byte| all + &format!("{byte:02X}"))
                }
                SqlValue::Null => "NULL".to_owned(),
                SqlValue::Unknown => "(unknown)".to_owned(),
            };
            assert_eq!(text, selected.trim(), "{name}");
            if column.kind == SqlColumnKind::Opaque {
                assert_eq!(*other, SqlValue::Unknown, "{name}");
                continue;
            }
            assert_eq!(own, other, "{name}");
            // Of these kinds are columns by which tables are joined.
            if let (SqlValue::Text(value), false) =
                (own, matches!(column.kind, SqlColumnKind::Number | SqlColumnKind::Moment))
            {
                let rows = look_up(&mut session, &stage.schema, id, at, value).await.expect("few");
                assert!(rows.iter().any(|row| row.get(0) == after.get(0)), "{name}: {value:?}");
            }
        }
    }
}

async fn look_up(
    session: &mut Session,
    schema: &SqlSchema,
    table: TableId,
    column: u16,
    value: &str,
) -> Option<Vec<SqlRow<'static>>> {
    let query = PartnerQuery::new(schema, &Lookup { table, column, value: value.into() });
    session.find(&query).await.expect("the connection stays open")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_finds_its_value_whatever_the_characters_and_the_mode() {
    let tables = format!(
        "CREATE TABLE `we``ird\"` (id INT PRIMARY KEY, `na``me\\` VARCHAR(99) COLLATE utf8mb4_bin,
                  latin VARCHAR(99) CHARACTER SET latin1, b VARBINARY(99), KEY (latin));
                  CREATE TABLE many (a INT); INSERT INTO many SELECT 1 FROM {};
                  INSERT INTO many SELECT 2 FROM {}",
        numbers(1, 64),
        numbers(1, 65)
    );
    let stage = Stage::start(&tables).await;
    let values = [
        "it's",
        "say \"x\"",
        "back\\slash",
        "\\'",
        "a\0b",
        "\u{1f600}",
        "' OR 1=1 -- ",
        "`",
        "%",
        "",
        "\u{1a}\n\r",
        "日本",
        "1",
        "01",
        "/*! x */",
    ];
    for (at, value) in values.iter().enumerate() {
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let text = if hex.is_empty() { "''".to_owned() } else { format!("_utf8mb4 0x{hex}") };
        let sql = format!("INSERT INTO `we``ird\"` VALUES ({at}, {text}, NULL, {text})");
        stage.server.sql_in("paper", &sql).expect("a row");
    }
    let table = stage.schema.table_id("we`ird\"").expect("a table");
    let many = stage.schema.table_id("many").expect("a table");
    for mode in ["", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT", "TRADITIONAL,ANSI"] {
        stage.server.sql(&format!("SET GLOBAL sql_mode = '{mode}'")).expect("a mode");
        let mut session =
            Session::open(&stage.config.server, Duration::from_secs(60)).await.expect("a session");
        for (at, value) in values.iter().enumerate() {
            for column in [1, 3] {
                let found = look_up(&mut session, &stage.schema, table, column, value).await;
                let found = found.expect("known");
                let ids: Vec<_> = found.iter().map(|row| row.get(0).clone()).collect();
                let id = SqlValue::Text(at.to_string().into());
                assert_eq!(ids, [id], "{mode}: {value:?} in column {column}");
                let own = SqlValue::Text((*value).into());
                assert_eq!(found[0].get(column), &own, "{mode}: {value:?}");
            }
            // The server may refuse to compare these characters with Latin-1.
            if let Some(found) = look_up(&mut session, &stage.schema, table, 2, value).await {
                assert!(found.is_empty(), "{mode}: {value:?}");
            }
        }
        let count = look_up(&mut session, &stage.schema, many, 0, "1").await.expect("few").len();
        assert_eq!(count, 64);
        assert!(look_up(&mut session, &stage.schema, many, 0, "2").await.is_none(), "too many");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_change_apply_to_the_rows_after_them() {
    let mut stage = Stage::start(
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9)); CREATE VIEW v AS SELECT a FROM t;
         CREATE TABLE other (x INT)",
    )
    .await;
    assert!(stage.schema.table_id("v").is_none() && stage.schema.table_id("T").is_some());
    let altered = "INSERT INTO t VALUES (1, 'x'); ALTER TABLE t ADD c INT FIRST; INSERT INTO t VALUES (7, 2, 'y');
                   UPDATE t SET c = 8 WHERE a = 2";
    assert_eq!(
        stage.shown(altered).await,
        ["t: - > 1,x", "t: any row", "t: - > 7,2,y", "t: 7,2,y > 8,2,y (c)"]
    );
    let created = "CREATE TABLE n (id INT); INSERT INTO n VALUES (3)";
    assert_eq!(stage.shown(created).await, ["n: - > 3"]);
    let renamed = "INSERT INTO n VALUES (4); RENAME TABLE n TO m; INSERT INTO m VALUES (5)";
    assert_eq!(stage.shown(renamed).await, ["n: - > 4", "n: any row", "m: - > 5"]);
    // No statement reads a table that is gone when the tables are read.
    let gone = "CREATE TABLE g (id INT); INSERT INTO g VALUES (6); DROP TABLE g; TRUNCATE TABLE t; DROP TABLE m";
    assert_eq!(stage.shown(gone).await, ["t: any row"]);
    assert!(stage.definitions >= 5, "{}", stage.definitions);
    // The event is of a definition before the one that is read first.
    assert_eq!(
        stage.shown("SET sql_mode=''; ALTER TABLE other DROP x, ADD y INT").await,
        ["other: any row"]
    );
    // `SHOW COLUMNS` shows whether a column has an index.
    let indexed = "CREATE INDEX i ON t (c); DROP INDEX i ON t";
    assert_eq!(stage.shown(indexed).await, ["t: any row", "t: any row"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_the_stream_does_not_have_are_changes_of_whole_tables() {
    let mut stage = Stage::start(
        "CREATE TABLE parent (id INT PRIMARY KEY, n INT);
         CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id)
             ON DELETE CASCADE ON UPDATE SET NULL);
         CREATE TABLE grandchild (child INT, FOREIGN KEY (child) REFERENCES child (id) ON DELETE CASCADE);
         CREATE TABLE plain (a INT PRIMARY KEY, b VARCHAR(9), c TEXT);
         INSERT INTO parent VALUES (1, 0), (2, 0); INSERT INTO child VALUES (10, 1);
         INSERT INTO plain VALUES (1, 'x', 'long')",
    )
    .await;
    let (any_child, any_grandchild) = ("child: any row", "grandchild: any row");
    let mut deleted =
        stage.shown("UPDATE parent SET n = 1 WHERE id = 1; DELETE FROM parent WHERE id = 1").await;
    if stage.server.product() == SqlProduct::MySql {
        // MySQL, from 9.6 on, logs the rows that foreign keys change. They are derived all the same.
        deleted.retain(|row| !matches!(row.as_str(), "grandchild: 10 > -" | "child: 10,1 > -"));
    }
    assert_eq!(
        deleted,
        ["parent: 1,0 > 1,1 (n)", "child: ?,1 > -", "grandchild: ? > -", "parent: 1,1 > -",]
    );
    // The foreign keys' rows follow the rows that are too many.
    let sql = format!("INSERT INTO parent SELECT seq, 0 FROM {}", numbers(100, 10_100));
    let many = stage.shown(&sql).await;
    assert_eq!(many, [any_child, any_grandchild, "parent: any row"]);
    let sql = format!("INSERT INTO plain (a) SELECT seq FROM {}", numbers(100, 10_099));
    let few = stage.shown(&sql).await;
    assert_eq!(few.len(), 10_000);
    if stage.server.product() == SqlProduct::MariaDb {
        let versioned = "CREATE TABLE versioned (a INT PRIMARY KEY) WITH SYSTEM VERSIONING;
                         INSERT INTO versioned VALUES (1)";
        stage.shown(versioned).await;
        assert_eq!(stage.shown("DELETE FROM versioned").await, ["versioned: any row"]);
    }
    assert_eq!(stage.shown("CREATE DATABASE elsewhere; CREATE TABLE elsewhere.t (a INT); INSERT INTO elsewhere.t VALUES (1)").await.len(), 0);
    let minimal = "SET binlog_row_image = MINIMAL; UPDATE plain SET b = 'y' WHERE a = 1;
                   SET binlog_row_image = NOBLOB; UPDATE plain SET b = 'z' WHERE a = 1; DELETE FROM plain WHERE a = 1";
    assert_eq!(
        stage.shown(minimal).await,
        ["plain: 1,?,? > 1,y,? (b)", "plain: 1,y,? > 1,z,? (b)", "plain: 1,z,? > -"]
    );
    let statement = "SET binlog_format = STATEMENT; INSERT INTO plain VALUES (5, 'a', 'b')";
    assert_eq!(stage.shown(statement).await, ["everything"]);
}

/// The row of `ck` goes with that of another database's table, and the log has the latter only.
#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_rows_change_without_an_event_are_refused_with_a_warning() {
    let server = server();
    let tables = "CREATE DATABASE other; CREATE TABLE other.op (id INT PRIMARY KEY);
        CREATE TABLE news (id INT PRIMARY KEY);
        CREATE TABLE ck (id INT PRIMARY KEY, op INT, FOREIGN KEY (op) REFERENCES other.op (id) ON DELETE CASCADE);
        CREATE TABLE below (ck INT, FOREIGN KEY (ck) REFERENCES ck (id) ON DELETE CASCADE);
        CREATE TABLE fixed (op INT, FOREIGN KEY (op) REFERENCES other.op (id));
        CREATE TABLE fast (id INT) ENGINE = MEMORY; CREATE VIEW v AS SELECT id FROM news;
        INSERT INTO other.op VALUES (1); INSERT INTO ck VALUES (1, 1)";
    server.sql_in("paper", tables).expect("tables");
    let config = config(&server);
    let connected = connect(&config, RowDetail::Values).await.expect("a connection");
    let warned: Vec<&str> = connected.warnings.iter().map(|(_, why)| why.as_str()).collect();
    let names: Vec<&str> =
        warned.iter().filter_map(|why| why.strip_prefix("table ")?.split(':').next()).collect();
    assert_eq!(names, ["below", "ck", "fast"], "{warned:?}");
    assert!(warned[1].contains("other.op") && warned[2].contains("MEMORY"), "{warned:?}");
    let mut stream = connected.stream;
    let schema = stream.take_definitions().expect("definitions");
    let refused: Vec<&str> = schema.untracked().map(|(name, _)| name).collect();
    assert_eq!(refused, ["below", "ck", "fast", "v"]);
    assert!(schema.table_id("fixed").is_some() && schema.table_id("ck").is_none());
    // Rules only: the tables that they name. None is, here.
    let connected = connect(&config, RowDetail::Tags).await.expect("a connection");
    assert!(connected.warnings.is_empty(), "{:?}", connected.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_sessions_read_uncommitted_rows_is_refused() {
    let server = server();
    let config = config(&server);
    server.sql("SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED").expect("a level");
    connect(&config, RowDetail::Tags).await.map(drop).expect("rules read no rows");
    let refused = connect(&config, RowDetail::Values).await.map(drop).expect_err("refused");
    assert!(refused.text.contains("READ UNCOMMITTED"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn double_quotes_of_unknown_meaning_are_refused() {
    let server = server();
    server.sql("SET GLOBAL sql_mode = 'ANSI_QUOTES'").expect("a mode");
    let config = config(&server);
    connect(&config, RowDetail::Tags).await.map(drop).expect("rules need no statements");
    let connected = connect(&config, RowDetail::Values).await.map(drop);
    match server.product() {
        SqlProduct::MariaDb => connected.expect("MariaDB tells the mode"),
        SqlProduct::MySql => {
            let refused = connected.expect_err("MySQL does not");
            assert!(refused.text.contains("ANSI_QUOTES"), "{}", refused.text);
        }
    }
}
