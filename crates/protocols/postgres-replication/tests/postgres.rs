//! Tests with a real PostgreSQL: every kind of statement, identities, definitions, lost connections, large
//! transactions.
//!
//! The changes in the stream are compared with the statements executed, in the text form of `common::told`.
//! Nothing waits for a fixed time: the stream is read until something arrives.

mod common;

use common::{Paper, told};
use harness::{PostgresOptions, StopResult};
use postgres_replication::position::Lsn;
use postgres_replication::wire::error::ServerErrorKind;
use postgres_replication::wire::login::Purpose;
use postgres_replication::wire::query::QueryRefused;
use postgres_replication::wire::stream::{self, Reply};
use postgres_replication::{ChangeScope, Limits};
use std::collections::BTreeSet;

const TABLES: &str = "
    CREATE TABLE news (id int PRIMARY KEY, title text);
    CREATE TABLE comments (id int PRIMARY KEY, news_id int REFERENCES news ON DELETE CASCADE);
    CREATE TABLE passed_over (id int PRIMARY KEY);
    CREATE TABLE asked (id int PRIMARY KEY);";

#[test]
fn every_statement_that_changes_rows() {
    let paper = Paper::new(TABLES);
    let mut stream = paper.follow();
    let mut is_told = |sql: &str, expected: &[&str]| {
        paper.sql(sql);
        assert_eq!(stream.told(), expected, "{sql}");
    };
    is_told(
        "INSERT INTO news VALUES (1, 'one'), (2, NULL)",
        &["insert news id=1 title=one", "insert news id=2 title=NULL"],
    );
    is_told("UPDATE news SET title = 'uno' WHERE id = 1", &["update news id=1 title=?>uno"]);
    is_told("UPDATE news SET id = 9 WHERE id = 2", &["update news id=2>9 title=?>NULL"]);
    is_told(
        "INSERT INTO news VALUES (1, 'x'), (3, 'three')
         ON CONFLICT (id) DO UPDATE SET title = 'again'",
        &["update news id=1 title=?>again", "insert news id=3 title=three"],
    );
    is_told(
        "COPY comments FROM stdin;\n7\t3\n8\t9\n\\.\n",
        &["insert comments id=7 news_id=3", "insert comments id=8 news_id=9"],
    );
    is_told(
        "WITH gone AS (DELETE FROM comments WHERE id = 8 RETURNING news_id)
         INSERT INTO comments SELECT 10, news_id FROM gone",
        &["delete comments id=8 news_id=?", "insert comments id=10 news_id=9"],
    );
    is_told(
        "MERGE INTO news USING (VALUES (1), (4)) AS v (id) ON news.id = v.id
         WHEN MATCHED THEN UPDATE SET title = 'met' WHEN NOT MATCHED THEN INSERT VALUES (v.id, 'new')",
        &["update news id=1 title=?>met", "insert news id=4 title=new"],
    );
    // Rows that a foreign key deletes are in the stream.
    is_told(
        "DELETE FROM news WHERE id = 3",
        &["delete news id=3 title=?", "delete comments id=7 news_id=?"],
    );
    is_told(
        "CREATE FUNCTION sign() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO comments VALUES (20, NEW.id); RETURN NEW; END $$;
         CREATE TRIGGER sign AFTER INSERT ON news FOR EACH ROW EXECUTE FUNCTION sign();
         INSERT INTO news VALUES (5, 'five')",
        &["insert news id=5 title=five", "insert comments id=20 news_id=5"],
    );
    is_told(
        "TRUNCATE news CASCADE",
        &["table public.news emptied", "table public.comments emptied"],
    );
    is_told(
        "BEGIN; INSERT INTO passed_over VALUES (1); INSERT INTO asked VALUES (1), (2); COMMIT",
        &["table public.asked asked"],
    );
    is_told("SELECT pg_logical_emit_message(true, 'pagewell-defined', '')", &["definitions"]);
}

#[test]
fn only_committed_transactions_are_reported() {
    let options = PostgresOptions {
        settings: vec!["max_prepared_transactions=5".into()],
        ..PostgresOptions::default()
    };
    let paper = Paper::with(options, TABLES);
    let mut stream = paper.follow();
    paper.sql(
        "BEGIN; INSERT INTO news VALUES (1, 'never'); ROLLBACK;
         BEGIN; INSERT INTO news VALUES (2, 'two'); SAVEPOINT a; INSERT INTO news VALUES (3, 'undone');
         ROLLBACK TO a; INSERT INTO news VALUES (4, 'four'); SAVEPOINT b;
         INSERT INTO news VALUES (5, 'five'); RELEASE b; COMMIT;",
    );
    assert_eq!(
        stream.told(),
        [
            "insert news id=2 title=two",
            "insert news id=4 title=four",
            "insert news id=5 title=five",
        ]
    );
    // Two-phase commit: nothing until the second phase, then like any other transaction; also after a restart
    // of the reader.
    paper.sql("BEGIN; INSERT INTO news VALUES (6, 'six'); PREPARE TRANSACTION 'first'");
    paper.sql("BEGIN; INSERT INTO news VALUES (7, 'seven'); PREPARE TRANSACTION 'second'");
    paper.sql("INSERT INTO news VALUES (8, 'eight')");
    assert_eq!(stream.told(), ["insert news id=8 title=eight"]);
    let place = stream.transactions.position();
    stream.confirm();
    drop(stream);
    paper.sql("ROLLBACK PREPARED 'second'; COMMIT PREPARED 'first'");
    let mut stream = paper.follow_again(place);
    assert_eq!(stream.told(), ["insert news id=6 title=six"]);
}

#[test]
fn the_row_before_has_the_expected_columns() {
    let paper = Paper::new(
        "CREATE TABLE usual (id int PRIMARY KEY, n int, body text);
         CREATE TABLE whole (id int PRIMARY KEY, n int, body text);
         ALTER TABLE whole REPLICA IDENTITY FULL;
         CREATE TABLE by_index (id int PRIMARY KEY, n int NOT NULL, body text);
         CREATE UNIQUE INDEX by_n ON by_index (n);
         ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_n;
         CREATE TABLE by_nothing (id int PRIMARY KEY, n int);
         ALTER TABLE by_nothing REPLICA IDENTITY NOTHING;
         CREATE TABLE without_key (n int);",
    );
    for table in ["usual", "whole", "by_index"] {
        // So long that it is stored out of line, and not sent if it is unchanged.
        paper.sql(&format!(
            "ALTER TABLE {table} ALTER body SET STORAGE EXTERNAL;
             INSERT INTO {table} VALUES (1, 10, repeat('x', 5000))"
        ));
    }
    let mut stream = paper.follow();
    for _ in 0..3 {
        stream.next();
    }
    let mut is_told = |sql: &str, expected: &str| {
        paper.sql(sql);
        assert_eq!(stream.told(), [expected], "{sql}");
    };
    is_told("UPDATE usual SET n = 11", "update usual id=1 n=?>11 body=?");
    is_told("UPDATE whole SET n = 11", "update whole id=1 n=10>11 body=(5000 bytes)");
    is_told("UPDATE by_index SET id = 2", "update by_index id=?>2 n=10 body=?");
    is_told("UPDATE usual SET body = 'short'", "update usual id=1 n=?>11 body=?>short");
    is_told("UPDATE whole SET id = 1", "update whole id=1 n=11 body=(5000 bytes)");
    is_told("UPDATE by_index SET n = 12", "update by_index id=?>2 n=10>12 body=?");
    is_told("DELETE FROM usual", "delete usual id=1 n=? body=?");
    is_told("DELETE FROM whole", "delete whole id=1 n=11 body=(5000 bytes)");
    is_told("DELETE FROM by_index", "delete by_index id=? n=12 body=?");
    is_told("INSERT INTO by_nothing VALUES (1, 1)", "insert by_nothing id=1 n=1");
    // If rows cannot be identified, the server refuses the statement itself.
    paper.sql("INSERT INTO without_key VALUES (1)");
    for table in ["by_nothing", "without_key"] {
        let refused = paper.database.sql_in("paper", &format!("UPDATE {table} SET n = 2"));
        let error = refused.expect_err("no identity").to_string();
        assert!(error.contains("does not have a replica identity"), "{error}");
    }
}

#[test]
fn definitions_during_the_run() {
    let paper = Paper::new(TABLES);
    let mut stream = paper.follow();
    paper.sql("INSERT INTO news VALUES (1, 'one')");
    assert_eq!(stream.told(), ["insert news id=1 title=one"]);
    paper.sql("ALTER TABLE news ADD COLUMN lead text DEFAULT 'x'; UPDATE news SET id = 2");
    assert_eq!(
        stream.told(),
        ["table public.news defined", "update news id=1>2 title=?>one lead=?>x",]
    );
    paper.sql("ALTER TABLE news RENAME title TO headline; INSERT INTO news VALUES (3, 'three')");
    assert_eq!(
        stream.told(),
        ["table public.news defined", "insert news id=3 headline=three lead=x",]
    );
    paper.sql(
        "ALTER TABLE news DROP lead; ALTER TABLE news RENAME TO stories;
        INSERT INTO stories VALUES (4, 'four')",
    );
    assert_eq!(
        stream.told(),
        [
            "table public.news defined",
            "table public.stories defined",
            "insert stories id=4 headline=four",
        ]
    );
    // Rewritten rows and dropped tables are not in the stream; a new table of the same name is.
    paper.sql(
        "ALTER TABLE stories ALTER headline TYPE varchar(9) USING upper(headline);
        ALTER TABLE comments DROP CONSTRAINT comments_news_id_fkey; DROP TABLE stories;
        CREATE TABLE news (nr int PRIMARY KEY); INSERT INTO news VALUES (1)",
    );
    assert_eq!(stream.told(), ["insert news nr=1"]);
    let definitions = stream.recorded.iter().filter(|frame| frame.get(25) == Some(&b'R')).count();
    assert_eq!(definitions, 5, "a table is told once for each form it had");
}

#[test]
fn a_connection_that_is_cut_anywhere_is_taken_up_without_a_gap() {
    let paper = Paper::new(TABLES);
    let mut place = Lsn(0);
    let mut seen = Vec::new();
    for round in 0..20 {
        let from = round * 10;
        paper.sql(&format!(
            "INSERT INTO news SELECT i, repeat('y', 300) FROM \
            generate_series({from}, {from} + 4) i; INSERT INTO asked VALUES ({round}); \
            INSERT INTO news SELECT i, 'z' FROM generate_series({from} + 5, {from} + 9) i"
        ));
        let mut stream = paper.follow_again(place);
        // The connection is cut in the middle of the stream, a little later each time.
        let mut frames = 0;
        while frames < 3 + round {
            if let Some(postgres_replication::Step::Transaction(transaction)) = stream.step() {
                seen.extend(told(&transaction));
                place = stream.transactions.position();
            }
            frames += 1;
        }
        // No position is confirmed beyond the transactions returned.
        stream.confirm();
    }
    paper.sql("INSERT INTO news VALUES (-1, 'last')");
    let mut stream = paper.follow_again(place);
    while seen.last().is_none_or(|last| last != "insert news id=-1 title=last") {
        seen.extend(stream.told());
    }
    let ids: Vec<String> = seen.iter().filter(|line| line.contains("id=")).cloned().collect();
    let once: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), once.len()), (201, 201));
}

#[test]
fn a_server_that_stops_or_crashes_goes_on_where_it_was() {
    let mut paper = Paper::new(TABLES);
    let mut place = Lsn(0);
    for round in 0..4 {
        let mut stream = paper.follow_again(place);
        paper.sql(&format!("INSERT INTO news VALUES ({round}, 'x')"));
        assert_eq!(stream.told(), [format!("insert news id={round} title=x")]);
        place = stream.transactions.position();
        if round % 2 == 0 {
            // The server waits until its readers have received everything.
            let reading = std::thread::spawn(move || {
                while stream.try_next().is_some() {}
                stream.transactions.position()
            });
            assert!(matches!(paper.database.stop(), Some(StopResult::Ended(_))));
            place = place.max(reading.join().expect("the stream ends"));
        } else {
            paper.database.kill();
            while stream.try_next().is_some() {}
        }
        paper.database.start_again().expect("PostgreSQL starts again");
    }
}

#[test]
fn a_slot_that_is_gone_is_named() {
    let settings = ["max_slot_wal_keep_size=1MB".into(), "min_wal_size=32MB".into()].to_vec();
    let paper = Paper::with(PostgresOptions { settings, ..Default::default() }, TABLES);
    let lost = |what: &str| {
        let refused = paper.connect(Purpose::Replication).start(Lsn(0));
        let Err(QueryRefused::Server(error)) = refused else { panic!("{what}: {refused:?}") };
        assert!(stream::is_slot_lost(&error), "{what}: {error}");
    };
    let busy = paper.follow();
    let refused = paper.connect(Purpose::Replication).start(Lsn(0));
    let Err(QueryRefused::Server(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ServerErrorKind::InUse);
    assert!(!stream::is_slot_lost(&error));
    drop(busy);
    until(&paper, "SELECT count(*) FROM pg_replication_slots WHERE active", "0");

    // More log than the slot may keep.
    for round in 0..6 {
        paper.sql(&format!("INSERT INTO news VALUES ({round}, 'x'); SELECT pg_switch_wal()"));
    }
    paper.sql("CHECKPOINT");
    let state = paper.sql("SELECT wal_status FROM pg_replication_slots");
    assert_eq!(state, "lost\n");
    lost("over its bound");
    paper.sql("SELECT pg_drop_replication_slot('pagewell')");
    lost("dropped");

    // A publication created after the slot does not exist for earlier changes.
    paper.make_slot();
    paper.sql(
        "DROP PUBLICATION pagewell; INSERT INTO news VALUES (90, 'between');
        CREATE PUBLICATION pagewell FOR ALL TABLES",
    );
    let mut connection = paper.connect(Purpose::Replication);
    connection.start(Lsn(0)).expect("it starts");
    let error = loop {
        let frame = connection.frame().expect("an error");
        if let Some(error) = stream::error(&frame) {
            break error;
        }
    };
    assert!(stream::is_slot_lost(&error), "{error}");
}

#[test]
fn large_transactions_and_rows_stay_within_bounds() {
    let paper = Paper::new(TABLES);
    let limits = Limits { transaction_bytes: 100_000, ..Limits::default() };
    let mut stream = paper.follow_from(Lsn(0), limits);
    stream.connection.hold_at_most(10_000);
    paper.sql("INSERT INTO news SELECT i, 'x' FROM generate_series(1, 1000) i");
    let transaction = stream.next();
    let [ChangeScope::Rows(rows)] = transaction.changes.as_slice() else { panic!("rows") };
    assert!(rows.bytes() <= limits.transaction_bytes && rows.changes().count() == 1000);
    paper.sql(
        "BEGIN; INSERT INTO asked VALUES (1); UPDATE news SET id = id + 100000;
        INSERT INTO comments VALUES (1, NULL);
        INSERT INTO news SELECT i, 'x' FROM generate_series(2001, 200000) i
            WHERE i NOT BETWEEN 100000 AND 102000;
        TRUNCATE comments; INSERT INTO comments VALUES (2, NULL); COMMIT",
    );
    assert_eq!(
        stream.told(),
        [
            "table public.asked asked",
            "table public.news too-large",
            "table public.comments too-large",
            "table public.comments emptied",
        ]
    );
    // A row over the limit of a frame: its first bytes identify the table.
    paper.sql(
        "BEGIN; INSERT INTO news VALUES (1, repeat('long', 5000));
        INSERT INTO comments VALUES (3, 1); COMMIT",
    );
    assert_eq!(stream.told(), ["table public.news too-large", "insert comments id=3 news_id=1"]);
    // So many tables that everything counts as changed.
    paper.sql(
        "DO $$ BEGIN FOR i IN 1..1001 LOOP EXECUTE format('CREATE TABLE asked.t%s (id int \
        PRIMARY KEY)', i); END LOOP; END $$"
            .replace("asked.t", "t")
            .as_str(),
    );
    paper.sql("INSERT INTO t1 VALUES (1)");
    assert_eq!(stream.told(), ["insert t1 id=1"]);
    let tables: Vec<String> = (1..=1001).map(|number| format!("t{number}")).collect();
    paper.sql(&format!("TRUNCATE {}", tables.join(", ")));
    assert_eq!(stream.told(), ["everything too-large"]);
}

#[test]
fn the_position_moves_with_unwatched_changes() {
    let paper =
        Paper::new("CREATE UNLOGGED TABLE draft (id int); CREATE TABLE passed_over (id int)");
    let mut stream = paper.follow();
    let mut spare = paper.connect(Purpose::Statements);
    for round in 0..50 {
        // A transaction that is not sent, one of an ignored table, and no transaction.
        let sql = [
            "SELECT pg_logical_emit_message(true, 'other', 'x')",
            "INSERT INTO passed_over VALUES (1)",
            "SELECT pg_switch_wal()",
        ][round % 3];
        paper.sql(sql);
        let place: Lsn = spare.one("SELECT pg_current_wal_insert_lsn()").parse().expect("a place");
        while stream.transactions.position() < place.before_header() {
            stream.step().expect("the stream goes on");
        }
    }
    assert_eq!(stream.transactions.position(), stream.transactions.position().before_header());
    let answer = stream::status(Lsn(1), Lsn(1), Reply::Wanted);
    stream.connection.send(&answer);
    assert!(stream.step().is_some(), "it answers");
}

/// Repeats the query until it returns this answer.
fn until(paper: &Paper, sql: &str, answer: &str) {
    let deadline = harness::Deadline::after(common::PATIENCE);
    while paper.sql(sql).trim() != answer {
        assert!(!deadline.passed(), "{sql} is never {answer}");
    }
}
