//! The trial, the audit and the reads of a page in the dashboard: the report, its actions and the results, at both
//! widths.
//!
//! The report itself is tested in the acceptance tests; not here.

use super::dashboard::{axe, is_quiet, open, script, shows, site, url, visit};
use acceptance::{Site, client, counter, until};
use harness::{Browser, Client, Pagewell, Request};

/// A page that shows the currency of its visitor, and says that it is for everybody.
const LEAK: &str = "<?php header('Cache-Control: public, max-age=600'); echo '<p>', $_COOKIE['currency'] ?? 'EUR', '</p>';";

/// The error bound of a page that draws its text, in the words of `pagewell trial`.
const BY_CHANCE: &str = "by chance: in at most 6.7 % of comparisons, because text of such a page is also drawn at random";

/// Nothing has to be scrolled sideways, and axe-core finds nothing to improve.
fn is_right_at_both_widths(browser: &mut Browser) {
    let axe = axe();
    for (scheme, width, mobile) in [("light", 1280, false), ("dark", 390, true)] {
        browser.prefer("prefers-color-scheme", scheme).expect("another scheme");
        browser.resize(width, 844, mobile).expect("another size");
        let over =
            "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
        assert_eq!(script(browser, over), 0, "scrolled sideways at {width}");
        assert_eq!(script(browser, &axe), serde_json::json!([]), "{scheme} at {width}");
    }
}

/// A site under trial: two visitors have sent requests until the trial has found the page.
pub(super) fn trial_with_leak() -> (Site, Pagewell) {
    let site = Site::new(&[("leak.php", LEAK)]);
    let pagewell = site.serve("mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n");
    let ask = |cookie: &str| {
        let request = Request::get("/leak.php").header("Cookie", cookie);
        assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 200);
    };
    until("the leak is found", || {
        ask("currency=GBP");
        ask("other=1");
        let report = Client::new(pagewell.admin().clone()).get("/v1/trial").expect("an answer");
        report.text().contains("not-safe")
    });
    (site, pagewell)
}

/// Adds two paths to each report with a problem, in the browser: one of its group, with drawn text, and one of another.
const TWO_MORE_PATHS: &str = r#"
    const plain = window.fetch;
    window.fetch = async (path, options) => {
        const answer = await plain(path, options);
        if (!path.startsWith("/v1/trial") || options.method) return answer;
        const all = await answer.json();
        const { problems } = all.trials[0];
        const [one] = problems;
        const second = { ...one, url: "/second.php", cause: "another", chance_percent: 6.7 };
        if (one) problems.push(second, { ...one, url: "/third.php", group: 2 });
        return new Response(JSON.stringify(all));
    };
    document.getElementById("site").dispatchEvent(new Event("change"));
"#;

#[test]
fn it_shows_the_report_of_a_trial_and_begins_a_new_record() {
    let (_site, pagewell) = trial_with_leak();
    let mut browser = open(&pagewell);
    let text = shows(&mut browser, "#trial", "Not safe: 1 problem.");
    for part in [
        "the answers of the origin",
        "requests for shared pages",
        "would-be hit ratio, at least",
        "PHP time saved, at least",
        "/leak.php",
        "made for its first visitor and sent to others",
        "differs by cookie currency",
        "vary_cookies",
        "The record is in memory only",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("by chance"), "{text}");
    shows(&mut browser, "[data-tile='Hit ratio']", "would-be, at least, by the trial");
    shows(&mut browser, "#plot", "in a trial");
    script(&mut browser, TWO_MORE_PATHS);
    let text = shows(&mut browser, "#trial", "/leak.php and 1 other path");
    assert!(text.contains("/third.php") && !text.contains("/second.php"), "{text}");
    assert_eq!(text.matches(BY_CHANCE).count(), 1, "{text}");
    is_right_at_both_widths(&mut browser);
    // The sentence of the report is there once.
    let first = "Visitors are well, but the trial is not safe: 1 problem.";
    let text = shows(&mut browser, "#attention", first);
    let is_short = text.contains("is under trial: visitors get the answers of the origin.");
    assert!(is_short && !text.contains("Not safe"), "{text}");

    // Nothing is forgotten before the confirmation.
    let again = "document.querySelector('#trial button').click()";
    script(&mut browser, again);
    shows(&mut browser, "#confirm-text", "forgets");
    browser.click("#confirm button[value=no]").expect("a button");
    shows(&mut browser, "#trial", "Not safe: 1 problem.");
    script(&mut browser, again);
    shows(&mut browser, "#confirm-text", "forgets");
    browser.click("#confirm-yes").expect("a button");
    let text = shows(&mut browser, "#trial", "Not enough yet: 0 of 300");
    assert!(!text.contains("/leak.php"), "{text}");
    is_quiet(&mut browser);
}

#[test]
fn a_trial_is_listed_and_is_no_problem() {
    let site = site();
    let pagewell = site.serve("mode = \"trial\"\n");
    let mut browser = open(&pagewell);
    let text = shows(&mut browser, "#attention", "No problem was found.");
    assert!(text.contains("The site is under trial"), "{text}");
    is_right_at_both_widths(&mut browser);
    is_quiet(&mut browser);
}

#[test]
fn it_shows_the_results_of_an_audit() {
    let site = site();
    let pagewell = site.serve("audit = \"1 in 1\"\n");
    let mut browser = open(&pagewell);
    let text = shows(&mut browser, "#audit", "nothing compared yet");
    assert!(!text.contains("at least"), "{text}");
    visit(&pagewell, "/one");
    until("it is compared", || counter(&pagewell, "audit_compared") == 1);
    browser.go(&url(&pagewell)).expect("it opens");
    let text = shows(&mut browser, "#audit", "Audited today: 1, 0 wrong.");
    for part in ["31 days", "at least", "Counted for "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    is_right_at_both_widths(&mut browser);
    is_quiet(&mut browser);
}

/// Adds the reads of automatic dependencies to the explanation of a page, in the browser, and removes its tags.
const WITH_READS: &str = r#"
    const plain = window.fetch;
    window.fetch = async (path, options) => {
        const answer = await plain(path, options);
        if (path !== "/v1/explain") return answer;
        const told = await answer.json();
        Object.assign(told.page, { tags: [], reads: ["posts: id = 4", "users: id = 1"] });
        return new Response(JSON.stringify(told));
    };
"#;

#[test]
fn it_shows_the_reads_of_a_page() {
    let site = site();
    let pagewell = site.serve("");
    visit(&pagewell, "/one");
    let mut browser = open(&pagewell);
    script(&mut browser, WITH_READS);
    browser.write("#question", "/one").expect("a field");
    browser.click("#look button").expect("a button");
    let text = shows(&mut browser, "#answer", "2 sets of rows");
    assert!(!text.contains("no tags") && !text.contains("users: id"), "{text}");
    browser.click("#answer summary").expect("it unfolds");
    shows(&mut browser, "#answer", "users: id = 1");
    is_right_at_both_widths(&mut browser);
    is_quiet(&mut browser);
}
