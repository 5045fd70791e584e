//! The records of a trial and an audit at a zero-downtime restart: they go on, and have one writer at a time.
//!
//! A save that is in progress while a process leaves is tested in `trial-record`.
//! Not here: what is counted.

use super::{Story, ended, ends_prepared};
use acceptance::{client, is_hit, trial_report, until};
use harness::{Client, Pagewell, Request};
use serde_json::Value;

fn requests(pagewell: &Pagewell) -> u64 {
    trial_report(pagewell)["requests"].as_u64().expect("a trial")
}

/// Requests the page, and waits until this is counted.
fn visit(pagewell: &Pagewell) {
    let before = requests(pagewell);
    let request = Request::new("GET", "/page.php").header("Host", "a.test");
    assert_eq!(client(pagewell).send(&request).expect("an answer").status, 200);
    until("it is counted", || requests(pagewell) > before);
}

#[test]
fn the_record_of_a_trial_goes_on_after_a_failed_restart_and_one_that_succeeds() {
    let mut story = Story::new();
    story.config = format!("mode = \"trial\"\n{}", story.config);
    let first = story.serve();
    visit(&first);
    // The record is handed over to a process that dies before it takes over.
    ends_prepared(&first);
    visit(&first);
    let mut next = story.take_over(&first);
    ended(first);
    assert_eq!(requests(&next), 2, "{}", next.log());
    visit(&next);
    next.stop();
    assert_eq!(next.times_logged("record-not-saved"), 0, "{}", next.log());
    let last = story.serve();
    assert_eq!(requests(&last), 3, "{}", last.log());
}

/// The comparisons of an audit within a month.
fn audited(pagewell: &Pagewell) -> u64 {
    let status = Client::new(pagewell.admin().clone()).get("/v1/status").expect("an answer");
    let status: Value = serde_json::from_slice(&status.content).expect("JSON");
    status["audit"][0]["month"]["compared"].as_u64().expect("an audit")
}

/// Gets a hit, and waits until it is compared.
fn is_audited(pagewell: &Pagewell) {
    let before = audited(pagewell);
    let request = Request::new("GET", "/page.php").header("Host", "a.test");
    until("a hit", || is_hit(&client(pagewell).send(&request).expect("an answer")));
    until("it is compared", || audited(pagewell) > before);
}

#[test]
fn the_results_of_an_audit_go_on_after_restarts_of_each_kind() {
    let mut story = Story::new();
    story.config = format!("audit = \"1 in 1\"\n{}", story.config);
    let first = story.serve();
    is_audited(&first);
    // The results are handed over to a process that dies before it takes over.
    ends_prepared(&first);
    is_audited(&first);
    let mut next = story.take_over(&first);
    ended(first);
    assert_eq!(audited(&next), 2, "{}", next.log());
    is_audited(&next);
    next.stop();
    assert_eq!(next.times_logged("record-not-saved"), 0, "{}", next.log());
    let last = story.serve();
    assert_eq!(audited(&last), 3, "{}", last.log());
}
