//! A trial as an operator sees it: visitors get the answers of the origin, the command reports what would have been
//! wrong and says when the site is safe, and the record outlives the process.
//!
//! The classes of differences and the causes are tested by the gallery (`audit`), privacy by `privacy`.

use acceptance::{Site, advance, binary, client, counter, is_hit, until};
use harness::{Address, Pagewell, Request};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const RIGHT: &str =
    "<?php header('Cache-Control: max-age=600'); echo '<p>page ', $_GET['n'] ?? '', '</p>';";
/// A page that shows the currency of its visitor, and says that it is for everybody.
const LEAK: &str = "<?php header('Cache-Control: public, max-age=600'); echo '<p>', $_COOKIE['currency'] ?? 'EUR', '</p>';";

/// A page that goes on with time, and reads nothing of its visitors.
const CLOCK: &str = "<?php header('Cache-Control: public, max-age=86400'); echo '<p>Weather at ', file_get_contents(__DIR__ . '/now.txt');";

/// A page that counts the visits of its visitor, known by the address, and says that it is for everybody.
const VISITS: &str = "<?php header('Cache-Control: public, max-age=86400'); $left = 'many'; if (str_starts_with($_SERVER['REMOTE_ADDR'], '127.')) { $file = getenv('NOTES') . '/visits'; $left = (int) (@file_get_contents($file) ?: 99); file_put_contents($file, $left - 1); } echo '<p>', $left, ' free articles';";

/// The configuration of a trial whose record is kept.
pub(crate) fn config(site: &Site) -> String {
    format!(
        "mode = \"trial\"\nphp.children = 4\n[trial]\nbudget = \"100%\"\n[snapshot]\ndirectory = {:?}\n\
         unwatched = \"serve\"\n",
        site.at("snapshots")
    )
}

/// The output of `pagewell trial`, and its exit status.
pub(crate) fn command(pagewell: &Pagewell, more: &[&str]) -> (String, i32) {
    let Address::Tcp(admin) = pagewell.admin() else { panic!("a TCP address") };
    let mut command = Command::new(binary());
    command.args(["trial", "--admin", &admin.to_string()]).args(more);
    let output = command.output().expect("it runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code().unwrap_or(-1))
}

/// The report of the only site.
pub(crate) fn report(pagewell: &Pagewell) -> Value {
    let (text, _) = command(pagewell, &["--json"]);
    let mut value: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("JSON: {text}"));
    value["trials"][0].take()
}

pub(crate) fn visit(pagewell: &Pagewell, path: &str, cookie: Option<&str>) {
    let request = Request::get(path);
    let request = match cookie {
        Some(cookie) => request.header("Cookie", cookie),
        None => request,
    };
    let response = client(pagewell).host("a.test").send(&request).expect("an answer");
    assert_eq!(response.status, 200, "{path}");
    assert!(!is_hit(&response), "{path}: a visitor gets the answer of the origin");
}

#[test]
fn a_site_is_safe_or_not_and_its_record_outlives_the_process() {
    let site = Site::new(&[("right.php", RIGHT), ("leak.php", LEAK)]);
    // The record is kept also where no page is.
    let config = config(&site).replace("unwatched = \"serve\"", "unwatched = \"drop\"");
    let mut pagewell = site.serve(&config);
    let (text, status) = command(&pagewell, &[]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("Not enough yet: 0 of 300 versions of pages"), "{text}");

    until("enough is compared", || {
        (0..320).for_each(|n| visit(&pagewell, &format!("/right.php?n={n}"), None));
        report(&pagewell)["outcome"] == "safe"
    });
    let (text, status) = command(&pagewell, &[]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("Safe to turn on: "), "{text}");

    until("the leak is found", || {
        visit(&pagewell, "/leak.php", Some("currency=GBP"));
        visit(&pagewell, "/leak.php", None);
        report(&pagewell)["outcome"] == "not-safe"
    });
    let (text, status) = command(&pagewell, &[]);
    assert_eq!(status, 1, "{text}");
    for part in ["/leak.php", "cookie `currency`", "Not safe: 1 problem."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let before = report(&pagewell);
    let problem = &before["problems"][0];
    let named = ["url", "class", "cause"].map(|name| problem[name].as_str().unwrap_or_default());
    assert_eq!(named, ["/leak.php", "leak", "differs by cookie `currency`"]);
    let Address::Tcp(admin) = pagewell.admin() else { panic!("a TCP address") };
    let status = Command::new(binary()).args(["status", "--admin", &admin.to_string()]).output();
    let status = String::from_utf8_lossy(&status.expect("it runs").stdout).into_owned();
    let first = "Visitors are well, but the trial is not safe: 1 problem.\n\ntrial-running (";
    assert!(status.starts_with(first) && status.contains("Not safe"), "{status}");
    pagewell.stop();

    let mut pagewell = site.serve(&config);
    until("the record is read", || report(&pagewell)["requests"] == before["requests"]);
    let after = report(&pagewell);
    for name in ["since", "compared", "versions", "problems", "sentence"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    let (text, status) = command(&pagewell, &["--restart"]);
    assert_eq!((text.trim(), status), ("a new record begins: the site", 0));
    assert_eq!(report(&pagewell)["requests"], 0);
    pagewell.stop();
    let (text, status) = command(&site.serve(""), &[]);
    assert!(text.contains("mode = \"trial\""), "{text}");
    assert_eq!(status, 3);
}

#[test]
fn a_page_that_follows_the_clock_is_no_leak_whatever_cookies_its_visitors_have() {
    let site = Site::new(&[("clock.php", CLOCK)]);
    let turn = |moment: &str| {
        let next = site.file("next.txt", moment);
        std::fs::rename(next, site.root().join("now.txt")).expect("it is replaced");
    };
    turn("1");
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n");
    let answers = || counter(&pagewell, "trial_answers");
    for count in 1..=2 {
        visit(&pagewell, "/clock.php", Some("currency=EUR"));
        until("it is compared", || answers() == count);
    }
    turn("2");
    let before = counter(&pagewell, "audit_renders");
    visit(&pagewell, "/clock.php", Some("currency=USD"));
    until("the samples are taken", || {
        let is_last = counter(&pagewell, "audit_renders") >= before + 6;
        is_last && counter(&pagewell, "origin_places_taken") == 0
    });
    // The clock of the page is slower than the page was old: it goes on before the last sample.
    turn("3");
    until("the page is judged", || {
        std::thread::sleep(Duration::from_millis(100));
        advance(&pagewell, 1);
        answers() == 3
    });
    let report = report(&pagewell);
    let problems = report["problems"].as_array().expect("a list");
    let classes: Vec<&Value> = problems.iter().map(|problem| &problem["class"]).collect();
    assert_eq!(classes, ["by-the-clock"], "{report}");
}

#[test]
fn a_page_that_counts_the_visits_of_its_visitor_is_a_leak() {
    let site = Site::new(&[("visits.php", VISITS)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n");
    for count in 1..=2 {
        visit(&pagewell, "/visits.php", None);
        // A comparison may wait for a later second of the clock.
        until("it is compared", || {
            std::thread::sleep(Duration::from_millis(100));
            advance(&pagewell, 1);
            counter(&pagewell, "trial_answers") == count
        });
    }
    let report = report(&pagewell);
    let problems = report["problems"].as_array().expect("a list");
    let named = |name: &str| problems.iter().map(|one| one[name].clone()).collect::<Vec<_>>();
    assert_eq!(
        (named("class"), named("cause")),
        (vec!["leak".into()], vec!["cause unknown".into()])
    );
}
