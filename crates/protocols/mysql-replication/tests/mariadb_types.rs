//! Every column type in the stream of a real MariaDB, with the three kinds of metadata, compressed and
//! uncompressed. The server is the reference: each value's text must equal the result of its own `SELECT`.
//!
//! The recordings for the fuzzer are also made here, of the same values.

mod common;

use common::told::{compare, told};
use common::{Follower, server};
use harness::MariaDb;
use mysql_replication::Limits;

const TYPES: &str = "CREATE TABLE types (
    id INT UNSIGNED NOT NULL PRIMARY KEY,
    y YEAR, ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT,
    mu MEDIUMINT UNSIGNED, ii INT, iu INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED,
    de DECIMAL(20,6), dd DECIMAL(65,30), d0 DECIMAL(5,0), dn DECIMAL(9,9), fl FLOAT, db DOUBLE,
    b1 BIT(1), b9 BIT(9), b64 BIT(64), da DATE, t0 TIME, t3 TIME(3), t6 TIME(6), dt DATETIME,
    d1 DATETIME(1), d6 DATETIME(6), ts TIMESTAMP NULL, t2 TIMESTAMP(2) NULL,
    c8 CHAR(10), cl CHAR(255) CHARACTER SET utf8mb4, vc VARCHAR(20) CHARACTER SET latin1,
    v2 VARCHAR(300) CHARACTER SET utf8mb4, u2 VARCHAR(20) CHARACTER SET ucs2,
    u3 VARCHAR(20) CHARACTER SET utf32, k8 VARCHAR(20) CHARACTER SET koi8r,
    tx TEXT, lt LONGTEXT CHARACTER SET utf16, bn BINARY(6), vb VARBINARY(300), bl BLOB, mb MEDIUMBLOB,
    en ENUM('a','it''s','ü,x'), se SET('x','y','z'), js JSON, uu UUID, i6 INET6,
    co VARCHAR(200) COMPRESSED, ct TEXT COMPRESSED, ge POINT)";

/// For some columns, the SQL expression that formats them as the canonical text.
const AS_TEXT: [(&str, &str); 4] = [
    ("bn", "LOWER(HEX(bn))"),
    ("vb", "LOWER(HEX(vb))"),
    ("bl", "LOWER(HEX(bl))"),
    ("mb", "LOWER(HEX(mb))"),
];

const VALUES: [&str; 4] = [
    "INSERT INTO types VALUES (1, 0, -1, 255, -2, 65535, -1, 16777215, -3, 4294967295, -4,
     18446744073709551615, -1234567890.123456, 12345678901234567890.000000000000000000000000000001,
     -99999, 0.000000001, 0.5, -1e3, 1, 257, 18446744073709551615, '2026-02-28', '-838:59:59',
     '-00:00:00.001', '12:34:56.000007', '2026-02-28 09:30:00', '9999-12-31 23:59:59.9',
     '2026-02-28 09:30:00.123456', '2026-02-28 09:30:00', '2026-02-28 09:30:00.25', 'abc   ', 'größe',
     'stra\u{df}e', 'x\u{1f600}y', 'ωü', '\u{1f600}', 'abc', 'text', 'lang\u{1f600}', 'ab', 'a\\0b', '', 'xyz',
     'it''s', 'x,z', '{\"a\": [1, 2]}', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', '2001:db8::1',
     REPEAT('komprimiert ', 10), REPEAT('x', 2000), POINT(1,2))",
    "INSERT INTO types (id) VALUES (2)",
    "INSERT INTO types VALUES (4294967295, 2155, 127, 0, 32767, 0, 8388607, 0, 2147483647, 0,
     9223372036854775807, 0, 0, -0.5, 99999, -0.999999999, 1e10, 1.5e-5, 0, 511, 1, '0000-00-00',
     '838:59:59', '00:00:00.999', '-12:34:56.000007', '0000-00-00 00:00:00', '1000-01-01 00:00:00.1',
     '2026-02-28 23:59:59.999999', '1970-01-01 00:00:01', '2038-01-19 03:14:07.99', '', '', '', '', '', '',
     '', '', '', '', '', '', '', 'ü,x', '', '[]', '00000000-0000-0000-0000-000000000000', '::', '', '',
     POINT(0,0))",
    "INSERT INTO types (id, uu, i6, mi, t3) VALUES
     (5, '018e4a5f-7c5e-7a3b-8c4d-1234567890ab', '::ffff:1.2.3.4', -8388608, '-00:00:01'),
     (6, 'f47ac10b-58cc-4372-a567-0e02b2c3d479', '::1', 1, '-00:00:01.5'),
     (7, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'fe80::', 2, '-10:00:00.25'),
     (8, '6ba7b810-9dad-11d1-80b4-00c04fd43000', '1::', 3, '100:00:00.5')",
];

/// The server's SELECT of every row, by the columns of the table.
fn selected(server: &MariaDb) -> Vec<String> {
    let names = server
        .sql(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='news'
              AND TABLE_NAME='types' ORDER BY ORDINAL_POSITION",
        )
        .expect("names");
    let columns: Vec<String> = names
        .lines()
        .map(|name| {
            let listed = AS_TEXT.iter().find(|(column, _)| *column == name);
            let text = match (name, listed) {
                (_, Some((_, text))) => (*text).to_owned(),
                ("b1" | "b9" | "b64", _) => format!("{name}+0"),
                ("ge", _) => "LOWER(HEX(ge))".to_owned(),
                _ => format!("CONVERT({name} USING utf8mb4)"),
            };
            format!("IFNULL({text}, 'NULL')")
        })
        .collect();
    let sql = format!(
        "SET time_zone='+00:00'; SELECT CONCAT('+types(', CONCAT_WS(',', {}), ')') FROM types ORDER BY id",
        columns.join(",")
    );
    server.sql_in("news", &sql).expect("rows").lines().map(str::to_owned).collect()
}

#[test]
fn every_type_has_the_text_of_select() {
    let server = server(&[]);
    server.sql_in("news", TYPES).expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    for metadata in ["NO_LOG", "MINIMAL", "FULL"] {
        for compressed in ["OFF", "ON"] {
            let settings = format!(
                "SET GLOBAL binlog_row_metadata={metadata}; SET GLOBAL log_bin_compress={compressed};
                 SET GLOBAL log_bin_compress_min_len=10"
            );
            server.sql(&settings).expect("settings");
            let mut sql = "SET sql_mode=''; SET time_zone='+00:00'; DELETE FROM types;".to_owned();
            VALUES.iter().for_each(|insert| sql = format!("{sql} {insert};"));
            server.sql_in("news", &sql).expect("rows");
            let told = told(&follower.catch_up(&server));
            let mut inserted: Vec<&String> =
                told.iter().filter(|text| text.starts_with('+')).collect();
            let id = |text: &str| text["+types(".len()..].split(',').next().map(str::parse::<u64>);
            inserted.sort_by_key(|text| id(text).expect("an id").expect("a number"));
            let expected = selected(&server);
            assert_eq!(inserted.len(), expected.len(), "{metadata} {compressed}: {told:?}");
            for (told, expected) in inserted.iter().zip(&expected) {
                compare(told, expected, &format!("{metadata} {compressed}"));
            }
        }
    }
}

/// Numbers are written as declared, not as sent: with leading zeros, or a fixed number of digits after the
/// decimal point.
#[test]
fn numbers_have_the_text_of_their_type() {
    let server = server(&[]);
    let table =
        "CREATE TABLE numbers (id INT PRIMARY KEY, z INT(5) ZEROFILL, b BIGINT UNSIGNED ZEROFILL,
         d DECIMAL(8,2) ZEROFILL, m DOUBLE(10,2), f FLOAT(7,2), x FLOAT, y FLOAT, e DOUBLE)";
    server.sql_in("news", table).expect("a table");
    let mut follower = Follower::now(&server, 7002, Limits::default());
    let row = "INSERT INTO numbers VALUES (1, 42, 7, 12.5, 1.5, 1.5, 0.25, 1234567, 1e20)";
    server.sql_in("news", row).expect("a row");
    let told = told(&follower.catch_up(&server));
    let told = told.iter().find(|text| text.starts_with('+')).expect("a row");
    let select = "SELECT CONCAT_WS(',', id, z, b, d, m, f, x) FROM numbers";
    let shown = server.sql_in("news", select).expect("rows");
    assert_eq!(*told, format!("+numbers({},<inexact>,<inexact>)", shown.trim()));
    assert!(shown.contains("00042") && shown.contains("000012.50") && shown.contains("1.50"));
}

/// Makes the recordings that the fuzzer and `tests/damaged.rs` start from: `cargo test -p mysql-replication
/// --test mariadb_types -- --ignored record`.
#[test]
#[ignore = "writes into fuzz/corpus"]
fn record() {
    let server = server(&["--binlog-checksum=NONE"]);
    let sql = "CREATE TABLE tt (id INT UNSIGNED PRIMARY KEY, a ENUM('x','y')); CREATE TABLE m (a INT) ENGINE=MyISAM";
    server.sql_in("news", &format!("{TYPES}; {sql}")).expect("tables");
    let types = VALUES.join("; ");
    let small = "INSERT INTO tt VALUES (1,'x'),(2,'y'); UPDATE tt SET a='x'; DELETE FROM tt";
    let scenes = [
        ("types", "SET GLOBAL binlog_row_metadata=NO_LOG", types.clone()),
        ("types-full", "SET GLOBAL binlog_row_metadata=FULL", format!("DELETE FROM types; {types}")),
        ("compressed", "SET GLOBAL log_bin_compress=ON; SET GLOBAL log_bin_compress_min_len=10",
            format!("DELETE FROM types; {types}; ALTER TABLE m ADD b VARCHAR(200) DEFAULT 'a b c d e f g'")),
        ("minimal", "SET GLOBAL log_bin_compress=OFF; SET GLOBAL binlog_row_image=MINIMAL", small.into()),
        ("transactions", "SET GLOBAL binlog_row_image=FULL; SET GLOBAL binlog_row_metadata=MINIMAL",
            format!("BEGIN; {small}; COMMIT; BEGIN; INSERT INTO tt VALUES (3,'x'); SAVEPOINT a;
                INSERT INTO m VALUES (1,''); ROLLBACK TO a; COMMIT; DROP TABLE m; CREATE TABLE mm SELECT 1 AS a;
                RENAME TABLE mm TO m; SET binlog_format=STATEMENT; INSERT INTO m VALUES (2)")),
        ("distributed", "SELECT 1", "XA START 'x'; INSERT INTO tt VALUES (7,'y'); XA END 'x'; XA PREPARE 'x';
            XA COMMIT 'x'".into()),
    ];
    let corpus =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/change_stream");
    std::fs::create_dir_all(&corpus).expect("a directory");
    for (name, settings, sql) in scenes {
        server.sql(settings).expect("settings");
        let mut follower = Follower::now(&server, 7001, Limits::default());
        server.sql_in("news", &format!("SET sql_mode=''; {sql}")).expect("statements");
        follower.catch_up(&server);
        let mut recording = Vec::new();
        for packet in &follower.recorded {
            recording.extend_from_slice(&(packet.payload.len() as u16).to_le_bytes());
            recording.extend_from_slice(&packet.payload);
        }
        std::fs::write(corpus.join(name), recording).expect("a recording");
    }
}
