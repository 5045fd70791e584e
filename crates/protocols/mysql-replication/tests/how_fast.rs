//! Measures how many row changes per second the reader decodes, from memory and on one core. It is run by hand
//! and asserts nothing about time.
//!
//! `cargo test --release -p mysql-replication --test how_fast -- --ignored --nocapture`

mod common;

use common::{Follower, server};
use mysql_replication::position::Start;
use mysql_replication::{ChangeScope, Interest, Limits, Step, Transactions};
use mysql_wire::packet::Packet;

/// Row changes decoded per second, from memory: `cargo test --release -p mysql-replication --test how_fast --
/// --ignored --nocapture how_fast`.
#[test]
#[ignore = "a measurement"]
fn how_fast() {
    let server = server(&["--innodb-flush-log-at-trx-commit=0"]);
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(100), c DATETIME, d TEXT);
               INSERT INTO t SELECT seq, seq, REPEAT('b', 50), NOW(), REPEAT('d', 200) FROM seq_1_to_100000";
    server.sql_in("news", sql).expect("a table");
    let start = Start::MariaDb(
        server.sql("SELECT @@gtid_current_pos").expect("a list").parse().expect("a list"),
    );
    let mut follower =
        Follower::now(&server, 7001, Limits { transaction_bytes: 1 << 30, ..Limits::default() });
    let single: String =
        (1..=20_000).map(|id| format!("UPDATE t SET a=a+1 WHERE id={id};")).collect();
    server.sql_in("news", &single).expect("rows");
    follower.catch_up(&server);
    measure("20,000 transactions of one row each", 20_000, &start, &follower.recorded);
    follower.recorded.clear();
    server.sql_in("news", "UPDATE t SET a=a+1").expect("rows");
    follower.catch_up(&server);
    measure("one transaction of 100,000 rows", 100_000, &start, &follower.recorded);
}

fn measure(what: &str, rows: u32, start: &Start, packets: &[Packet]) {
    for interest in [Interest::None, Interest::Table, Interest::Rows] {
        let mut news = common::News::default();
        news.interests.insert("t".into(), interest);
        let limits = Limits { transaction_bytes: 1 << 30, ..Limits::default() };
        let mut transactions = Transactions::new(start, limits, news);
        let watch = harness::Stopwatch::start();
        let mut values = 0;
        for packet in packets {
            let step = transactions.read(packet).expect("an event");
            let Step::Transaction(transaction) = step else { continue };
            for change in &transaction.changes {
                let ChangeScope::Rows(rows) = &change.what else { continue };
                values += rows.changes().flatten().filter(|change| change.after.is_some()).count();
            }
        }
        let seconds = watch.elapsed().as_secs_f64();
        let rate = f64::from(rows) / seconds;
        println!("{what}, {interest:?}: {rate:.0} rows a second ({values} read)");
    }
}

/// The memory that a transaction of a million rows needs with the default limits.
#[test]
#[ignore = "a measurement"]
fn how_large() {
    let server = server(&["--innodb-flush-log-at-trx-commit=0", "--tmp-disk-table-size=1G"]);
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a INT, d VARCHAR(200));
               INSERT INTO t SELECT seq, seq, REPEAT('d', 100) FROM seq_1_to_1000000";
    server.sql_in("news", sql).expect("a table");
    let mut follower = Follower::now(&server, 7001, Limits::default());
    server.sql_in("news", "UPDATE t SET a=a+1").expect("rows");
    let (mut bytes, mut packets, before) = (0, 0, peak_kib());
    let watch = harness::Stopwatch::start();
    let read = loop {
        let packet = follower.connection.receive();
        bytes += packet.wire_bytes;
        packets += 1;
        let step = follower.transactions.read(&packet).expect("an event");
        if let Step::Transaction(read) = step {
            break read;
        }
    };
    let seconds = watch.elapsed().as_secs_f64();
    println!(
        "{packets} packets, {bytes} bytes in {seconds:.1} s; the peak grew by {} KiB; {} change",
        peak_kib() - before,
        read.changes.len()
    );
}

/// The peak memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}
