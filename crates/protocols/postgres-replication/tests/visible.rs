//! Whether a transaction is visible to other sessions when the stream delivers it.
//!
//! A commit is first written to the log, which the stream reads, and then made visible. Usually the second step
//! takes microseconds. With synchronous replication it takes until a standby has confirmed, so that the order
//! can be shown deterministically.

mod common;

use common::Paper;
use postgres_replication::snapshot::Snapshot;
use postgres_replication::wire::login::Purpose;
use std::fs;

const TABLES: &str = "CREATE TABLE news (id int PRIMARY KEY, title text);
    GRANT ALL ON news TO follower; INSERT INTO news VALUES (1, 'old');";

#[test]
fn a_transaction_that_arrives_before_it_is_visible_is_recognised() {
    let paper = Paper::new(TABLES);
    let (mut stream, mut reader) = (paper.follow(), paper.connect(Purpose::Statements));
    let snapshot = |reader: &mut common::Connection| -> Snapshot {
        reader.one("SELECT pg_current_snapshot()").parse().expect("a snapshot")
    };
    // Every commit waits for a standby that does not exist.
    paper.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    paper.sql("SELECT pg_reload_conf()");
    until_waiting(&mut reader);
    // Commits wait as soon as the checkpointer has read the setting, which it does before a checkpoint.
    paper.sql("CHECKPOINT");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| paper.sql("UPDATE news SET title = 'new'"));
        let waiting = HeldCommits(&paper);
        let transaction = stream.next();
        assert_eq!(reader.one("SELECT title FROM news"), "old", "it came first");
        assert!(!snapshot(&mut reader).has_finished(transaction.xid));
        drop(waiting);
        writer.join().expect("it is committed");
        assert!(snapshot(&mut reader).has_finished(transaction.xid));
        assert_eq!(reader.one("SELECT title FROM news"), "new");
    });
    // In the usual case too: as soon as the snapshot shows the transaction, its rows are visible.
    for round in 0..200 {
        paper_write(&mut reader, round);
        let transaction = stream.next();
        while !snapshot(&mut reader).has_finished(transaction.xid) {}
        assert_eq!(reader.one("SELECT title FROM news"), round.to_string());
    }
}

/// Commits wait while this guard exists. They are released even if the test fails.
struct HeldCommits<'a>(&'a Paper);

impl Drop for HeldCommits<'_> {
    fn drop(&mut self) {
        self.0.sql("ALTER SYSTEM RESET synchronous_standby_names");
        self.0.sql("SELECT pg_reload_conf()");
    }
}

/// Waits until the changed settings are in effect, which takes a moment.
fn until_waiting(reader: &mut common::Connection) {
    let deadline = harness::Deadline::after(common::PATIENCE);
    while reader.one("SHOW synchronous_standby_names") != "nobody" {
        assert!(!deadline.passed(), "the setting is never read");
    }
}

fn paper_write(writer: &mut common::Connection, round: usize) {
    writer.query(&format!("UPDATE news SET title = '{round}'")).expect("it runs");
}

/// Measures how often and how long: `cargo test --release -p postgres-replication --test visible -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn how_often_it_comes_first() {
    const COMMITS: usize = 5000;
    let paper = Paper::new(TABLES);
    let (mut stream, mut reader) = (paper.follow(), paper.connect(Purpose::Statements));
    let mut writer = paper.connect(Purpose::Statements);
    let writing = std::thread::spawn(move || {
        for round in 0..COMMITS {
            paper_write(&mut writer, round);
        }
    });
    let (mut before, mut waits) = (0, Vec::new());
    for _ in 0..COMMITS {
        let transaction = stream.next();
        let watch = harness::Stopwatch::start();
        let mut asked = 0;
        let seen = |reader: &mut common::Connection| -> Snapshot {
            reader.one("SELECT pg_current_snapshot()").parse().expect("a snapshot")
        };
        while !seen(&mut reader).has_finished(transaction.xid) {
            asked += 1;
        }
        if asked > 0 {
            before += 1;
            waits.push(watch.elapsed().as_micros());
        }
    }
    writing.join().expect("all is written");
    waits.sort_unstable();
    let at = |share: usize| waits.get(waits.len() * share / 100).copied().unwrap_or_default();
    println!(
        "{before} of {COMMITS} came before they were visible; then visible after {} us (median), \
         {} us (99 %), {} us at most",
        at(50),
        at(99),
        waits.last().copied().unwrap_or_default()
    );
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load of the machine: {load}");
}
