//! The stream of a real MariaDB: the reported changes match the server's tables.
//!
//! Each test has its own server. The column types are in `tests/mariadb_types.rs`.

mod common;

use common::told::told;
use common::{Connection, Follower, account, server};
use harness::{Address, MariaDb, PrivateDir};
use mysql_replication::position::{FilePosition, Start};
use mysql_replication::{
    Change, ChangeScope, FallbackReason, Interest, Limits, StreamRefused, Transaction,
};
use mysql_wire::Refusal;
use mysql_wire::login::{Account, LoginRefused};
use mysql_wire::response::ServerErrorKind;

#[test]
fn images_of_rows() {
    let server = server(&[]);
    server
        .sql_in(
            "news",
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT); CREATE TABLE k (a INT)",
        )
        .expect("tables");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    let mut image = |image: &str| {
        let sql = format!("SET GLOBAL binlog_row_image={image}");
        server.sql(&sql).expect("a setting");
        let sql = "INSERT INTO t VALUES (1,2,'x'),(2,3,'y'); UPDATE t SET a=9 WHERE id=1;
                   UPDATE t SET b='z' WHERE id=2; DELETE FROM t; INSERT INTO k () VALUES ()";
        server.sql_in("news", sql).expect("rows");
        told(&follower.catch_up(&server))
    };
    assert_eq!(
        image("FULL"),
        [
            "+t(1,2,x)",
            "+t(2,3,y)",
            "t(1,2,x)->(1,9,x)",
            "t(2,3,y)->(2,3,z)",
            "-t(1,9,x)",
            "-t(2,3,z)",
            "+k(NULL)"
        ]
    );
    assert_eq!(
        image("NOBLOB"),
        [
            "+t(1,2,x)",
            "+t(2,3,y)",
            "t(1,2,_)->(1,9,_)",
            "t(2,3,_)->(2,3,z)",
            "-t(1,9,_)",
            "-t(2,3,_)",
            "+k(NULL)"
        ]
    );
    assert_eq!(
        image("MINIMAL"),
        [
            "+t(1,2,x)",
            "+t(2,3,y)",
            "t(1,_,_)->(_,9,_)",
            "t(2,_,_)->(_,_,z)",
            "-t(1,_,_)",
            "-t(2,_,_)",
            "+k(NULL)"
        ]
    );
}

#[test]
fn written_columns_differ_from_unwritten_ones() {
    let server = server(&["--binlog-row-image=MINIMAL"]);
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT); INSERT INTO t VALUES (1,2,3)";
    server.sql_in("news", sql).expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    server.sql_in("news", "UPDATE t SET b=4").expect("a row");
    let read = follower.catch_up(&server);
    let [Change { what: ChangeScope::Rows(rows), .. }] = &read[0].changes[..] else {
        panic!("{read:?}")
    };
    let change = rows.changes().next().expect("a row").expect("it can be read");
    let place = |name| rows.table.column(name).expect("a column");
    assert!(!change.changed(place("a")));
    assert!(change.changed(place("B")));
    assert_eq!(rows.table.primary_key.as_deref(), Some(&[0][..]));
}

#[test]
fn transactions_savepoints_and_other_engines() {
    let server = server(&[]);
    let sql =
        "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB; CREATE TABLE m (id INT) ENGINE=MyISAM";
    server.sql_in("news", sql).expect("tables");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    let mut run = |sql: &str| {
        server.sql_in("news", sql).expect("statements");
        let read = follower.catch_up(&server);
        (read.len(), told(&read))
    };
    let (count, told) = run("BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT");
    assert_eq!((count, told), (1, vec!["+t(1)".into(), "+t(2)".into()]));
    assert_eq!(run("BEGIN; INSERT INTO t VALUES (3); ROLLBACK").0, 0);
    let (_, told) = run("BEGIN; INSERT INTO t VALUES (3); SAVEPOINT a; INSERT INTO t VALUES (4);
         ROLLBACK TO a; INSERT INTO t VALUES (5); COMMIT");
    assert_eq!(told, ["+t(3)", "+t(5)"]);
    // MyISAM keeps changes that InnoDB rolls back.
    let (_, told) = run("BEGIN; INSERT INTO t VALUES (6); SAVEPOINT a; INSERT INTO t VALUES (7);
         INSERT INTO m VALUES (1); ROLLBACK TO a; COMMIT");
    assert!(told.iter().any(|text| text.starts_with("+m(1)")), "{told:?}");
    assert!(told.contains(&"+t(6)".to_owned()) && !told.contains(&"+t(7)".to_owned()), "{told:?}");
    let (_, told) = run("BEGIN; INSERT INTO t VALUES (8); INSERT INTO m VALUES (2); ROLLBACK");
    assert!(told.iter().any(|text| text.starts_with("+m(2)")), "{told:?}");
    assert!(!told.contains(&"+t(8)".to_owned()), "{told:?}");
}

#[test]
fn definitions_and_statements() {
    let server = server(&[]);
    server.sql_in("news", "CREATE TABLE t (id INT PRIMARY KEY, a INT)").expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    let mut run = |sql: &str| {
        server.sql_in("news", sql).expect("statements");
        told(&follower.catch_up(&server))
    };
    assert_eq!(run("ALTER TABLE t ADD b INT"), ["news.t: defined"]);
    // The shape that was queried before no longer matches.
    assert_eq!(run("INSERT INTO t VALUES (1,2,3)"), ["news.t: schema-mismatch"]);
    assert_eq!(run("TRUNCATE t"), ["news.t: defined"]);
    assert_eq!(run("RENAME TABLE t TO u"), ["news.t: defined", "news.u: defined"]);
    assert_eq!(run("CREATE TABLE v SELECT 1 AS a")[0], "news.v: defined");
    assert_eq!(run("DROP TABLE u, v"), ["news.u: defined", "news.v: defined"]);
    assert_eq!(run("CREATE DATABASE other; CREATE TABLE other.x (a INT)"), [""; 0]);
    assert_eq!(run("DROP DATABASE other"), ["other.*: defined"]);
    assert_eq!(run("CREATE USER u; GRANT SELECT ON news.* TO u; FLUSH PRIVILEGES"), [""; 0]);
    let sql = "CREATE TABLE s (a INT); SET binlog_format=STATEMENT; INSERT INTO s VALUES (1);
               UPDATE s SET a=2";
    assert_eq!(run(sql), ["news.s: defined", "news.s: statement", "news.s: statement"]);
    let sql = "SET STATEMENT lock_wait_timeout=9 FOR ALTER TABLE s FORCE;
               SET binlog_format=STATEMENT; SET STATEMENT lock_wait_timeout=9 FOR UPDATE s SET a=3;
               ANALYZE UPDATE s SET a=4";
    let told_of = run(sql);
    assert_eq!(told_of[..2], ["news.s: defined", "news.s: statement"]);
    assert!(
        matches!(told_of[2].as_str(), "*: unknown-statement" | "news.s: statement"),
        "{told_of:?}"
    );
    let sql = "CREATE SEQUENCE q; SELECT NEXTVAL(q)";
    assert_eq!(run(sql)[0], "news.q: defined");
}

#[test]
fn rarer_statements() {
    let server = server(&["--log-bin-trust-function-creators=ON"]);
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a INT);
               CREATE TABLE v (a INT) WITH SYSTEM VERSIONING;
               DELIMITER |
               CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO t VALUES (50, 0); RETURN 1; END|
               CREATE PROCEDURE p()
               BEGIN INSERT INTO t VALUES (60, 0); UPDATE t SET a=1 WHERE id=60; END|";
    server.sql_in("news", sql).expect("tables");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    let mut run = |sql: &str| {
        server.sql_in("news", sql).expect("statements");
        told(&follower.catch_up(&server))
    };
    // Rows of a table with two columns that the schema hides.
    let versioned = run("INSERT INTO v VALUES (7); UPDATE v SET a=8");
    assert!(versioned[0].starts_with("+v(7,") && versioned.len() >= 2, "{versioned:?}");
    // A two-phase ALTER.
    let altered = run("SET binlog_alter_two_phase=ON; ALTER TABLE t ADD KEY (a), ALGORITHM=COPY");
    assert!(
        !altered.is_empty() && altered.iter().all(|text| text == "news.t: defined"),
        "{altered:?}"
    );
    assert_eq!(
        run("CREATE TEMPORARY TABLE x (a INT); INSERT INTO x VALUES (1); DROP TABLE x"),
        [""; 0]
    );
    assert_eq!(run("SELECT f()"), ["+t(50,0)"]);
    assert_eq!(run("CALL p()"), ["+t(60,0)", "t(60,0)->(60,1)"]);
    // In statement format nothing is missed.
    let statement = "SET SESSION binlog_format=STATEMENT; DELETE FROM t;";
    let by_function = run(&format!("{statement} SELECT f()"));
    assert_eq!(by_function, ["news.t: statement", "*: unknown-statement"]);
    let by_procedure = run(&format!("{statement} CALL p()"));
    assert_eq!(by_procedure, ["news.t: statement"; 3]);
    let dir = PrivateDir::temporary("load").expect("a directory");
    let path = dir.path().join("rows");
    std::fs::write(&path, "1\t2\n").expect("a file");
    make_readable(&path);
    let loaded =
        run(&format!("{statement} LOAD DATA LOCAL INFILE '{}' INTO TABLE t", path.display()));
    assert_eq!(loaded, ["news.t: statement"; 2]);
    // A write to another database may call a function of this one.
    let elsewhere = format!("CREATE DATABASE other; CREATE TABLE other.o (a INT); {statement}");
    let of_session = run(&format!("{elsewhere} INSERT INTO other.o VALUES (f())"));
    assert_eq!(of_session, ["news.t: statement", "*: statement"]);
    let checksum = "REPLACE INTO other.o (a) SELECT BIT_XOR(CAST(CRC32(CONCAT_WS('#', 1)) AS UNSIGNED)) % 9 + COUNT(*) \
                    FROM news.t WHERE (1 IN (1, 2))";
    assert_eq!(run(&format!("SET SESSION binlog_format=STATEMENT; {checksum}")), [""; 0]);
    let statement = "USE other; SET SESSION binlog_format=STATEMENT;";
    assert_eq!(run(&format!("{statement} INSERT INTO o VALUES (1.5)")), [""; 0]);
    let by_name = run(&format!("{statement} DELETE FROM news.t; INSERT INTO o VALUES (news.f())"));
    assert_eq!(by_name, ["news.t: statement", "*: statement"]);
    assert_eq!(run("CREATE OR REPLACE TABLE t (a INT)"), ["news.t: defined"]);
}

#[test]
fn distributed_transactions_come_with_their_commit() {
    let server = server(&[]);
    server.sql_in("news", "CREATE TABLE t (id INT PRIMARY KEY)").expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    let begin = "XA START 'x1','b',3; INSERT INTO t VALUES (1); XA END 'x1','b',3; ";
    let mut run = |sql: &str| {
        server.sql_in("news", sql).expect("statements");
        told(&follower.catch_up(&server))
    };
    assert_eq!(run(&format!("{begin} XA PREPARE 'x1','b',3")), ["prepared"]);
    assert_eq!(run("XA COMMIT 'x1','b',3"), ["+t(1)"]);
    let begin = begin.replace("(1)", "(2)");
    assert_eq!(run(&format!("{begin} XA PREPARE 'x1','b',3")), ["prepared"]);
    assert_eq!(run("XA ROLLBACK 'x1','b',3"), ["rolled back"]);
    assert_eq!(run(&format!("{begin} XA COMMIT 'x1','b',3 ONE PHASE")), ["+t(2)"]);
    // Prepared before the stream began, so its changes are unknown.
    let begin = begin.replace("(2)", "(3)");
    server.sql_in("news", &format!("{begin} XA PREPARE 'x1','b',3")).expect("statements");
    let mut late = Follower::now(&server, 7002, Limits::default());
    server.sql("XA COMMIT 'x1','b',3").expect("a commit");
    assert_eq!(told(&late.catch_up(&server)), ["*: unknown-xa"]);
}

#[test]
fn large_transactions_and_long_rows_are_reported_by_table() {
    let server = server(&["--max-allowed-packet=64M"]);
    let sql =
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT); CREATE TABLE u (a INT)";
    server.sql_in("news", sql).expect("tables");
    let limits = Limits { transaction_bytes: 100_000, event_bytes: 1 << 20, ..Limits::default() };
    let mut follower = Follower::now(&server, 7001, limits);
    let mut run = |sql: &str| {
        server.sql_in("news", sql).expect("statements");
        told(&follower.catch_up(&server))
    };
    let sql = "BEGIN; INSERT INTO u VALUES (1); INSERT INTO t (b) SELECT REPEAT('x', 1000) FROM seq_1_to_1000;
               INSERT INTO u VALUES (2); COMMIT";
    assert_eq!(run(sql), ["news.u: too-large", "news.t: too-large"]);
    // 17 MiB in one event: two packets.
    assert_eq!(run("INSERT INTO t (b) VALUES (REPEAT('y', 17 << 20))"), ["news.t: too-large"]);
    assert_eq!(
        run("SET GLOBAL log_bin_compress=ON; INSERT INTO t (b) VALUES (REPEAT('y', 2 << 20))"),
        ["news.t: too-long"]
    );
    assert_eq!(run("INSERT INTO u VALUES (3)"), ["+u(3)"]);
}

#[test]
fn only_tables_of_interest_are_reported() {
    let server = server(&[]);
    server.sql_in("news", "CREATE TABLE t (a INT); CREATE TABLE u (a INT)").expect("tables");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    follower.transactions.watch().interests.insert("t".into(), Interest::None);
    follower.transactions.watch().interests.insert("u".into(), Interest::Table);
    let sql =
        "BEGIN; INSERT INTO t VALUES (1); INSERT INTO u VALUES (2),(3); INSERT INTO u VALUES (4);
               COMMIT; TRUNCATE t; TRUNCATE u";
    server.sql_in("news", sql).expect("statements");
    assert_eq!(told(&follower.catch_up(&server)), ["news.u: asked", "news.u: defined"]);
    // In statement format triggers of any table may write those of interest.
    let sql = "SET SESSION binlog_format=STATEMENT; INSERT INTO t VALUES (5)";
    server.sql_in("news", sql).expect("statements");
    assert_eq!(told(&follower.catch_up(&server)), ["news.t: statement"]);
    // A view that is not known yet may be read and replaced later.
    follower.transactions.watch().interests.insert("v".into(), Interest::None);
    server.sql_in("news", "CREATE VIEW v AS SELECT a FROM t").expect("a view");
    assert_eq!(told(&follower.catch_up(&server)), ["news.v: defined"]);
}

#[test]
fn resuming_repeats_nothing_and_misses_nothing() {
    let mut server = server(&[]);
    server.sql_in("news", "CREATE TABLE t (id INT PRIMARY KEY)").expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    let insert = |server: &MariaDb, from: u32| {
        let inserts: Vec<String> =
            (from..from + 10).map(|id| format!("INSERT INTO t VALUES ({id})")).collect();
        server.sql_in("news", &inserts.join(";")).expect("rows");
    };
    insert(&server, 0);
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(follower.next().expect("a transaction"));
    }
    // By GTID, across a new file and a restart.
    server.sql("FLUSH BINARY LOGS").expect("a new file");
    server.stop();
    server.start_again().expect("it starts");
    insert(&server, 10);
    let start = follower.transactions.position().start().expect("a position");
    let mut resumed = Follower::at(&server, 7001, Limits::default(), &start);
    all.extend(resumed.catch_up(&server));
    let expected: Vec<String> = (0..20).map(|id| format!("+t({id})")).collect();
    assert_eq!(told(&all), expected);
    // By file and offset.
    let place: FilePosition = resumed.transactions.position().file.clone().expect("a file");
    insert(&server, 20);
    let start = Start::File(place);
    let mut by_file = Follower::at(&server, 7001, Limits::default(), &start);
    let read: Vec<Transaction> = (0..10).map(|_| by_file.next().expect("a transaction")).collect();
    let expected: Vec<String> = (20..30).map(|id| format!("+t({id})")).collect();
    assert_eq!(told(&read), expected);
    let (file, offset) = {
        let shown = server.sql("SHOW MASTER STATUS").expect("a status");
        let mut parts = shown.split('\t');
        let mut part = || parts.next().expect("a part").to_owned();
        (part(), part())
    };
    let own = by_file.transactions.position().file.clone().expect("a file");
    assert_eq!((&*own.file, own.offset.to_string()), (file.as_str(), offset));
}

#[test]
fn errors_have_kinds() {
    let server = server(&[]);
    let address = Address::Unix(server.socket().to_owned());
    let wrong = Account { password: "wrong".into(), ..account("news") };
    match Connection::open(&address, wrong) {
        Err(LoginRefused::Server(error)) => assert_eq!(error.kind(), ServerErrorKind::AccessDenied),
        other => panic!("{:?}", other.map(|_| ())),
    }
    // A GTID that the server never had.
    let start = Start::MariaDb("0-1-999999".parse().expect("a list"));
    let mut unknown = Follower::at(&server, 7001, Limits::default(), &start);
    let refused = unknown.next().expect_err("no such GTID");
    assert_eq!(refused.as_str(), "position-gone");
    // A file that no longer exists.
    drop(unknown);
    server.sql("FLUSH BINARY LOGS; FLUSH BINARY LOGS").expect("three files");
    // A file that a replica reads is not removed, and the server takes a moment to notice that it disconnected.
    let is_gone = (0..500).any(|_| {
        server.sql("PURGE BINARY LOGS TO 'bin.000003'").expect("purged");
        !server.sql("SHOW BINARY LOGS").expect("the files").contains("bin.000001")
    });
    assert!(is_gone, "the first file is not purged");
    let start = Start::File(FilePosition { file: "bin.000001".into(), offset: 4 });
    let mut purged = Follower::at(&server, 7001, Limits::default(), &start);
    assert_eq!(purged.next().expect_err("no such file").as_str(), "position-gone");
    // Another replica with the same id.
    server.sql_in("news", "CREATE TABLE t (a INT)").expect("a table");
    let mut first = Follower::now(&server, 7001, Limits::default());
    server.sql_in("news", "INSERT INTO t VALUES (1)").expect("a row");
    first.next().expect("a transaction");
    let _second = Follower::now(&server, 7001, Limits::default());
    let refused = loop {
        match first.next() {
            Ok(_) => {}
            Err(refused) => break refused,
        }
    };
    assert!(matches!(&refused, StreamRefused::Server(error) if error.code == 4052), "{refused:?}");
    assert_eq!(refused.as_str(), "server-id-taken");
}

#[test]
fn other_ways_to_log_in() {
    let mut server = server(&[]);
    let sql = "INSTALL SONAME 'auth_ed25519';
               CREATE USER ed@localhost IDENTIFIED VIA ed25519 USING PASSWORD('secret');
               CREATE USER nobody@localhost; CREATE USER pam@localhost IDENTIFIED VIA pam";
    server.sql("INSTALL SONAME 'auth_pam_v1'").expect("a plugin");
    server.sql(sql).expect("accounts");
    let address = Address::Unix(server.socket().to_owned());
    let as_user = |user: &str, password: &str| {
        let account =
            Account { user: user.into(), password: password.into(), database: String::new() };
        Connection::open(&address, account).map(|mut connection| connection.one("SELECT 40+2"))
    };
    assert_eq!(as_user("ed", "secret"), Ok("42".into()));
    assert!(matches!(as_user("ed", "wrong"), Err(LoginRefused::Server(_))));
    assert_eq!(as_user("nobody", ""), Ok("42".into()));
    assert!(
        matches!(as_user("pam", "x"), Err(LoginRefused::UnknownPlugin(name)) if name == "dialog")
    );
    server.stop();
}

#[test]
fn a_log_that_is_encrypted_on_disk_is_sent_in_the_clear() {
    let keys = PrivateDir::temporary("keys").expect("a directory");
    let path = keys.path().join("keys");
    std::fs::write(&path, format!("1;{}\n", "0123456789abcdef".repeat(2))).expect("a file");
    make_readable(&path);
    let plugin = format!("--file-key-management-filename={}", path.display());
    let server = server(&["--plugin-load-add=file_key_management", &plugin, "--encrypt-binlog=ON"]);
    server.sql_in("news", "CREATE TABLE t (a INT)").expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    server.sql_in("news", "INSERT INTO t VALUES (1)").expect("a row");
    assert_eq!(told(&follower.catch_up(&server)), ["+t(1)"]);
}

fn make_readable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).expect("its mode");
}

#[test]
fn a_damaged_event_ends_the_stream() {
    let server = server(&[]);
    server.sql_in("news", "CREATE TABLE t (a INT)").expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    server.sql_in("news", "INSERT INTO t VALUES (1)").expect("a row");
    follower.catch_up(&server);
    let start = Start::MariaDb("".parse().expect("a list"));
    let mut again =
        mysql_replication::Transactions::new(&start, Limits::default(), common::News::default());
    let last = follower.recorded.len() - 1;
    for (at, packet) in follower.recorded.iter().enumerate() {
        let mut packet = packet.clone();
        if at < last {
            again.read(&packet).expect("an event");
            continue;
        }
        let mut bytes = packet.payload.to_vec();
        bytes[21] ^= 1;
        packet.payload = bytes.into();
        assert_eq!(again.read(&packet), Err(StreamRefused::Event(Refusal::BadChecksum)));
    }
    assert_eq!(FallbackReason::TooLarge.as_str(), "too-large");
}
