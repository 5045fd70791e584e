//! Scenarios that must fail, and their reports: a test language that cannot fail proves nothing.

use scenario::passthrough::PassThrough;
use scenario::{Ending, Failure, WAIT, parse_story, run_dir, run_story_within};
use std::time::Duration;

const ORIGIN: &str = "title t\norigin\n  GET /a -> 200  etag: \"1\" | one\n  GET /h -> hold g 200 | held\n  GET /hang -> hang\n  GET /cut -> cut 200 | half\n";
/// The timeouts of waits for things that never come. Things that have to come need the longer ones on a busy machine.
const WAITS: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(3), WAIT];

/// Runs `steps` with the rules above and this wait timeout. The scenario must fail.
fn fails(steps: &str, wait: Duration) -> Failure {
    let story = parse_story("t.scn", &format!("{ORIGIN}{steps}\n")).expect("a story");
    let ran = run_story_within(&story, &PassThrough::start, wait);
    ran.expect_err(&format!("the story went well: {steps}"))
}

#[track_caller]
fn fails_with(steps: &str, expected: &str, got: &str) {
    for wait in WAITS {
        let failure = fails(steps, wait);
        let mut wrong = failure.wrong.iter();
        if wrong.any(|w| w.expected.contains(expected) && w.got.contains(got)) {
            return;
        }
        assert!(wait < WAIT, "{failure}");
    }
}

#[test]
fn each_part_of_an_expectation_can_fail() {
    fails_with("get /a => 404", "status 404", "status 200");
    fails_with("get /a => 5xx", "5xx", "status 200");
    fails_with("get /a => none", "no answer", "status 200");
    fails_with("get /a => 200 | two", "content | two", "content | one");
    fails_with("get /a => 200 | ~tw", "with | tw", "one");
    fails_with("get /a => 200 | !~on", "without | on", "one");
    fails_with("get /a => 200 |", "content | ", "content | one");
    fails_with("get /a => 200  etag: \"2\"", "etag: \"2\"", "etag: \"1\"");
    fails_with("get /a => 200  age", "age", "no age");
    fails_with("get /a => 200  !etag", "no etag", "etag: \"1\"");
    fails_with("get /a => 200  etag~x", "etag with x", "\"1\"");
    fails_with("get /a => 200 ; hit", "hit", "passthrough; fwd=bypass");
    fails_with("get /a => 200 ; fwd=stale", "fwd=stale", "fwd=bypass");
    fails_with("get /a => 200 ; !fwd", "no fwd", "fwd=bypass");
    fails_with("get /a => 200 ; ttl=10", "ttl=10", "fwd=bypass");
    fails_with("get /a => 200 ; set-cookie", "detail=set-cookie", "fwd=bypass");
    fails_with("get /a => 200 interim", "interim", "none");
    fails_with("get /a => 200 cut", "cut off", "announced end");
    fails_with("get /a => 200 closed", "connection closed", "bound");
}

#[test]
fn all_errors_are_reported_at_once() {
    let failure = fails("get /a => 404  age | two ; hit", WAIT);
    assert_eq!(failure.wrong.len(), 4, "{failure}");
}

#[test]
fn the_origin_and_the_control_interface_are_judged() {
    fails_with("get /a => 200\norigin saw 2", "saw 2 requests", "GET /a");
    fails_with("get /a => 200\norigin saw 0 GET /a", "saw 0 GET /a", "1;");
    fails_with("get /a => 200\norigin last x: y", "x: y", "no x");
    fails_with("origin last GET /a  x: y\nget /a => 200", "GET /a", "it saw");
    fails_with("get /a => 200\nstat requests=2", "requests=2", "requests=1");
    fails_with("stat requests=2", "requests=2", "requests=0");
    fails_with("stat nothing=2", "nothing=2", "no such number");
    fails_with("invalidate tag a => 1", "1 dropped", "0 dropped");
    fails_with("admin GET /x => 200", "status 200", "status 404");
    fails_with("origin down\nget /a => 200", "status 200", "status 502");
}

#[test]
fn waits_are_bounded_and_name_their_condition() {
    fails_with("c1: get /hang &\nawait c1 => 200", "an answer", "none came to c1");
    fails_with("get /hang => 200", "an answer", "nothing came");
    fails_with("await origin g\nget /a => 200", "1 waiting at the hold g", "0 waiting");
    fails_with("await get /a => 200 | two", "content | two", "content | one");
    fails_with("origin saw 1\nget /a => 200", "saw 1", "0;");
}

#[test]
fn a_request_without_a_rule_fails_the_story() {
    fails_with("get /other => *", "a rule for", "GET /other");
}

#[test]
fn a_kept_value_must_stay() {
    fails_with("get /a => 200  etag: {$e}\nget /a => 200  cache-status: {$e}", "\"1\"", "bypass");
    fails_with("get /a  x: {$never} => 200", "filled in", "{$never}");
}

#[test]
fn the_message_has_file_line_and_transcript() {
    let text = fails("get /a => 200 | one\nget /a => 200 | two", WAIT).to_string();
    for part in [
        "t.scn:8: get /a => 200 | two",
        "expected  content | two",
        "got       content | one",
        "  7  get /a => 200 | one",
        "origin: GET /a HTTP/1.1: answered by line 3",
        "came: 200 | one ; passthrough; fwd=bypass",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn a_subject_that_does_not_start_or_end_fails_the_story() {
    let story = parse_story("t.scn", "title t\nstat requests=0\n").unwrap();
    let failure = run_story_within(&story, &|_| Err("no port".into()), WAIT).unwrap_err();
    assert!(failure.to_string().contains("no port"), "{failure}");
}

#[test]
fn a_parse_error_names_its_line() {
    for (text, line, part) in [
        ("title t\nget /a => 200\nfoo\n", 3, "foo"),
        ("get /a => 200\n", 1, "none"),
        ("title t\norigin\n  GET /a -> 200\n", 1, "none"),
        ("title t\n  GET /a -> 200\n", 2, "indented"),
        ("title t\nrelease g9\n", 2, "g9"),
        ("title t\nc1: get /a &\nget /a => 200\n", 1, "c1"),
        ("title t\nawait c1 => 200\n", 2, "c1"),
        ("title t\nget /a => 200\nconfig | x = 1\n", 3, "after the first step"),
        ("title t\nget /{9 byte} => 200\n", 2, "9 byte"),
        ("title t\npending\nget /a => 200\n", 2, "none"),
    ] {
        let error = parse_story("t.scn", text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_runner_tells_passed_failed_and_pending_apart() {
    let dir = std::env::temp_dir().join(format!("scenario-runner-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for (name, text) in [
        ("a.scn", "title t\nstat requests=0\n"),
        ("b.scn", "title t\nstat nothing=1\n"),
        ("c.scn", "title t\npending not yet\nstat nothing=1\n"),
        ("d.scn", "title t\npending no more\nstat requests=0\n"),
        ("e.scn", "no story\n"),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let summary = run_dir(&dir, &PassThrough::start);
    std::fs::remove_dir_all(&dir).unwrap();
    let letters: String = summary
        .stories
        .iter()
        .map(|(_, ending)| match ending {
            Ending::Passed => 'P',
            Ending::Failed(_) => 'F',
            Ending::Pending(_) => 'p',
            Ending::Skipped => 's',
        })
        .collect();
    assert_eq!(letters, "PFpFF", "{summary}");
    let text = summary.to_string();
    assert!(text.ends_with("scenarios: 1 passed, 3 failed, 1 pending"), "{text}");
}
