//! A trial of a right application under constant writes: some write is always in flight, and pages are judged all the
//! same. None is reported, and the report says how many comparisons had no verdict.
//!
//! An audit under constant writes is in `tools/torture` (`--audited`).

use crate::trial_report::{report, visit};
use acceptance::{Site, advance, client, counter, until};
use harness::{Pagewell, Request};
use std::sync::atomic::{AtomicBool, Ordering};

/// An item in its last version, with its tag.
const PAGE: &str = r#"<?php
$n = (int) $_GET['n'];
header('Cache-Control: max-age=86400');
header("Cache-Groups: \"item:$n\"");
echo "<p>item $n, version ", @file_get_contents(getenv('NOTES') . "/item-$n") ?: 0;
"#;

/// Writes an item, and says so in the response.
const WRITE: &str = r#"<?php
$n = (int) $_GET['n'];
$file = getenv('NOTES') . "/item-$n";
file_put_contents("$file.new", $_GET['to']);
rename("$file.new", $file);
header("Cache-Group-Invalidation: \"item:$n\"");
echo 'written';
"#;

/// Items that are written in turn.
const ITEMS: usize = 64;
/// Those of them that are visited.
const VISITED: usize = 8;
/// The versions of pages that are compared at the least: more than one of each item, so some were written meanwhile.
const VERSIONS: u64 = 3 * VISITED as u64;
/// Then the writer ends in any case.
const WRITES_MAX: usize = 20_000;

/// Writes without a pause; returns the number of writes.
fn write_until(pagewell: &Pagewell, is_over: &AtomicBool) -> usize {
    let mut client = client(pagewell).host("a.test");
    let mut writes = 0;
    while writes < WRITES_MAX && !is_over.load(Ordering::Relaxed) {
        writes += 1;
        let target = format!("/write.php?n={}&to={writes}", writes % ITEMS);
        let answer = client.send(&Request::form(&target, "")).expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (200, "written"));
    }
    writes
}

#[test]
fn a_right_application_has_no_verdict_against_it_under_constant_writes() {
    let site = Site::new(&[("page.php", PAGE), ("write.php", WRITE)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 6\n");
    let answers = || counter(&pagewell, "trial_answers");
    let compared = |path: &str| {
        let before = answers();
        visit(&pagewell, path, None);
        until("it is compared", || answers() > before);
    };
    let is_over = AtomicBool::new(false);
    let writes = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&pagewell, &is_over));
        until("versions of pages are compared", || {
            for n in 0..VISITED {
                (0..3).for_each(|_| compared(&format!("/page.php?n={n}")));
            }
            report(&pagewell)["versions"].as_u64() >= Some(VERSIONS)
        });
        is_over.store(true, Ordering::Relaxed);
        writer.join().expect("all writes are answered")
    });
    assert!(writes > VISITED, "{writes}");
    // A page that was found wrong would be reported after a minute.
    advance(&pagewell, 61);
    until("no page is watched", || counter(&pagewell, "audit_watched") == 0);
    let report = report(&pagewell);
    assert_eq!(report["problems"], serde_json::json!([]), "{report}");
    let counts = ["compared", "without_verdict"].map(|name| report[name].as_u64());
    assert!(counts[0] >= Some(VERSIONS) && counts[1].is_some(), "{report}");
}
