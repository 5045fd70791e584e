//! The record of a trial at a zero-downtime restart: it goes on, and has one writer at a time.
//!
//! A save that is in progress while a process leaves is tested in `trial-record`.
//! Not here: what is counted.

use super::{Story, ended, ends_prepared};
use acceptance::{client, trial_report, until};
use harness::{Pagewell, Request};

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
    assert_eq!(next.times_logged("trial-not-saved"), 0, "{}", next.log());
    let last = story.serve();
    assert_eq!(requests(&last), 3, "{}", last.log());
}
