//! Faults of the stream: cut in the middle of an event, delayed until it is too far behind, a transaction
//! larger than the limit; and positions that are not GTIDs.

use super::{
    Pagewell, Paper, RULES, config_by, counter, get, interrupt, is_hit, proxy, shows, stored,
};
use acceptance::{advance, cache_status, trial_report, until};
use harness::{Client, numbers};
use std::sync::atomic::Ordering;

#[test]
fn a_stream_cut_inside_an_event_is_resumed() {
    let (paper, port) = Paper::over_tcp(&[]);
    let (port, control) = proxy::before(port);
    let url = format!("mysql://follower:secret@127.0.0.1:{port}/paper");
    let pagewell = paper.serve_by(&url, "on_lag = \"serve\"");
    // An event of a row of 50 kB: each cut is inside it.
    for (round, bytes) in [200, 5_000, 20_000, 45_000, 50_100].into_iter().enumerate() {
        stored(&pagewell, "/thread.php?id=1");
        control.cut_after(bytes);
        paper.sql("INSERT INTO comments (news_id, body) VALUES (1, REPEAT('x', 50000))");
        shows(&pagewell, "/thread.php?id=1", &format!("comments={}", round + 1));
        until("it was cut", || control.cuts.load(Ordering::SeqCst) == round + 1);
    }
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}

#[test]
fn a_stream_that_lags_too_far_closes_the_gate() {
    let (paper, port) = Paper::over_tcp(&[]);
    let (port, control) = proxy::before(port);
    let url = format!("mysql://follower:secret@127.0.0.1:{port}/paper");
    let pagewell = paper.serve_by(&url, "lag_max = \"1s\"");
    stored(&pagewell, "/show.php?id=1");
    control.hold();
    paper.sql("UPDATE news SET title = 'behind' WHERE id = 1");
    // The connection is open but silent: pages are purged nevertheless, and none is stored.
    until("pages are dropped, and none is stored", || {
        (0..2).all(|_| !is_hit(&get(&pagewell, "/plain.php")))
    });
    until("it is logged", || pagewell.log().contains("database-behind"));
    control.release();
    shows(&pagewell, "/show.php?id=1", "title=behind");
    stored(&pagewell, "/show.php?id=1");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
    // The lag exceeded one second for at least one transaction, and others were faster.
    until("it is measured", || lags(&pagewell, "+Inf") > lags(&pagewell, "1"));
    until("others are measured", || lags(&pagewell, "1") > 0);
    assert!(counter(&pagewell, "database_lag_max_us") >= 1_000_000);
}

#[test]
fn an_audit_has_no_verdict_while_a_database_cannot_be_followed_and_says_so() {
    let (paper, port) = Paper::over_tcp(&[]);
    let (port, control) = proxy::before(port);
    let url = format!("mysql://follower:secret@127.0.0.1:{port}/paper");
    let config = config_by(&url, "on_lag = \"serve\"", RULES);
    let pagewell = paper.site.serve(&format!("audit = \"1 in 1\"\n{config}"));
    stored(&pagewell, "/show.php?id=1");
    until("it is compared", || counter(&pagewell, "audit_compared") > 0);
    control.hold();
    paper.sql("UPDATE news SET title = 'behind' WHERE id = 1");
    let before = counter(&pagewell, "audit_renders");
    assert!(is_hit(&get(&pagewell, "/show.php?id=1")));
    until("it is compared again", || counter(&pagewell, "audit_renders") > before);
    until("there is no verdict", || {
        advance(&pagewell, 61);
        counter(&pagewell, "audit_unjudged") == 1
    });
    let status = Client::new(pagewell.admin().clone()).get("/v1/status").expect("an answer").text();
    assert!(status.contains("\"without_verdict\":{\"not-settled\":1}"), "{status}");
    control.release();
    shows(&pagewell, "/show.php?id=1", "title=behind");
    assert_eq!(counter(&pagewell, "audit_suspected"), 0, "{}", pagewell.log());
}

#[test]
fn a_trial_has_no_verdict_while_a_database_cannot_be_followed_and_stops_no_visitor() {
    let (paper, port) = Paper::over_tcp(&[]);
    let (port, control) = proxy::before(port);
    let url = format!("mysql://follower:secret@127.0.0.1:{port}/paper");
    let trial = "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n";
    let config = config_by(&url, "on_lag = \"serve\"", RULES);
    let pagewell = paper.site.serve(&format!("{trial}{config}"));
    let path = "/show.php?id=1";
    let report = || trial_report(&pagewell);
    stored_in_trial(&pagewell, &[path]);
    visit(&pagewell, path);
    assert!(report()["compared"].as_u64() > Some(0), "{}", report());
    control.hold();
    paper.sql("UPDATE news SET title = 'behind' WHERE id = 1");
    let before = counter(&pagewell, "audit_renders");
    assert_eq!(get(&pagewell, path).text(), "title=behind");
    until("it is looked into", || counter(&pagewell, "audit_renders") > before);
    until("there is no verdict", || {
        advance(&pagewell, 61);
        report()["unjudged"]["not-settled"].as_u64() == Some(1)
    });
    assert_eq!((&report()["problems"], get(&pagewell, path).status), (&serde_json::json!([]), 200));
    control.release();
    shows(&pagewell, path, "title=behind");
}

#[test]
fn a_trial_finds_a_column_that_reports_no_change_and_nothing_else() {
    let paper = Paper::new(&[]);
    // Titles are not followed.
    let rules = RULES.replace("\"title\"", "\"seen\"");
    let config = paper.config("", &rules);
    let pagewell =
        paper.site.serve(&format!("mode = \"trial\"\ntrial.budget = \"100%\"\n{config}"));
    let [show, thread] = ["/show.php?id=1", "/thread.php?id=3"];
    stored_in_trial(&pagewell, &[show, thread]);
    paper.sql("INSERT INTO comments (news_id, body) VALUES (3, 'second')");
    until("the row purges its page", || !is_stored(&pagewell, thread));
    assert_eq!(visit(&pagewell, thread), "comments=2");
    // Younger pages may be those of their first visitors.
    advance(&pagewell, 11);
    paper.sql("UPDATE news SET title = 'uno' WHERE id = 1");
    let report = || trial_report(&pagewell)["problems"].as_array().expect("a list").clone();
    until("the page is found", || {
        assert_eq!(visit(&pagewell, show), "title=uno");
        visit(&pagewell, thread);
        advance(&pagewell, 61);
        !report().is_empty()
    });
    let found = report();
    let cause = found[0]["cause"].as_str().unwrap_or_default();
    let is_named = found[0]["class"] == "broken-promise" && cause.contains("tag `news:1`");
    assert!(found.len() == 1 && is_named, "{found:?}");
}

/// Sends a request of a visitor in a trial, and waits until its answer is compared. Returns its text.
fn visit(pagewell: &Pagewell, path: &str) -> String {
    let before = counter(pagewell, "trial_answers");
    let answer = get(pagewell, path);
    assert!(!is_hit(&answer), "{path}");
    until("it is compared", || counter(pagewell, "trial_answers") > before);
    answer.text()
}

/// Visits the pages until a trial has stored all of them.
fn stored_in_trial(pagewell: &Pagewell, paths: &[&str]) {
    // Nothing is stored until the database is followed; such a page is left alone for ten minutes.
    until("the pages are stored", || {
        paths.iter().for_each(|path| (0..2).for_each(|_| drop(visit(pagewell, path))));
        let are_stored = paths.iter().all(|path| is_stored(pagewell, path));
        if !are_stored {
            advance(pagewell, 601);
        }
        are_stored
    });
}

fn is_stored(pagewell: &Pagewell, path: &str) -> bool {
    let call = serde_json::json!({ "url": format!("http://paper.test{path}") }).to_string();
    let told = pagewell.explain(&call).expect("an explanation");
    told.to_string().contains("it would be a hit")
}

/// The number of measured lags up to this bound.
fn lags(pagewell: &Pagewell, bound: &str) -> u64 {
    let metrics = Client::new(pagewell.admin().clone()).get("/metrics").expect("an answer").text();
    let name = format!("pagewell_database_lag_histogram_seconds_bucket{{le=\"{bound}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{name}: {metrics}"))
}

#[test]
fn no_page_is_stored_until_a_change_is_visible_to_all() {
    let (paper, port) = Paper::over_tcp(&[]);
    let (port, control) = proxy::before(port);
    let url = format!("mysql://follower:secret@127.0.0.1:{port}/paper");
    let pagewell = paper.serve_by(&url, "");
    let path = "/show.php?id=1";
    stored(&pagewell, path);
    // The database does not confirm which changes are visible to all: some sessions may still see the old row.
    control.hold_snapshots();
    paper.sql("UPDATE news SET title = 'open' WHERE id = 1");
    shows(&pagewell, path, "title=open");
    let refused = counter(&pagewell, "store_refused");
    for _ in 0..3 {
        let page = get(&pagewell, path);
        assert!(!is_hit(&page) && cache_status(&page).contains("unsettled"), "{page:?}");
    }
    assert_eq!(counter(&pagewell, "store_refused"), refused + 3);
    stored(&pagewell, "/show.php?id=2");
    control.release();
    stored(&pagewell, path);
    assert_eq!(get(&pagewell, path).text(), "title=open");
}

#[test]
fn a_huge_transaction_purges_its_tables_and_is_not_held() {
    let paper = Paper::new(&[]);
    let pagewell = paper.serve("");
    let rows = numbers(1, 300_000);
    paper.sql(&format!("INSERT INTO comments (news_id, body) SELECT 1, 'first' FROM {rows}"));
    shows(&pagewell, "/thread.php?id=1", "comments=300000");
    until("it is applied", || counter(&pagewell, "database_changes") >= 1);
    for path in ["/thread.php?id=2", "/show.php?id=1", "/plain.php"] {
        stored(&pagewell, path);
    }
    let before = pagewell.rss_bytes();
    // Rows before and after: more than twice the limit.
    paper.sql("UPDATE comments SET body = REPEAT('second', 8) WHERE news_id = 1");
    until("any thread goes", || !is_hit(&get(&pagewell, "/thread.php?id=2")));
    assert!(is_hit(&get(&pagewell, "/show.php?id=1")) && is_hit(&get(&pagewell, "/plain.php")));
    let grown = pagewell.rss_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more for one transaction");
    let log = pagewell.log();
    assert!(log.contains("database-large") && log.contains("comments"), "{log}");
}

#[test]
fn a_stream_can_be_followed_by_file_and_offset() {
    let mut paper = Paper::new(&[]);
    paper.grant_positions();
    let url = format!("{}&position=file", paper.url());
    let pagewell = paper.serve_by(&url, "on_lag = \"serve\"");
    let path = "/show.php?id=1";
    stored(&pagewell, path);
    paper.sql("UPDATE news SET title = 'first' WHERE id = 1");
    shows(&pagewell, path, "title=first");
    interrupt(&mut paper, &pagewell, path, 3, "FLUSH BINARY LOGS;");
    stored(&pagewell, path);
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}
