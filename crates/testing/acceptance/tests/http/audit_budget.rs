//! Strangers get no PHP time from an audit or a trial by their requests alone, beyond the budget of reference
//! renders. Each page is another at each render, so that each comparison takes as many renders as it can. Where pages
//! differ by visitor, other pages stay hits. Comparing their answers is within the budget, too, and leaves renders a part
//! of it. Also HTTP/2, the memory of comparisons, and how the results of an audit are shown.

use acceptance::{Site, advance, binary, client, counter, is_hit, trial_report, until};
use harness::{Address, Client, Pagewell, Request, Stopwatch};
use std::process::Command;

/// A page without two equal words; a reference render adds a byte to a file.
const RANDOM: &str = "<?php header('Cache-Control: public, max-age=86400');
    if (isset($_SERVER['HTTP_PAGEWELL_REFERENCE'])) { file_put_contents(getenv('NOTES') . '/renders', '.', FILE_APPEND); }
    for ($i = 0; $i < 20; $i++) { echo '<p>', dechex(random_int(0, PHP_INT_MAX)), ' ', dechex(random_int(0, PHP_INT_MAX)); }";
/// A page that differs by language and device, unless it is for all. A reference render adds a byte to a file.
const BY_VISITOR: &str = "<?php header('Cache-Control: public, max-age=86400');
    if (isset($_SERVER['HTTP_PAGEWELL_REFERENCE'])) { file_put_contents(getenv('NOTES') . '/renders', '.', FILE_APPEND); }
    $is_small = str_contains($_SERVER['HTTP_USER_AGENT'] ?? '', 'Mobile');
    $language = htmlspecialchars($_SERVER['HTTP_ACCEPT_LANGUAGE'] ?? 'none');
    echo isset($_GET['q']) ? '<p>text ' . $language . ($is_small ? ' small' : ' wide') : '<p>the same for all';";
/// A page of many words. All reference renders but the first wait for a note.
const MANY_WORDS: &str = "<?php header('Cache-Control: public, max-age=86400');
    if (isset($_SERVER['HTTP_PAGEWELL_REFERENCE'])) {
        if (file_exists(getenv('NOTES') . '/first')) { note('held'); wait_for('go'); } else { note('first'); }
    }
    echo '<p>', file_exists(getenv('NOTES') . '/changed') ? 'new' : 'old', str_repeat(' word', 20000);";
/// Its words.
const WORDS: u64 = 20_000;
/// A page of many elements, another for each query, and a small one.
const MANY_ELEMENTS: &str = "<?php header('Cache-Control: public, max-age=86400');
    echo '<p>', htmlspecialchars($_SERVER['QUERY_STRING']), str_repeat('<p>some words here', 50000);";
const SMALL: &str = "<?php header('Cache-Control: public, max-age=86400'); echo '<p>text';";
const CHILDREN: u64 = 4;
/// Pages that strangers make up. Without a budget, each would take six renders and more.
const PAGES: usize = 300;
/// Renders that are paid for at the start, and those that begin before their cost is known.
const RENDERS_AT_FIRST: u64 = 500 + 20;
/// The time of comparing answers that is there at the start, in microseconds.
const COMPARING_AT_FIRST_US: u64 = 5_000_000;
/// The least cost of a render, in milliseconds, and the share of the places' time in percent.
const RENDER_MS: u64 = 20;
const SHARE: u64 = 5;

/// Sends three requests for each page, and checks the number of renders. `first`: the first of them that is compared;
/// `ended`: the comparisons that have ended.
fn renders_stay_within_the_budget(config: &str, first: usize, ended: impl Fn(&Pagewell) -> u64) {
    let site = Site::new(&[("random.php", RANDOM)]);
    let clock = Stopwatch::start();
    let pagewell = site.serve(&format!("{config}\nphp.children = {CHILDREN}\n"));
    for (page, number) in (0..PAGES).flat_map(|page| (0..3).map(move |number| (page, number))) {
        let before = ended(&pagewell);
        let request = Request::get(&format!("/random.php?q{page}={page}"))
            .header("Accept-Language", &format!("x{page}"))
            .header("Cookie", &format!("invented{page}=1"));
        let answer = client(&pagewell).host("a.test").send(&request).expect("an answer");
        assert_eq!(answer.status, 200, "no visitor is refused for it");
        // Without a hit there is no audit.
        if number >= first && (first == 0 || is_hit(&answer)) {
            until("the comparison ends", || ended(&pagewell) > before);
        }
    }
    let renders = std::fs::metadata(site.at("notes").join("renders")).map_or(0, |file| file.len());
    let earned = clock.elapsed().as_millis() as u64 * CHILDREN * SHARE / 100 / RENDER_MS;
    println!("{config}: {renders} renders, {earned} earned after the first");
    // On a busy machine each takes more of the budget.
    assert!(renders > RENDERS_AT_FIRST / 8, "{renders}: they are compared");
    assert!(renders <= RENDERS_AT_FIRST + earned, "{renders} renders, {earned} earned");
}

#[test]
fn strangers_make_an_audit_use_no_more_than_its_budget() {
    let ended = |pagewell: &Pagewell| -> u64 {
        ["audit_compared", "audit_unjudged", "audit_suspected"]
            .iter()
            .map(|name| counter(pagewell, name))
            .sum()
    };
    renders_stay_within_the_budget("audit = \"1 in 1\"", 1, ended);
}

#[test]
fn strangers_make_a_trial_use_no_more_than_its_budget() {
    let ended = |pagewell: &Pagewell| counter(pagewell, "trial_answers");
    renders_stay_within_the_budget("mode = \"trial\"", 0, ended);
}

/// Comparing the first answers of many pages needs no render, and much CPU.
#[test]
fn strangers_make_a_trial_compare_no_more_than_its_budget_and_leave_renders_a_part_of_it() {
    let files = [("large.php", MANY_ELEMENTS), ("small.php", SMALL), ("same.php", SMALL)];
    let site = Site::new(&files);
    let pagewell = site.serve("mode = \"trial\"\nphp.children = 2\n");
    let visit = |path: &str| {
        let before = counter(&pagewell, "trial_answers");
        let answer = client(&pagewell).host("a.test").get(path).expect("an answer");
        assert_eq!(answer.status, 200, "no visitor is refused for it");
        until("it is compared or left out", || counter(&pagewell, "trial_answers") > before);
    };
    let compared = || trial_report(&pagewell)["compared"].as_u64();
    until("a page is compared", || {
        visit("/same.php");
        compared() > Some(0)
    });
    let left_out = || trial_report(&pagewell)["unjudged"]["no-budget"].as_u64();
    let mut page = 0;
    let mut visit_large = || {
        page += 1;
        visit(&format!("/large.php?n={page}"));
    };
    until("an answer is left out", || {
        visit_large();
        left_out() > Some(0)
    });
    let comparing = counter(&pagewell, "audit_compare_us");
    println!("{comparing} µs");
    assert!(comparing >= COMPARING_AT_FIRST_US, "{comparing}");
    // Otherwise only the answers that differ would be, and most of the others would be right.
    until("an answer that equals its page is left out, too", || {
        visit_large();
        let before = left_out();
        visit("/same.php");
        left_out() > before
    });
    let before = compared();
    until("another page is rendered and compared", || {
        visit("/small.php");
        compared() > before
    });
    assert_eq!(trial_report(&pagewell)["suspects"], serde_json::json!([]));
}

/// Strangers make pages with odd languages and phones, and request them again: three times, each after the minute in which
/// pages that were found wrong are watched. No comparison is waited for.
#[test]
fn strangers_take_no_hits_from_other_pages_where_pages_differ_by_visitor() {
    let site = Site::new(&[("page.php", BY_VISITOR)]);
    let clock = Stopwatch::start();
    let pagewell = site.serve(&format!("audit = \"1 in 1\"\nphp.children = {CHILDREN}\n"));
    let send = |request: &Request| {
        let answer = client(&pagewell).host("a.test").send(request).expect("an answer");
        assert_eq!(answer.status, 200, "no visitor is refused for it");
        answer
    };
    for round in 0..3 {
        for page in 0..40 {
            let agent = if page % 2 == 0 { "Odd (Android; Mobile)" } else { "Odd" };
            let request = Request::get(&format!("/page.php?q={page}"))
                .header("Accept-Language", &format!("x{round}"))
                .header("User-Agent", agent);
            (0..2).for_each(|_| drop(send(&request)));
            // The other kind of device gets the same page, or makes its own.
            send(&Request::get(&format!("/page.php?q={page}")).header("User-Agent", "Odd"));
        }
        until("a page is found", || counter(&pagewell, "audit_suspected") > 0);
        advance(&pagewell, 61);
    }
    for url in ["/page.php", "/page.php?other=1"] {
        send(&Request::get(url));
        until("a neutral visitor gets hits", || is_hit(&send(&Request::get(url))));
        let odd = Request::get(url).header("Accept-Language", "xx");
        assert!(is_hit(&send(&odd)), "{url} is for all");
    }
    let renders = std::fs::metadata(site.at("notes").join("renders")).map_or(0, |file| file.len());
    let earned = clock.elapsed().as_millis() as u64 * CHILDREN * SHARE / 100 / RENDER_MS;
    assert!(renders > 0 && renders <= RENDERS_AT_FIRST + earned, "{renders}, {earned} earned");
}

#[test]
fn the_memory_of_a_comparison_is_counted_and_given_back() {
    let site = Site::new(&[("words.php", MANY_WORDS)]);
    let pagewell = site.serve("audit = \"1 in 1\"\nphp.children = 4\n");
    let visit = || client(&pagewell).host("a.test").get("/words.php").expect("an answer");
    let bytes = || counter(&pagewell, "comparison_bytes");
    visit();
    until("it is stored", || counter(&pagewell, "stored") == 1);
    let before = bytes();
    site.note("changed");
    assert!(is_hit(&visit()));
    // The page has been counted by now, as tokens.
    site.wait_for("held");
    let held = bytes();
    assert!(held >= before + 8 * WORDS, "{before} bytes before, {held} now");
    site.note("go");
    until("the page is watched", || counter(&pagewell, "audit_watched") == 1);
    until("the memory is given back", || bytes() < before + WORDS);
}

#[test]
fn the_bound_of_an_audit_is_shown_for_an_hour_a_day_and_a_month() {
    let page = "<?php header('Cache-Control: max-age=86400'); echo '<p>text';";
    let site = Site::new(&[("right.php", page)]);
    let pagewell = site.serve("audit = \"1 in 1\"\n");
    let visit = || client(&pagewell).host("a.test").get("/right.php").expect("an answer");
    let Address::Tcp(admin) = pagewell.admin() else { panic!("a TCP address") };
    let status_text = || {
        let command =
            Command::new(binary()).args(["status", "--admin", &admin.to_string()]).output();
        String::from_utf8_lossy(&command.expect("it runs").stdout).into_owned()
    };
    assert!(status_text().contains("audit: nothing compared yet; counted"), "{}", status_text());
    visit();
    for hits in 1..=3 {
        assert!(is_hit(&visit()));
        until("it is compared", || counter(&pagewell, "audit_compared") == hits);
        if hits < 3 {
            advance(&pagewell, 7_200);
        }
    }
    let status = Client::new(*admin).get("/v1/status").expect("an answer").text();
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let audit = &status["audit"][0];
    for (span, compared) in [("hour", 1), ("day", 3), ("month", 3)] {
        assert_eq!(
            (&audit[span]["compared"], &audit[span]["wrong"]),
            (&compared.into(), &0.into())
        );
        assert!(audit[span]["nines"].is_number() && audit[span]["right"].is_string(), "{audit}");
    }
    let text = status_text();
    assert!(text.contains("audit: 3 hits compared within a day, 0 wrong; at least "), "{text}");
    assert!(text.contains("; counted for 4 h"), "{text}");
}

#[test]
fn requests_over_http2_are_compared_as_well() {
    let site =
        Site::new(&[("right.php", "<?php header('Cache-Control: max-age=600'); echo 'text';")]);
    for (config, counted, hits) in
        [("audit = \"1 in 1\"", "audit_compared", 2), ("mode = \"trial\"", "trial_answers", 0)]
    {
        let pagewell = site.serve(config);
        let url = format!("http://{}/right.php", pagewell.address());
        for _ in 0..3 {
            let output = Command::new("nghttp").args(["-v", &url]).output().expect("nghttp runs");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains(":status: 200"), "{said}");
        }
        until("they are compared", || counter(&pagewell, counted) >= 1);
        until("they are counted", || counter(&pagewell, "hits") >= hits);
        assert_eq!(counter(&pagewell, "hits"), hits, "{config}");
    }
}
