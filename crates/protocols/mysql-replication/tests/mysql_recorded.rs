//! The stream of a real MySQL: the reported changes match the server's tables.
//!
//! Debian 12 has no MySQL, so its streams are recorded: the packets, and what the server's own `SELECT` (or the
//! statement itself) says of the rows. The recordings are replayed everywhere, and are also seeds of the fuzzer.
//! `make compat` runs the scenes with the server that it has: `-- --ignored a_real_mysql`. To record again:
//! `-- --ignored record`. The column types of MariaDB are in `tests/mariadb_types.rs`.

mod common;

use bytes::Bytes;
use common::told::{compare, told};
use common::{Connection, News};
use harness::{Address, MariaDb, MariaDbOptions, PrivateDir, SqlProduct};
use mysql_replication::position::{Gtids, Start};
use mysql_replication::schema::{TableShape, columns_query};
use mysql_replication::{Limits, Step, Transaction, Transactions};
use mysql_wire::login::Account;
use mysql_wire::packet::Packet;
use mysql_wire::query::{Query, QueryLimits, Rows, query};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TABLES: &str = "CREATE TABLE types (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    y YEAR, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT,
    mu MEDIUMINT UNSIGNED, ii INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED,
    de DECIMAL(20,6), dd DECIMAL(65,30), d0 DECIMAL(5,0), dn DECIMAL(9,9), fl FLOAT, db DOUBLE,
    b1 BIT(1), b9 BIT(9), b64 BIT(64), da DATE, t0 TIME, t3 TIME(3), t6 TIME(6), dt DATETIME,
    d1 DATETIME(1), d6 DATETIME(6), ts TIMESTAMP NULL, t2 TIMESTAMP(2) NULL,
    c8 CHAR(10), cl CHAR(255) CHARACTER SET utf8mb4, vc VARCHAR(20) CHARACTER SET latin1,
    v2 VARCHAR(300) CHARACTER SET utf8mb4, u2 VARCHAR(20) CHARACTER SET ucs2,
    u3 VARCHAR(20) CHARACTER SET utf32, tx TEXT, lt LONGTEXT CHARACTER SET utf16, bn BINARY(6),
    vb VARBINARY(300), bl BLOB, mb MEDIUMBLOB, en ENUM('a','it''s','ü,x'), se SET('x','y','z'));
    CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT);
    CREATE TABLE m (a INT) ENGINE=MyISAM;
    CREATE TABLE j (id INT PRIMARY KEY, doc JSON);";

/// Columns whose canonical text is the number or the hexadecimal digits of their bytes.
const AS_NUMBER: [&str; 3] = ["b1", "b9", "b64"];
const AS_DIGITS: [&str; 4] = ["bn", "vb", "bl", "mb"];

const ROWS: &str = "
    INSERT INTO types VALUES (1, 0, -1, 255, -2, 65535, -1, 16777215, -3, 4294967295, -4,
     18446744073709551615, -1234567890.123456, 12345678901234567890.000000000000000000000000000001,
     -99999, 0.000000001, 0.5, -1e3, 1, 257, 18446744073709551615, '2026-02-28', '-838:59:59',
     '-00:00:00.001', '12:34:56.000007', '2026-02-28 09:30:00', '9999-12-31 23:59:59.9',
     '2026-02-28 09:30:00.123456', '2026-02-28 09:30:00', '2026-02-28 09:30:00.25', 'abc   ', 'größe',
     'stra\u{df}e', 'x\u{1f600}y', 'ωü', '\u{1f600}', 'text', 'lang\u{1f600}', 'ab', 'a\\0b', '', 'xyz',
     'it''s', 'x,z');
    INSERT INTO types (id) VALUES (2);
    INSERT INTO types VALUES (4294967295, 2155, 127, 0, 32767, 0, 8388607, 0, 2147483647, 0,
     9223372036854775807, 0, 0, -0.5, 99999, -0.999999999, 1e10, 1.5e-5, 0, 511, 1, '0000-00-00',
     '838:59:59', '00:00:00.999', '-12:34:56.000007', '0000-00-00 00:00:00', '1000-01-01 00:00:00.1',
     '2026-02-28 23:59:59.999999', '1970-01-01 00:00:01', '2038-01-19 03:14:07.99', '', '', '', '', '', '',
     '', '', '', '', '', '', 'ü,x', '');
    INSERT INTO types (id, mi, t3) VALUES (5, -8388608, '-00:00:01'), (6, 1, '-00:00:01.5'),
     (7, 2, '-10:00:00.25'), (8, 3, '100:00:00.5');";

/// The reference for the changes of a scene.
enum Expected {
    /// The rows of `types` that the server selects after the statements, in this order.
    Selected,
    /// These texts.
    Told(&'static [&'static str]),
}

/// Statements of one session, and the changes that they make.
struct Scene {
    name: &'static str,
    statements: String,
    expected: Expected,
}

fn scenes() -> Vec<Scene> {
    let of_types = |name, settings: &str| Scene {
        name,
        statements: format!("{settings}; DELETE FROM types; {ROWS}"),
        expected: Expected::Selected,
    };
    let of = |name, statements: &str, told| Scene {
        name,
        statements: statements.to_owned(),
        expected: Expected::Told(told),
    };
    let three = "INSERT INTO t VALUES (1,2,'x'); UPDATE t SET a=9; DELETE FROM t";
    vec![
        of_types("types", "SET GLOBAL binlog_row_metadata=MINIMAL"),
        of_types("types-full", "SET GLOBAL binlog_row_metadata=FULL"),
        of_types("types-compressed", "SET binlog_transaction_compression=ON"),
        of(
            "minimal",
            &format!("SET binlog_row_image=MINIMAL; {three}"),
            &["+t(1,2,x)", "t(1,_,_)->(_,9,_)", "-t(1,_,_)"],
        ),
        of(
            "noblob",
            &format!("SET binlog_row_image=NOBLOB; {three}"),
            &["+t(1,2,x)", "t(1,2,_)->(1,9,_)", "-t(1,9,_)"],
        ),
        of(
            "compressed",
            "SET binlog_transaction_compression=ON; BEGIN; INSERT INTO t VALUES (1,2,REPEAT('x',9)),(2,3,'y');
             UPDATE t SET a=a+1; DELETE FROM t; COMMIT",
            &["+t(1,2,xxxxxxxxx)", "+t(2,3,y)", "t(1,2,xxxxxxxxx)->(1,3,xxxxxxxxx)", "t(2,3,y)->(2,4,y)",
              "-t(1,3,xxxxxxxxx)", "-t(2,4,y)"],
        ),
        of(
            "documents",
            r#"INSERT INTO j VALUES (1, '{"b": [1, 2.5, null, true], "a": "größe"}'), (2, '[]'), (3, NULL);
             SET binlog_row_value_options=PARTIAL_JSON; UPDATE j SET doc=JSON_SET(doc, '$.a', 'x') WHERE id=1"#,
            &[r#"+j(1,{"a": "größe", "b": [1, 2.5, null, true]})"#, "+j(2,[])", "+j(3,NULL)",
              r#"j(1,{"a": "größe", "b": [1, 2.5, null, true]})->(1,<in-part>)"#],
        ),
        of(
            "transactions",
            "BEGIN; INSERT INTO t VALUES (3,0,''); SAVEPOINT s; INSERT INTO t VALUES (4,0,''); ROLLBACK TO s;
             INSERT INTO t VALUES (5,0,''); COMMIT; BEGIN; INSERT INTO t VALUES (6,0,''); ROLLBACK",
            &["+t(3,0,)", "+t(5,0,)"],
        ),
        of("other-engine", "INSERT INTO m VALUES (1); UPDATE m SET a=2", &["+m(1)", "m(1)->(2)"]),
        of(
            "tagged",
            "SET gtid_next='AUTOMATIC:pages'; INSERT INTO t VALUES (7,0,'')",
            &["+t(7,0,)"],
        ),
        of(
            "distributed",
            "XA START 'x'; INSERT INTO t VALUES (8,0,''); XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x';
             XA START 'y'; INSERT INTO t VALUES (9,0,''); XA END 'y'; XA PREPARE 'y'; XA ROLLBACK 'y'",
            &["prepared", "+t(8,0,)", "prepared", "rolled back"],
        ),
        of(
            "definitions",
            "CREATE TABLE c SELECT 1 AS a; ALTER TABLE c ADD b INT; RENAME TABLE c TO d; TRUNCATE d; DROP TABLE d;
             SET binlog_format=STATEMENT; UPDATE t SET a=1 WHERE id=3",
            &["news.c: defined", "+c(1)", "news.c: defined", "news.c: defined", "news.d: defined",
              "news.d: defined", "news.d: defined", "news.t: statement"],
        ),
    ]
}

/// The packets and texts of one scene.
struct Recording {
    scene: Scene,
    packets: Vec<Packet>,
    /// The changes according to the server.
    expected: Vec<String>,
    /// The changes according to the decoder.
    told: Vec<String>,
}

/// Runs the scenes. Returns what was recorded, and the packets of the query for the columns.
fn run() -> (Vec<Recording>, Vec<Packet>) {
    let dir = PrivateDir::temporary("mysql").expect("a directory");
    let options = MariaDbOptions::followed(&["--binlog-checksum=NONE"]);
    let server = MariaDb::start_with(dir, options).expect("the server starts");
    assert_eq!(
        server.product(),
        SqlProduct::MySql,
        "recordings of MariaDB are made by mariadb_types"
    );
    server.create_database("news", "writer", "secret").expect("a database");
    server.create_follower("localhost", "news").expect("an account");
    server.sql_in("news", TABLES).expect("tables");
    let columns = packets_of(&mut open(&server), &columns_query("news", None));
    let recordings = scenes().into_iter().map(|scene| run_scene(&server, scene, &columns));
    (recordings.collect(), columns)
}

fn open(server: &MariaDb) -> Connection {
    let account =
        Account { user: "follower".into(), password: "secret".into(), database: "news".into() };
    Connection::open(&Address::Unix(server.socket().to_owned()), account).expect("a login")
}

/// The packets of a result.
fn packets_of(connection: &mut Connection, sql: &str) -> Vec<Packet> {
    connection.send(&query(sql));
    let (mut reading, mut packets) = (Query::new(QueryLimits::default()), Vec::new());
    loop {
        let packet = connection.receive();
        packets.push(packet.clone());
        if reading.read(&packet).expect("a result").is_some() {
            return packets;
        }
    }
}

fn run_scene(server: &MariaDb, scene: Scene, columns: &[Packet]) -> Recording {
    let product = server.product();
    let mut connection = open(server);
    let position = connection.one(product.logged_gtids());
    let start = Start::MySql(position.parse().expect("a set"));
    connection.start_stream(7001, &start);
    let sql = format!("SET sql_mode='', time_zone='+00:00'; {}", scene.statements);
    server.sql_in("news", &sql).expect(scene.name);
    let end = server.sql(product.logged_gtids()).expect("a set");
    let end = Gtids::MySql(end.trim().replace("\\n", "").parse().expect("a set"));
    let mut transactions = Transactions::new(&start, Limits::default(), news(columns));
    let (mut packets, mut read) = (Vec::new(), Vec::new());
    while transactions.position().gtids != end {
        let packet = connection.receive();
        packets.push(packet.clone());
        if let Step::Transaction(transaction) = transactions.read(&packet).expect(scene.name) {
            read.push(transaction);
        }
    }
    let expected = match &scene.expected {
        Expected::Selected => selected(server),
        Expected::Told(told) => told.iter().map(|text| (*text).to_owned()).collect(),
    };
    let told = told_of(&read, &scene.expected);
    Recording { scene, packets, expected, told }
}

/// The changes as text: all of them, or only the inserted rows, as they are selected.
fn told_of(read: &[Transaction], expected: &Expected) -> Vec<String> {
    let mut told = told(read);
    if let Expected::Selected = expected {
        told.retain(|text| text.starts_with('+'));
        told.sort();
    }
    told
}

fn news(columns: &[Packet]) -> News {
    let mut reading = Query::new(QueryLimits::default());
    let rows: Rows = columns
        .iter()
        .find_map(|packet| reading.read(packet).expect("a result"))
        .expect("a complete result");
    let shapes = TableShape::read_all(&rows).expect("shapes");
    News {
        shapes: shapes.into_iter().map(|(name, shape)| (name, Arc::new(shape))).collect(),
        ..News::default()
    }
}

/// The server's `SELECT` of every row of `types`.
fn selected(server: &MariaDb) -> Vec<String> {
    let names = server
        .sql(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='news'
              AND TABLE_NAME='types' ORDER BY ORDINAL_POSITION",
        )
        .expect("names");
    let columns: Vec<String> = names
        .lines()
        .map(|name| match name {
            name if AS_NUMBER.contains(&name) => format!("IFNULL({name}+0, 'NULL')"),
            name if AS_DIGITS.contains(&name) => format!("IFNULL(LOWER(HEX({name})), 'NULL')"),
            name => format!("IFNULL(CONVERT({name} USING utf8mb4), 'NULL')"),
        })
        .collect();
    let sql = format!(
        "SET time_zone='+00:00'; SELECT CONCAT('+types(', CONCAT_WS(',', {}), ')') FROM types",
        columns.join(",")
    );
    let mut rows: Vec<String> =
        server.sql_in("news", &sql).expect("rows").lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Compares the decoded changes with the expected ones.
fn compare_all(name: &str, told: &[String], expected: &[String]) {
    assert_eq!(told.len(), expected.len(), "{name}: {told:#?}");
    told.iter().zip(expected).for_each(|(told, expected)| compare(told, expected, name));
}

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/mysql")
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/change_stream")
}

fn written(packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets {
        let length = u16::try_from(packet.payload.len()).expect("a small packet");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&packet.payload);
    }
    bytes
}

fn packets(path: &Path) -> Vec<Packet> {
    let data = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut rest, mut packets) = (&data[..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (payload, after) = after.split_at(usize::from(u16::from_le_bytes(*length)));
        packets.push(Packet::head_of(Bytes::copy_from_slice(payload), payload.len() as u64));
        rest = after;
    }
    packets
}

#[test]
fn recordings_decode_as_the_server_shows_them() {
    let columns = packets(&recordings().join("columns"));
    for scene in scenes() {
        let start = Start::MySql(Default::default());
        let mut transactions = Transactions::new(&start, Limits::default(), news(&columns));
        let recorded = packets(&corpus().join(format!("mysql-{}", scene.name)));
        let steps = recorded.iter().map(|packet| transactions.read(packet).expect(scene.name));
        let read: Vec<Transaction> = steps
            .filter_map(|step| match step {
                Step::Transaction(transaction) => Some(transaction),
                Step::Nothing | Step::Heartbeat | Step::Ended => None,
            })
            .collect();
        let path = recordings().join(format!("{}.told", scene.name));
        let expected = fs::read_to_string(path).expect("a recording");
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        if let Expected::Told(told) = &scene.expected {
            assert_eq!(expected, *told, "{}: recorded by another version of this test", scene.name);
        }
        compare_all(scene.name, &told_of(&read, &scene.expected), &expected);
    }
}

#[test]
#[ignore = "needs MySQL, which make compat has"]
fn a_real_mysql_decodes_as_it_selects() {
    for recording in run().0 {
        compare_all(recording.scene.name, &recording.told, &recording.expected);
    }
}

#[test]
#[ignore = "writes into tests/recordings and fuzz/corpus"]
fn record() {
    let (made, columns) = run();
    fs::create_dir_all(recordings()).expect("a directory");
    fs::write(recordings().join("columns"), written(&columns)).expect("a file");
    for Recording { scene, packets, expected, told } in made {
        compare_all(scene.name, &told, &expected);
        fs::write(corpus().join(format!("mysql-{}", scene.name)), written(&packets))
            .expect("a file");
        let told = expected.iter().map(|line| format!("{line}\n")).collect::<String>();
        fs::write(recordings().join(format!("{}.told", scene.name)), told).expect("a file");
    }
}
