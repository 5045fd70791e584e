//! Pages outlive the process with a PostgreSQL, however the process ended: the slot keeps the log that the
//! snapshot needs, up to a limit. If a gap is possible (the slot deleted, another server, another timeline, a
//! restored server), no page is restored.

use super::{Paper, RULES, TABLES, config_by, get, is_hit, shows, stored};
use acceptance::{counter, until};
use harness::{Identity, Pagewell, PostgresOptions, PrivateDir, Signal, StopResult, Wait};
use std::path::Path;
use std::process::Command;

const PAGES: [&str; 3] = ["/show.php?id=1", "/show.php?id=2", "/show.php?id=3"];

/// A site whose pages outlive the process, with a snapshot of three pages.
struct SnapshotSite {
    paper: Paper,
}

impl SnapshotSite {
    fn new() -> SnapshotSite {
        let kept = SnapshotSite { paper: Paper::with(PostgresOptions::default(), TABLES) };
        let mut pagewell = kept.serve("");
        PAGES.iter().for_each(|path| stored(&pagewell, path));
        pagewell.signal(Signal::TERM);
        assert!(
            matches!(pagewell.wait(acceptance::BOUND), Wait::Ended(status) if status.success())
        );
        kept
    }

    /// Starts Pagewell. A snapshot is written when it stops, not before.
    fn serve(&self, more: &str) -> Pagewell {
        let directory = self.paper.site.at("snapshots");
        let more = format!("manage = true\n{more}\n[snapshot]\ndirectory = {directory:?}");
        self.paper.site.serve(&config_by(&self.paper.url(), &more, RULES))
    }

    /// Starts Pagewell with the remaining snapshot.
    fn serve_warm(&self, more: &str) -> Pagewell {
        let pagewell = self.serve(more);
        until("it is loaded", || pagewell.log().contains("snapshot-loaded"));
        pagewell
    }

    fn title(&self, id: u32, title: &str) {
        self.paper.sql(&format!("UPDATE news SET title = '{title}' WHERE id = {id}"));
    }

    /// Waits until the server has received the confirmation of everything, so that it could discard the log.
    fn is_heard(&self) {
        let end = self.paper.sql("SELECT pg_current_wal_lsn()");
        let heard =
            format!("SELECT count(*) FROM pg_stat_replication WHERE write_lsn >= '{}'", end.trim());
        until("the server has heard of it", || self.paper.sql(&heard).trim() == "1");
    }

    /// Checks that no page was restored, for this reason.
    fn is_cold(&self, pagewell: &Pagewell, reason: &str) {
        assert_eq!(counter(pagewell, "snapshot_pages"), 0, "{}", pagewell.log());
        self.is_gap(pagewell, reason);
    }

    /// Checks the number of restored pages, and that no change is missing.
    fn is_warm(&self, pagewell: &Pagewell, pages: u64) {
        assert_eq!(counter(pagewell, "snapshot_pages"), pages, "{}", pagewell.log());
        assert_eq!(counter(pagewell, "database_gaps"), 0, "{}", pagewell.log());
    }

    /// Checks that everything was purged for this reason, and that every page shows the current data.
    fn is_gap(&self, pagewell: &Pagewell, reason: &str) {
        until("the gap is counted", || counter(pagewell, "database_gaps") == 1);
        let (log, said) = (pagewell.log(), format!("reason=\"{reason}\""));
        let is_said = |line: &str| line.contains("database-gap") && line.contains(&said);
        assert!(log.lines().any(is_said), "{reason}: {log}");
        for (at, path) in PAGES.iter().enumerate() {
            let title = self.paper.sql(&format!("SELECT title FROM news WHERE id = {}", at + 1));
            shows(pagewell, path, &format!("title={}", title.trim_end()));
        }
        stored(pagewell, PAGES[0]);
        self.title(1, "followed on");
        shows(pagewell, PAGES[0], "title=followed on");
    }
}

#[test]
fn a_killed_process_restores_pages_and_misses_no_change() {
    let kept = SnapshotSite::new();
    let mut pagewell = kept.serve_warm("");
    kept.is_warm(&pagewell, 3);
    // Applied, but not in a snapshot; the server receives repeated confirmations.
    kept.title(3, "drei");
    shows(&pagewell, PAGES[2], "title=drei");
    stored(&pagewell, PAGES[2]);
    for _ in 0..2 {
        kept.paper.sql("INSERT INTO comments (news_id) VALUES (2)");
        kept.is_heard();
    }
    pagewell.kill();
    // A change while no process is running.
    kept.title(1, "eins");
    let mut pagewell = kept.serve_warm("");
    kept.is_warm(&pagewell, 1);
    assert!(is_hit(&get(&pagewell, PAGES[1])), "what nobody changed is there");
    assert_eq!(get(&pagewell, PAGES[0]).text(), "title=eins");
    assert_eq!(get(&pagewell, PAGES[2]).text(), "title=drei");

    // The server stops while Pagewell needs its log: it does not wait for Pagewell, and discards nothing.
    let mut kept = kept;
    kept.is_heard();
    let stopped = kept.paper.database.stop();
    assert!(matches!(stopped, Some(StopResult::Ended(_))), "{stopped:?}");
    kept.paper.database.start_again().expect("PostgreSQL starts again");
    kept.title(2, "zwei");
    shows(&pagewell, PAGES[1], "title=zwei");
    stored(&pagewell, PAGES[1]);
    kept.is_heard();
    pagewell.kill();
    let pagewell = kept.serve_warm("");
    kept.is_warm(&pagewell, 0);
    PAGES.iter().zip(["eins", "zwei", "drei"]).for_each(|(path, title)| {
        assert_eq!(get(&pagewell, path).text(), format!("title={title}"));
    });
}

#[test]
fn a_publication_altered_without_a_reader_is_a_gap() {
    let kept = SnapshotSite::new();
    for sql in ["DROP TABLE news", "ADD TABLE news"] {
        kept.title(2, sql);
        kept.paper.sql(&format!("ALTER PUBLICATION pagewell {sql}"));
    }
    let pagewell = kept.serve_warm("");
    kept.is_cold(&pagewell, "another-server");
}

#[test]
fn a_definition_changed_and_changed_back_without_a_reader_is_a_gap() {
    let kept = SnapshotSite::new();
    kept.paper
        .sql("BEGIN; ALTER TABLE news DROP seen; ALTER TABLE news ADD seen int DEFAULT 5; COMMIT");
    let pagewell = kept.serve_warm("");
    kept.is_cold(&pagewell, "another-server");
}

#[test]
fn definitions_that_changed_during_the_run_are_no_gap() {
    let kept = SnapshotSite::new();
    let mut pagewell = kept.serve_warm("");
    kept.is_warm(&pagewell, 3);
    kept.paper.sql("ALTER TABLE news ADD COLUMN lead text; TRUNCATE comments");
    // The definitions are queried again after the change was detected.
    until("it is seen", || !is_hit(&get(&pagewell, PAGES[1])));
    stored(&pagewell, PAGES[0]);
    let active = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active";
    let looked = counter(&pagewell, "database_transactions");
    kept.paper.sql("INSERT INTO comments (news_id) VALUES (2)");
    until("it is applied", || counter(&pagewell, "database_transactions") > looked);
    kept.is_heard();
    until("it is cut", || kept.paper.sql(active).trim() == "t");
    kept.title(1, "eins");
    shows(&pagewell, PAGES[0], "title=eins");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
    stored(&pagewell, PAGES[0]);
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(acceptance::BOUND), Wait::Ended(status) if status.success()));
    let pagewell = kept.serve_warm("");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
    assert!(is_hit(&get(&pagewell, PAGES[0])), "{}", pagewell.log());
}

#[test]
fn the_log_kept_for_a_snapshot_is_limited() {
    let kept = SnapshotSite::new();
    let mut pagewell = kept.serve_warm("keep_log = \"64K\"");
    kept.is_warm(&pagewell, 3);
    kept.paper.sql("INSERT INTO comments (news_id, body) SELECT 2, repeat('x', 1000) FROM generate_series(1, 500)");
    until("it is let go of", || pagewell.log().contains("database-log-released"));
    kept.is_heard();
    pagewell.kill();
    kept.title(1, "eins");
    let pagewell = kept.serve_warm("keep_log = \"64K\"");
    kept.is_cold(&pagewell, "slot-ahead");
}

#[test]
fn without_the_slot_no_page_is_restored() {
    let kept = SnapshotSite::new();
    kept.serve_warm("").kill();
    let drop = "SELECT pg_drop_replication_slot('pagewell')";
    until("the slot is dropped", || kept.paper.database.sql_in("paper", drop).is_ok());
    kept.title(1, "unheard");
    let pagewell = kept.serve_warm("");
    kept.is_cold(&pagewell, "slot-ahead");
}

/// Copies a server's data while it is stopped.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp runs").success());
}

#[test]
fn another_server_or_timeline_is_a_gap() {
    let mut kept = SnapshotSite::new();
    // Promoted: the same data, with its own history from here on.
    kept.paper.database.stop();
    let signal = kept.paper.database.data_dir().join("standby.signal");
    std::fs::write(&signal, "").expect("it is written");
    kept.paper.database.start_again().expect("PostgreSQL starts as a standby");
    kept.paper.database.sql("SELECT pg_promote()").expect("it is promoted");
    kept.title(1, "promoted");
    let mut pagewell = kept.serve_warm("");
    kept.is_cold(&pagewell, "another-server");
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(acceptance::BOUND), Wait::Ended(status) if status.success()));

    // Another server with the same tables answers at its address.
    let data = kept.paper.database.data_dir().to_owned();
    kept.paper.database.stop();
    let dir = PrivateDir::temporary("pgother").expect("a directory");
    let options = PostgresOptions { identity: Identity::Own, ..Default::default() };
    let mut other = Paper::with(options, TABLES);
    other.database.stop();
    copy(other.database.data_dir(), &dir.path().join("data"));
    std::fs::remove_dir_all(&data).expect("it goes");
    copy(&dir.path().join("data"), &data);
    kept.paper.database.start_again().expect("PostgreSQL starts");
    kept.title(2, "other");
    let pagewell = kept.serve_warm("");
    kept.is_cold(&pagewell, "another-server");
}

#[test]
fn a_restored_server_is_a_gap() {
    let mut kept = SnapshotSite::new();
    let data = kept.paper.database.data_dir().to_owned();
    let before = data.with_file_name("before");
    kept.paper.database.stop();
    copy(&data, &before);
    kept.paper.database.start_again().expect("PostgreSQL starts again");
    let pagewell = kept.serve_warm("lag_max = \"60s\"");
    kept.is_warm(&pagewell, 3);
    kept.title(1, "of a future");
    kept.paper.sql("INSERT INTO comments (news_id, body) SELECT 2, repeat('x', 1000) FROM generate_series(1, 500)");
    shows(&pagewell, PAGES[0], "title=of a future");
    stored(&pagewell, PAGES[0]);
    kept.is_heard();
    // Like a restored disk image.
    kept.paper.database.stop();
    copy(&before, &data);
    kept.paper.database.start_again().expect("PostgreSQL starts again");
    shows(&pagewell, PAGES[0], "title=one");
    kept.is_gap(&pagewell, "server-behind");
}
