//! The remedies of a trial's report: the line of the configuration that a remedy names ends its problem.
//!
//! Small applications of the gallery (`audit`) are visited until each has its problem. The lines are taken from the
//! report as they stand there, and written into the configuration. The classes and causes are tested by `trial`.

use crate::audit::gallery;
use acceptance::{Site, advance, counter, trial_report, until};
use harness::{Client, Pagewell, Request};
use serde_json::Value;
use std::fs;

/// Applications of the gallery with one fault each, and the beginning of the line that helps.
const MENDED: [(&str, &str); 4] = [
    ("by-currency", "vary_cookies"),
    ("by-device", "device_classes"),
    ("loses-utm", "keys.keep"),
    ("life-file", "trial.accept"),
];
/// The application whose data change.
const AGED: &str = "life-file";
/// Requests to an application until it has its problem.
const REQUESTS_MAX: usize = 50;
/// Requests that compare the pages of all kinds of visitors.
const ROUND: usize = 12;
const TRIAL: &str = "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n";

/// The problem of an application, if it is reported.
fn problem(pagewell: &Pagewell, name: &str) -> Option<Value> {
    let url = format!("/{name}.php");
    let report = trial_report(pagewell);
    let mut problems = report["problems"].as_array().expect("a list").iter();
    let is_of_it = |problem: &&Value| {
        // The names of parameters may follow.
        let found = problem["url"].as_str().expect("a URL");
        found.split('?').next() == Some(url.as_str())
    };
    problems.find(is_of_it).cloned()
}

/// A request of the visitor with this number; then the minute ends for which the page is watched.
fn visit(pagewell: &Pagewell, name: &str, number: usize) {
    crate::trial::visit(pagewell, name, number);
    let is_watched = || counter(pagewell, "audit_watched") > 0;
    if is_watched() {
        advance(pagewell, 61);
        until("its watch ends", || !is_watched());
    }
}

/// Visits an application until its problem is reported. Returns the problem.
fn found(pagewell: &Pagewell, name: &str) -> Value {
    for number in 1..REQUESTS_MAX {
        visit(pagewell, name, number);
        if let Some(problem) = problem(pagewell, name) {
            return problem;
        }
    }
    panic!("{name}: {}", trial_report(pagewell));
}

/// The line of a remedy with this beginning, and whether it belongs into a rule for the path. Lines are in back-quotes.
fn helping_line<'r>(remedy: &'r str, begin: &str) -> (&'r str, bool) {
    let mut lines = remedy.split('`').skip(1).step_by(2);
    let line = lines.find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("no {begin}: {remedy}"));
    (line, remedy.contains(&format!("`{line}` in a rule for this path")))
}

fn reload(pagewell: &Pagewell) {
    let call = Request::new("POST", "/v1/reload")
        .header("Content-Type", "application/json")
        .content(b"{}");
    let mut admin = Client::new(pagewell.admin().clone()).host("localhost");
    let answer = admin.send(&call).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn the_line_that_a_remedy_names_ends_its_problem() {
    let site = Site::new(&[]);
    for application in gallery() {
        if MENDED.iter().any(|(name, _)| *name == application.name) {
            site.file(&format!("{}.php", application.name), &application.script);
        }
    }
    let pagewell = site.serve(TRIAL);
    for (name, _) in MENDED {
        (0..2).for_each(|_| visit(&pagewell, name, 0));
    }
    advance(&pagewell, 11);
    let data = site.at("notes").join(format!("data-{AGED}.php"));
    fs::write(&data, "").expect("a note can be left");
    let (mut lines, mut rules) = (String::new(), String::new());
    for (name, begin) in MENDED {
        let problem = found(&pagewell, name);
        let remedy = problem["remedy"].as_str().expect("a text");
        let (line, is_of_rule) = helping_line(remedy, begin);
        if is_of_rule {
            rules.push_str(&format!("[[rule]]\npath = \"/{name}.php\"\n{line}\n"));
        } else {
            lines.push_str(&format!("{line}\n"));
        }
    }
    // Other rules purge all pages, and begin a new record.
    fs::remove_file(&data).expect("it was left");
    site.config(&format!("{TRIAL}{lines}{rules}"), "");
    reload(&pagewell);
    let compared = || trial_report(&pagewell)["compared"].as_u64().expect("a number");
    for (name, begin) in MENDED {
        let before = compared();
        (0..ROUND).for_each(|number| visit(&pagewell, name, number));
        assert!(compared() > before, "{name}: {}", trial_report(&pagewell));
        assert_eq!(problem(&pagewell, name), None, "{begin}");
    }
    // The data change once more: this is found again.
    advance(&pagewell, 11);
    fs::write(&data, "").expect("a note can be left");
    assert_eq!(found(&pagewell, AGED)["is_accepted"], true);
    assert_eq!(trial_report(&pagewell)["outcome"], "not-enough", "{}", trial_report(&pagewell));
}
