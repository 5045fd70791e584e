//! A trial as an operator sees it: visitors get the answers of the origin, the command reports what would have been
//! wrong and says when the site is safe, and the record outlives the process.
//!
//! The classes of differences and the causes are tested by the gallery (`audit`), privacy by `privacy`.

use acceptance::{Site, binary, client, is_hit, until};
use harness::{Address, Pagewell, Request};
use serde_json::Value;
use std::process::Command;

const RIGHT: &str =
    "<?php header('Cache-Control: max-age=600'); echo '<p>page ', $_GET['n'] ?? '', '</p>';";
/// A page that shows the currency of its visitor, and says that it is for everybody.
const LEAK: &str = "<?php header('Cache-Control: public, max-age=600'); echo '<p>', $_COOKIE['currency'] ?? 'EUR', '</p>';";

/// The configuration of a trial whose record is kept.
pub(crate) fn config(site: &Site) -> String {
    format!(
        "mode = \"trial\"\nphp.children = 4\n[trial]\nbudget = \"100%\"\n[snapshot]\ndirectory = {:?}\n\
         unwatched = \"serve\"\n",
        site.at("snapshots")
    )
}

/// The output of `pagewell trial`, and its exit status.
fn command(pagewell: &Pagewell, more: &[&str]) -> (String, i32) {
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
    let mut pagewell = site.serve(&config(&site));
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
    assert!(status.contains("trial-running") && status.contains("Not safe"), "{status}");
    pagewell.stop();

    let mut pagewell = site.serve(&config(&site));
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
