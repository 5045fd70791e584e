//! A trial under bad conditions: it says what it could not judge, and stops no visitor. An origin that is down, and pages
//! that write at each view, are in `tests/scenarios/trial`; two nodes and databases in the tests of databases.

use crate::trial_report::{command, config, report, visit};
use acceptance::{
    BOUND, Site, advance, bound_files, client, counter, get_meanwhile, trial_report, until,
};
use harness::{Pagewell, Request, Signal, Wait};
use std::fs;
use std::time::Duration;

/// A page of its own for each number.
const PAGE: &str = "<?php header('Cache-Control: max-age=86400'); echo '<p>page ', $_GET['n'] ?? '', ' ', file_exists(getenv('NOTES') . '/deployed') ? 'new' : 'old';";
const RANDOM: &str = "<?php header('Cache-Control: max-age=600'); echo '<p>'; for ($i = 0; $i < 200; $i++) { echo 'x', bin2hex(random_bytes(4)), ' '; }";
/// A page for which a worker may be held, and which counts the requests of Pagewell itself.
const SLOW: &str = "<?php header('Cache-Control: max-age=600'); if (isset($_GET['held'])) { note('held'); wait_for('go'); } isset($_SERVER['HTTP_PAGEWELL_REFERENCE']) && note('reference'); echo '<p>text';";

/// A page whose renders for Pagewell itself wait for a note, but for the first of them.
const HELD: &str = "<?php header('Cache-Control: max-age=600'); if (isset($_SERVER['HTTP_PAGEWELL_REFERENCE'])) { if (file_exists(getenv('NOTES') . '/first')) { note('held'); wait_for('go'); } else { note('first'); } } echo '<p>text';";

/// A page with another text for visitors who send `DNT`.
const BY_FIELD: &str = "<?php header('Cache-Control: max-age=86400'); if (isset($_GET['held'])) { note('held'); wait_for('go'); } echo '<p>text', isset($_SERVER['HTTP_DNT']) ? '<b>not tracked</b>' : '';";

/// A page with another text for visitors who send `DNT`, and for the first who sends `X-Once` while there is no note.
const ONCE: &str = "<?php header('Cache-Control: max-age=86400'); $once = isset($_SERVER['HTTP_X_ONCE']) && !file_exists(getenv('NOTES') . '/shown'); if ($once) { note('shown'); } echo '<p>text', $once ? '<b>once</b>' : '', isset($_SERVER['HTTP_DNT']) ? '<b>not tracked</b>' : '';";

/// A page with another text for visitors who send `DNT`. The value of `X-Hold` is a note, and part of the note that
/// ends the wait of its request.
const HELD_BY_FIELD: &str = "<?php header('Cache-Control: max-age=86400'); if ($held = $_SERVER['HTTP_X_HOLD'] ?? '') { note($held); wait_for(\"go-$held\"); } echo '<p>text', isset($_SERVER['HTTP_DNT']) ? '<b>not tracked</b>' : '';";

/// A page of its own for each path.
const BY_PATH: &str =
    "<?php header('Cache-Control: max-age=86400'); echo '<p>', md5($_SERVER['REQUEST_URI']);";

/// Paths whose patterns are long, so that a record of all of them is longer than a log.
const LONG_PATHS: u32 = 40;

/// One of these paths.
fn long_path(n: u32) -> String {
    let name = ["north", "south", "east", "west", "up", "down", "left", "right"];
    let (one, other) = (name[n as usize / 8], name[n as usize % 8]);
    let rest = format!("/{}", ["word"; 14].join("-")).repeat(9);
    format!("/{one}/{other}{rest}")
}

fn answers(pagewell: &Pagewell) -> u64 {
    counter(pagewell, "trial_answers")
}

/// Visits a page, and waits for the end of the comparison.
fn compared(pagewell: &Pagewell, path: &str) {
    let before = answers(pagewell);
    visit(pagewell, path, None);
    until("it is compared", || answers(pagewell) > before);
}

/// Visits a page with a field, and waits for the end of the comparison.
fn compared_with(pagewell: &Pagewell, path: &str, field: &str) {
    let before = answers(pagewell);
    let request = Request::get(path).header(field, "1");
    let response = client(pagewell).host("a.test").send(&request).expect("an answer");
    assert_eq!(response.status, 200, "{path}");
    until("it is compared", || answers(pagewell) > before);
}

/// Visits a page until there is one more comparison with a verdict.
fn judged(pagewell: &Pagewell, path: &str) {
    let before = report(pagewell)["compared"].as_u64();
    until("a page is compared", || {
        compared(pagewell, path);
        report(pagewell)["compared"].as_u64() > before
    });
}

/// Calls the control interface.
fn call(pagewell: &Pagewell, path: &str, content: &[u8]) {
    let call =
        Request::new("POST", path).header("Content-Type", "application/json").content(content);
    let mut admin = harness::Client::new(pagewell.admin().clone()).host("localhost");
    assert_eq!(admin.send(&call).expect("an answer").status, 200, "{path}");
}

fn classes(pagewell: &Pagewell) -> Vec<String> {
    let report = report(pagewell);
    let problems = report["problems"].as_array().expect("a list").iter();
    problems.map(|problem| problem["class"].as_str().expect("a class").to_owned()).collect()
}

fn says(pagewell: &Pagewell, part: &str) -> bool {
    report(pagewell)["notices"].to_string().contains(part)
}

#[test]
fn a_site_with_random_pages_only_is_never_safe() {
    let site = Site::new(&[("random.php", RANDOM)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n");
    until("it is known to be random", || {
        compared(&pagewell, "/random.php");
        report(&pagewell)["unjudged"]["random"].as_u64() > Some(3)
    });
    let report = report(&pagewell);
    assert_eq!(
        (&report["outcome"], classes(&pagewell)),
        (&"not-enough".into(), vec!["random".into()])
    );
    assert!(report["compared"].as_u64() < Some(5), "{report}");
    assert_eq!(report["versions"], 0, "a draw proves nothing");
}

#[test]
fn a_deployment_is_found_and_no_fault_if_it_purges_and_restarts_the_record() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n");
    let visit_all = |rounds: u32| {
        (0..rounds * 5).for_each(|n| compared(&pagewell, &format!("/page.php?n={}", n % 5)));
    };
    visit_all(3);
    assert_eq!(report(&pagewell)["versions"], 5);
    // Nobody has purged a page.
    site.note("deployed");
    advance(&pagewell, 11);
    visit_all(1);
    until("it is noticed", || {
        advance(&pagewell, 61);
        classes(&pagewell) == ["aged"]
    });
    // A deployment as the guide says.
    assert_eq!(pagewell.invalidate("{\"all\":true}").expect("an answer").status, 200);
    call(&pagewell, "/v1/trial", b"{\"restart\":true}");
    visit_all(4);
    advance(&pagewell, 61);
    assert_eq!((classes(&pagewell), &report(&pagewell)["versions"]), (vec![], &5.into()));
}

#[test]
fn an_origin_with_one_free_worker_is_left_to_its_visitors() {
    let site = Site::new(&[("slow.php", SLOW)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 2\n");
    let held = get_meanwhile(&pagewell, "/slow.php?held");
    site.wait_for("held");
    (0..6).for_each(|_| compared(&pagewell, "/slow.php"));
    assert!(!site.has_note("reference"), "one worker is free, for visitors");
    let full = "The origin has no place to spare";
    assert!(report(&pagewell)["unjudged"]["no-place"].as_u64() > Some(0), "{}", report(&pagewell));
    assert!(says(&pagewell, full), "{}", report(&pagewell));
    let (text, _) = command(&pagewell, &[]);
    for part in [full, "no-place "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    site.note("go");
    assert_eq!(held.join().expect("it has asked").status, 200);
    // A page that could not be made is left alone for ten minutes.
    until("both are free", || {
        advance(&pagewell, 601);
        (0..3).for_each(|_| compared(&pagewell, "/slow.php"));
        site.has_note("reference")
    });
    until("a page is compared", || {
        compared(&pagewell, "/slow.php");
        report(&pagewell)["compared"].as_u64() > Some(0) && !says(&pagewell, full)
    });
    assert_eq!(classes(&pagewell), [""; 0]);
}

#[test]
fn an_origin_stays_full_for_the_report_if_a_render_is_not_sent() {
    let site = Site::new(&[("index.php", HELD_BY_FIELD)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 2\n");
    judged(&pagewell, "/page");
    let full = "The origin has no place to spare";
    let hold = |path: &str, name: &str| {
        let request = Request::get(path).header("X-Hold", name).header("DNT", "1");
        let mut visitor = client(&pagewell).host("a.test");
        let visit = move || visitor.send(&request).expect("an answer").status;
        let held = std::thread::spawn(visit);
        site.wait_for(name);
        held
    };
    let one = hold("/other", "one");
    compared_with(&pagewell, "/page", "DNT");
    assert!(says(&pagewell, full), "one place is free, for visitors");
    let two = hold("/page", "two");
    // Now a file is there in place of the page, so no render of it reaches PHP.
    let file = site.file("page", "a file");
    let before = answers(&pagewell);
    site.note("go-two");
    assert_eq!(two.join().expect("it has asked"), 200);
    until("it is compared", || answers(&pagewell) > before);
    assert_eq!(report(&pagewell)["unjudged"]["render-failed"], 1, "{}", report(&pagewell));
    assert!(says(&pagewell, full), "{}", report(&pagewell));
    fs::remove_file(file).expect("it is there");
    site.note("go-one");
    assert_eq!(one.join().expect("it has asked"), 200);
    until("a render gets a place", || {
        compared_with(&pagewell, "/page", "DNT");
        !says(&pagewell, full)
    });
}

#[test]
fn an_origin_that_is_slow_is_noticed_and_its_visitors_do_not_wait_for_a_comparison() {
    let site = Site::new(&[("held.php", HELD), ("page.php", PAGE)]);
    let pagewell = site.serve(
        "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\nlimits.origin_timeout = \"10s\"\n",
    );
    until("a render is held", || {
        visit(&pagewell, "/held.php", None);
        site.has_note("held")
    });
    // Visitors of this page and of others are answered, and other pages are compared.
    visit(&pagewell, "/held.php", None);
    until("another page is compared", || {
        compared(&pagewell, "/page.php");
        report(&pagewell)["compared"].as_u64() > Some(0)
    });
    let failing = "The origin fails";
    until("it is given up", || {
        std::thread::sleep(Duration::from_millis(50));
        trial_report(&pagewell)["unjudged"]["render-failed"].as_u64() > Some(0)
    });
    let seconds = trial_report(&pagewell)["render_seconds"].as_f64();
    assert!(seconds >= Some(10.0), "{seconds:?}: it has held a worker until the timeout");
    let (text, _) = command(&pagewell, &[]);
    for part in [failing, "render-failed "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    site.note("go");
    until("the origin is as fast as before", || {
        compared(&pagewell, "/held.php");
        !says(&pagewell, failing)
    });
    assert_eq!(classes(&pagewell), [""; 0]);
}

#[test]
fn a_difference_is_explained_also_after_a_reload_with_another_budget() {
    let site = Site::new(&[("page.php", BY_FIELD)]);
    let config = "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 2\n";
    let pagewell = site.serve(config);
    until("a page is compared", || {
        compared(&pagewell, "/page.php");
        report(&pagewell)["compared"].as_u64() > Some(0)
    });
    let held = get_meanwhile(&pagewell, "/page.php?held");
    site.wait_for("held");
    compared_with(&pagewell, "/page.php", "DNT");
    let suspects = || report(&pagewell)["suspects"].clone();
    assert_eq!(suspects(), serde_json::json!(["/page.php"]), "one place is free, for visitors");
    site.note("go");
    assert_eq!(held.join().expect("it has asked").status, 200);

    site.config(&config.replace("100%", "50%"), "");
    call(&pagewell, "/v1/reload", b"{}");
    assert_eq!(suspects(), serde_json::json!(["/page.php"]), "the record goes on");
    until("it is explained", || {
        compared_with(&pagewell, "/page.php", "DNT");
        suspects() == serde_json::json!([])
    });
    assert_eq!(classes(&pagewell), ["loses"]);
}

#[test]
fn a_suspect_of_an_earlier_process_stays_when_another_page_of_its_pattern_is_explained() {
    let site = Site::new(&[("index.php", ONCE)]);
    let config = config(&site);
    let suspects = |pagewell: &Pagewell| report(pagewell)["suspects"].clone();
    let pattern = serde_json::json!(["/shop/:n"]);
    let mut pagewell = site.serve(&config);
    judged(&pagewell, "/shop/1");
    compared_with(&pagewell, "/shop/1", "X-Once");
    assert_eq!(suspects(&pagewell), pattern, "no render shows it again");
    pagewell.stop();

    let pagewell = site.serve(&config);
    until("the record is read", || suspects(&pagewell) == pattern);
    judged(&pagewell, "/shop/2");
    fs::remove_file(site.at("notes").join("shown")).expect("it is there");
    compared_with(&pagewell, "/shop/2", "X-Once");
    assert_eq!(report(&pagewell)["unjudged"]["cause-unknown"], 2, "{}", report(&pagewell));
    compared_with(&pagewell, "/shop/2", "DNT");
    assert_eq!(classes(&pagewell), ["loses"]);
    assert_eq!(suspects(&pagewell), pattern, "the other page is not explained");
}

#[test]
fn a_database_that_is_not_followed_is_noticed_and_stops_no_visitor() {
    let site = Site::new(&[("page.php", PAGE)]);
    let port = harness::free_port().expect("a port");
    let pagewell = site.serve(&format!(
        "mode = \"trial\"\nphp.children = 4\n[[database]]\nurl = \"mysql://a:b@127.0.0.1:{port}/x\"\n\
         [[change]]\ntable = \"news\"\ntags = [\"news\"]\n"
    ));
    (0..4).for_each(|_| compared(&pagewell, "/page.php"));
    assert!(says(&pagewell, "is not followed, so nothing is judged"));
    let report = report(&pagewell);
    assert_eq!((classes(&pagewell), &report["versions"]), (vec![], &0.into()));
    assert_eq!(counter(&pagewell, "renders"), 0, "a page is made when it can be stored");
}

#[test]
fn a_cache_in_front_is_noticed() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("mode = \"trial\"\nphp.children = 4\n");
    let cdn = "A cache or CDN in front of Pagewell";
    let visit = |by_cdn: bool| {
        let request = Request::get("/page.php");
        let request = if by_cdn { request.header("Via", "1.1 cdn") } else { request };
        assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 200);
    };
    until("it is noticed", || {
        visit(true);
        says(&pagewell, cdn)
    });
    until("it is gone", || {
        visit(false);
        !says(&pagewell, cdn)
    });
}

#[test]
fn a_cache_before_a_trusted_proxy_is_noticed_and_the_proxy_alone_is_not() {
    let site = Site::new(&[("page.php", PAGE)]);
    let trusted = "trusted_proxies = [\"127.0.0.0/8\", \"::1\"]";
    let pagewell = site.serve(&format!("mode = \"trial\"\n{trusted}\nphp.children = 4\n"));
    let visit_some = |field: (&str, &str)| {
        for number in 0..20 {
            let request = Request::get("/page.php")
                .header("X-Forwarded-For", &format!("192.0.2.{number}"))
                .header(field.0, field.1);
            assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 200);
        }
    };
    let (of_proxy, of_cdn) = (("X-Real-IP", "192.0.2.1"), ("CF-Ray", "1-FRA"));
    until("two windows of answers have passed", || {
        visit_some(of_proxy);
        answers(&pagewell) > 256
    });
    assert!(!says(&pagewell, "in front of Pagewell"), "{}", report(&pagewell));
    until("it is noticed", || {
        visit_some(of_cdn);
        says(&pagewell, "A CDN or cache in front of Pagewell may answer visitors itself")
    });
    assert!(!says(&pagewell, "trusted_proxies"), "it is named already");
    until("it is gone", || {
        visit_some(of_proxy);
        !says(&pagewell, "in front of Pagewell")
    });
}

#[test]
fn a_trial_goes_on_over_a_take_over() {
    let site = Site::new(&[("page.php", PAGE)]);
    let config = config(&site);
    let first = site.serve(&config);
    (0..4).for_each(|n| compared(&first, &format!("/page.php?n={}", n % 2)));
    let before = report(&first);
    let next = site.take_over(&config, &first);
    until("the record is read", || {
        report(&next)["requests"].as_u64() >= before["requests"].as_u64()
    });
    // The visitors of both processes get the answers of the origin.
    (0..6).for_each(|n| compared(&next, &format!("/page.php?n={}", n % 2)));
    let after = report(&next);
    assert_eq!(after["since"], before["since"]);
    assert_eq!(after["requests"].as_u64(), before["requests"].as_u64().map(|count| count + 6));
    assert!(after["compared"].as_u64() > before["compared"].as_u64(), "{after}");
    assert_eq!(classes(&next), [""; 0]);
}

#[test]
fn a_full_disk_keeps_the_last_record_and_stops_no_visitor() {
    let site = Site::new(&[("index.php", BY_PATH)]);
    let config = config(&site);
    let mut pagewell = site.serve(&config);
    (0..2).for_each(|_| compared(&pagewell, "/one"));
    let before = report(&pagewell);
    pagewell.stop();
    let mut files = fs::read_dir(site.at("snapshots")).expect("a directory").flatten();
    let is_record = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "trial");
    let file = files.find_map(|entry| Some(entry.path()).filter(is_record)).expect("a record");
    let saved = fs::read(&file).expect("it can be read");

    let mut pagewell = site.serve(&config);
    (0..LONG_PATHS).for_each(|n| (0..2).for_each(|_| compared(&pagewell, &long_path(n))));
    assert_eq!(report(&pagewell)["versions"], LONG_PATHS + 1);
    let log = fs::metadata(pagewell.dir().join("pagewell.log")).expect("a log").len();
    // More than the log needs, and less than the record.
    let bound = log + 5_000;
    assert!(bound < u64::from(LONG_PATHS) * long_path(0).len() as u64, "{log}");
    bound_files(&pagewell, Some(bound));
    (0..3).for_each(|_| visit(&pagewell, "/one", None));
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
    assert!(pagewell.log().contains("record-not-saved"), "{}", pagewell.log());
    assert_eq!(fs::read(&file).expect("it stays"), saved);
    assert!(!file.with_extension("trial.new").exists(), "a part of it would take room");

    let pagewell = site.serve(&config);
    until("the record is read", || report(&pagewell)["requests"] == before["requests"]);
    assert_eq!(report(&pagewell)["versions"], 1);
}
