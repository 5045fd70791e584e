//! A log that was reset (`RESET MASTER`) or has lost its end reaches the same positions with other
//! transactions: while the stream is followed, while no process reads it, or between two processes. The changes
//! at these positions are unknown, so every page is purged.

use super::{Pagewell, Paper, RULES, config_by, counter, cut, get, is_hit, post, shows, stored};
use acceptance::{BOUND, cache_status, until};
use harness::{Signal, Wait};

const PATH: &str = "/show.php?id=1";

fn gaps(pagewell: &Pagewell) -> u64 {
    counter(pagewell, "database_gaps")
}

/// Changes the title this number of times, the last time to `last`.
fn titles(paper: &Paper, count: u32, last: &str) {
    let one = |n| format!("UPDATE news SET title = '{last}{}' WHERE id = 1;", count - n);
    let all: String = (1..count).map(one).collect();
    paper.sql(&format!("{all} UPDATE news SET title = '{last}' WHERE id = 1"));
}

#[test]
fn a_log_reset_during_a_stream_is_detected() {
    let paper = Paper::new(&[]);
    let pagewell = paper.serve("on_lag = \"serve\"");
    // First with fewer transactions than before; then so that the server, which still reads the old log,
    // continues with the next file.
    let next = "FLUSH BINARY LOGS; UPDATE news SET title = 'further' WHERE id = 3;";
    for (round, more) in ["", next].into_iter().enumerate() {
        titles(&paper, 9, "old");
        shows(&pagewell, PATH, "title=old");
        stored(&pagewell, PATH);
        let before = gaps(&pagewell);
        let anew = format!("UPDATE news SET title = 'anew{round}' WHERE id = 1;");
        paper.sql(&format!("{}; {anew} {more}", paper.database.product().reset_logs()));
        shows(&pagewell, PATH, &format!("title=anew{round}"));
        until("it is a gap", || gaps(&pagewell) > before);
        stored(&pagewell, PATH);
        paper.sql("UPDATE news SET title = 'after' WHERE id = 1");
        shows(&pagewell, PATH, "title=after");
    }
}

#[test]
fn read_your_writes_holds_after_a_log_reset() {
    let paper = Paper::new(&[]);
    let pagewell = paper.serve("on_lag = \"serve\"\nbarrier = \"20s\"");
    for _ in 0..3 {
        titles(&paper, 9, "old");
        shows(&pagewell, PATH, "title=old");
        stored(&pagewell, "/thread.php?id=1");
        let gaps_before = gaps(&pagewell);
        paper.sql(paper.database.product().reset_logs());
        // This transaction is never sent.
        let written = post(&pagewell, "/write.php?id=1");
        let count =
            paper.database.sql_in("paper", "SELECT COUNT(*) FROM comments WHERE news_id = 1");
        let page = get(&pagewell, "/thread.php?id=1");
        assert_eq!(
            page.text(),
            format!("comments={}", count.expect("a count").trim()),
            "{} {}",
            cache_status(&written),
            cache_status(&page)
        );
        until("it is a gap", || gaps(&pagewell) > gaps_before);
        stored(&pagewell, "/thread.php?id=1");
    }
}

/// Locks or unlocks the account that follows, without a log entry.
fn follower_is(paper: &Paper, how: &str) {
    let sql = format!("SET sql_log_bin = 0; ALTER USER follower@localhost ACCOUNT {how}");
    paper.database.sql(&sql).expect("the account is altered");
}

/// Runs `happens` while no process reads, and checks that it is detected afterwards.
fn while_nobody_reads(paper: &mut Paper, url: &str, happens: impl FnOnce(&mut Paper)) {
    let pagewell = paper.serve_by(url, "on_lag = \"serve\"");
    titles(paper, 9, "old");
    shows(&pagewell, PATH, "title=old");
    stored(&pagewell, PATH);
    follower_is(paper, "LOCK");
    cut(paper);
    until("nobody reads", || pagewell.log().to_lowercase().contains("account is locked"));
    happens(paper);
    assert!(is_hit(&get(&pagewell, PATH)), "{}", pagewell.log());
    assert_eq!(gaps(&pagewell), 0, "{}", pagewell.log());
    follower_is(paper, "UNLOCK");
    shows(&pagewell, PATH, "title=anew");
    until("it is a gap", || gaps(&pagewell) == 1);
    stored(&pagewell, PATH);
    paper.sql("UPDATE news SET title = 'after' WHERE id = 1");
    shows(&pagewell, PATH, "title=after");
}

/// More transactions than before: by its positions, the new log contains everything that was read of the old
/// one.
fn begins_anew(paper: &Paper) {
    let reset = paper.database.product().reset_logs();
    paper.sql(&format!("{reset}; UPDATE news SET title = 'anew' WHERE id = 1"));
    let more = "INSERT INTO comments (news_id, body) VALUES (2, REPEAT('x', 500));";
    paper.sql(&more.repeat(60));
}

#[test]
fn a_log_reset_without_a_reader_is_detected() {
    let mut paper = Paper::new(&[]);
    let url = paper.url();
    while_nobody_reads(&mut paper, &url, |paper| begins_anew(paper));
    drop(paper);

    let mut paper = Paper::new(&[]);
    paper.grant_positions();
    let url = format!("{}&position=file", paper.url());
    while_nobody_reads(&mut paper, &url, |paper| begins_anew(paper));
}

/// The result of a machine crash with `sync_binlog=0`.
#[test]
fn a_log_that_has_lost_its_end_is_detected() {
    let mut paper = Paper::new(&[]);
    let url = paper.url();
    while_nobody_reads(&mut paper, &url, |paper| {
        let datadir = paper.database.sql("SELECT @@datadir").expect("a directory");
        let log = std::path::Path::new(datadir.trim()).join("bin.000001");
        paper.database.kill();
        let log = std::fs::OpenOptions::new().write(true).open(log).expect("the log");
        let len = log.metadata().expect("its length").len();
        log.set_len(len - 1000).expect("it is cut");
        paper.database.start_again().expect("MariaDB starts again");
        paper.sql("UPDATE news SET title = 'anew' WHERE id = 1");
        paper.sql(&"INSERT INTO comments (news_id, body) VALUES (2, 'x');".repeat(30));
    });
}

#[test]
fn a_log_reset_between_two_processes_is_detected() {
    let paper = Paper::new(&[]);
    let directory = paper.site.at("snapshots");
    let more = format!("[snapshot]\ndirectory = {directory:?}");
    let serve = || paper.site.serve(&config_by(&paper.url(), &more, RULES));
    let stop = |mut pagewell: Pagewell| {
        pagewell.signal(Signal::TERM);
        assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
    };
    let pagewell = serve();
    stored(&pagewell, PATH);
    stored(&pagewell, "/show.php?id=2");
    stop(pagewell);

    // The log was not replaced: the stored pages are valid, except for one row.
    paper.sql("UPDATE news SET title = 'uno' WHERE id = 1");
    let pagewell = serve();
    until("it is loaded", || pagewell.log().contains("snapshot-loaded"));
    assert!(is_hit(&get(&pagewell, "/show.php?id=2")), "{}", pagewell.log());
    shows(&pagewell, PATH, "title=uno");
    stored(&pagewell, PATH);
    assert_eq!(gaps(&pagewell), 0, "{}", pagewell.log());
    stop(pagewell);

    begins_anew(&paper);
    let pagewell = serve();
    until("it is a gap", || gaps(&pagewell) == 1);
    assert_eq!(get(&pagewell, PATH).text(), "title=anew", "{}", pagewell.log());
    shows(&pagewell, "/thread.php?id=2", "comments=60");
    // The server itself reports an error if no event begins at this position in the new log.
    let is_said = ["log-replaced", "position-gone"].iter().any(|why| pagewell.log().contains(why));
    assert!(is_said, "{}", pagewell.log());
}
