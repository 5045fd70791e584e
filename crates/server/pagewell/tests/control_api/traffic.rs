//! The dashboard's plot of the requests, and its list of live requests, in a real headless browser (Chromium).

use super::dashboard::{PAGE, go_to, is_kept, is_quiet, open, script, shows, site, visit};
use acceptance::{Site, client, counter, until};
use harness::{Browser, key};

/// Waits until a part of the plot is drawn. Returns the place of its beginning on the axis, from 0 to 600.
fn drawn(browser: &mut Browser, selector: &str) -> f64 {
    let start = format!(
        "return parseFloat(document.querySelector('#plot {selector}').getAttribute('d')?.slice(1))"
    );
    let mut place = None;
    until(selector, || {
        place = script(browser, &start).as_f64();
        place.is_some()
    });
    place.expect("it is drawn")
}

/// The plot, its axis and its marks; another time; the same figures as a table.
#[test]
fn it_plots_the_chosen_time() {
    let site = site();
    let pagewell = site.serve("[cache]\nstale_while_revalidate = \"10m\"\n");
    visit(&pagewell, "/one");
    visit(&pagewell, "/two");
    let mut browser = open(&pagewell);
    shows(&mut browser, "#plot .legend", "Hits 2 (50 %)");
    shows(&mut browser, "#plot .legend", "Misses, stored 2 (50 %)");
    shows(&mut browser, "#plot", "4 requests");
    pagewell.invalidate(r#"{"tags":["news"]}"#).expect("an answer");
    shows(&mut browser, "#plot .legend", "Purges 2 pages");
    for selector in
        ["bars .hits", "marks .purges", "times .median", "times .most95", "times .most99"]
    {
        drawn(&mut browser, &format!(".{selector}"));
    }
    // A few seconds of figures fill the axis. If it had an hour, they would be at its end.
    assert!(drawn(&mut browser, ".bars .hits") < 300.0);
    let first = "const d = document.querySelector('[data-tile=Memory] .line').getAttribute('d'); \
                 return d ? parseFloat(d.slice(1)) : 300";
    until("the axis is as long as the figures", || {
        script(&mut browser, first).as_f64().is_some_and(|x| x < 150.0)
    });
    browser.click("#plot summary").expect("it unfolds");
    shows(&mut browser, "#plot table", "purged pages");
    for span in ["day", "week", "hour"] {
        browser.click(&format!("#span input[value={span}]")).expect("a choice");
        shows(&mut browser, "#now-span", &format!("and the last {span}"));
        shows(&mut browser, "#plot", "4 requests");
        shows(&mut browser, "[data-tile=Requests] ul", "4 since the start");
    }
    is_quiet(&mut browser);
}

/// Stale responses and those that are not stored are layers of their own. A page that is refreshed in the background
/// is no request, so it changes neither.
#[test]
fn stale_and_not_stored_are_layers_of_the_plot() {
    let own = ("own.php", "<?php header('Cache-Control: private'); echo 'own';");
    let site = Site::new(&[("index.php", PAGE), own]);
    let pagewell = site.serve("[cache]\nsoft_for = \"10m\"\n");
    visit(&pagewell, "/one");
    client(&pagewell).get("/own.php").expect("an answer");
    let mut browser = open(&pagewell);
    shows(&mut browser, "#plot .legend", "Not stored 1 (33.3 %)");
    drawn(&mut browser, ".bars .others");
    pagewell.invalidate(r#"{"tags":["news"],"soft":true}"#).expect("an answer");
    client(&pagewell).get("/one").expect("an answer");
    let legend = shows(&mut browser, "#plot .legend", "Stale 1 (25 %)");
    assert!(legend.contains("Misses, stored 1 (25 %)"), "{legend}");
    drawn(&mut browser, ".bars .stale");
    until("the page is refreshed", || counter(&pagewell, "stored") == 2);
    // Figures of a later second.
    let now = counter(&pagewell, "requests");
    client(&pagewell).get("/two").expect("an answer");
    shows(&mut browser, "#plot", &format!("{} requests", now + 1));
    let legend = browser.text("#plot .legend").expect("a legend");
    assert!(legend.contains("Not stored 1 (20 %)"), "{legend}");
    is_quiet(&mut browser);
}

/// The time is chosen, and the list is filtered, started, stopped and used, by the keyboard alone.
#[test]
fn the_time_and_the_list_need_no_mouse() {
    let site = site();
    let pagewell = site.serve("");
    visit(&pagewell, "/one");
    let mut browser = open(&pagewell);
    browser.press(&[key::TAB, key::ENTER]).expect("keys");
    go_to(&mut browser, "INPUT");
    browser.press(&[key::DOWN]).expect("a key");
    shows(&mut browser, "#now-span", "and the last day");
    go_to(&mut browser, "watch-path");
    browser.type_text("/two").expect("keys");
    browser.press(&[key::ENTER]).expect("a key");
    shows(&mut browser, "#watch-state", "Running");
    until("a request is listed", || {
        client(&pagewell).get("/one").expect("an answer");
        client(&pagewell).get("/two").expect("an answer");
        browser.text("#watched").is_ok_and(|text| text.contains("/two"))
    });
    assert!(!browser.text("#watched").expect("a list").contains("/one"));
    browser.press(&[key::ENTER]).expect("a key");
    shows(&mut browser, "#watch-state", "Stopped");
    for id in ["watch-status", "watch-outcome", "watch-start", "BUTTON"] {
        go_to(&mut browser, id);
    }
    browser.press(&[key::ENTER]).expect("a key");
    shows(&mut browser, "#answer .verdict", "hit");
    assert_eq!(script(&mut browser, "return document.getElementById('question').value"), "/two");
    is_quiet(&mut browser);
}

/// The list runs until it is stopped, shows what is selected, and a row opens its explanation.
#[test]
fn requests_are_listed_as_they_come() {
    let site = site();
    let pagewell = site.serve("");
    visit(&pagewell, "/one");
    let mut browser = open(&pagewell);
    shows(&mut browser, "#watch-state", "Stopped");
    browser.click("#watch-start").expect("a button");
    shows(&mut browser, "#watch-state", "Running");
    // The stream may begin a moment later.
    until("a hit is listed", || {
        assert!(is_kept(&pagewell, "/one"));
        browser.text("#watched").is_ok_and(|text| text.contains("hit"))
    });
    let choose = "const field = document.getElementById('watch-outcome'); field.value = 'miss'; \
                  field.dispatchEvent(new Event('change', { bubbles: true }))";
    script(&mut browser, choose);
    let mut number = 0;
    until("a miss is listed", || {
        number += 1;
        client(&pagewell).get(&format!("/miss-{number}")).expect("an answer");
        assert!(is_kept(&pagewell, "/one"));
        browser.text("#watched").is_ok_and(|text| text.contains("/miss-"))
    });
    let text = browser.text("#watched").expect("a list");
    assert!(!text.contains("/one"), "{text}");
    browser.click("#watch-start").expect("a button");
    shows(&mut browser, "#watch-state", "Stopped");
    browser.click("#watched td .link").expect("a row");
    shows(&mut browser, "#answer .verdict", "hit");
    let asked = script(&mut browser, "return document.getElementById('question').value");
    assert!(asked.as_str().is_some_and(|asked| asked.starts_with("/miss-")), "{asked}");
    is_quiet(&mut browser);
}

/// The list has the requests with the chosen path and the chosen class of status.
#[test]
fn listed_requests_are_chosen_by_path_and_status() {
    let site = site();
    let pagewell = site.serve("");
    let mut browser = open(&pagewell);
    let choose = |browser: &mut Browser, field: &str, value: &str| {
        let change = format!(
            "const field = document.getElementById('{field}'); field.value = '{value}'; \
             for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {{ bubbles: true }}))"
        );
        script(browser, &change);
    };
    let mut number = 0;
    // Requests three kinds of pages until the list has one, and returns the list.
    let mut listed = |browser: &mut Browser, wanted: &str| {
        until(wanted, || {
            number += 1;
            for target in ["/other", "/wanted", "/wanted-gone?status=404&n="] {
                client(&pagewell).get(&format!("{target}{number}")).expect("an answer");
            }
            browser.text("#watched").is_ok_and(|text| text.contains(wanted))
        });
        browser.text("#watched").expect("a list")
    };
    choose(&mut browser, "watch-path", "/wanted");
    browser.click("#watch-start").expect("a button");
    shows(&mut browser, "#watch-state", "Running");
    let text = listed(&mut browser, "/wanted");
    assert!(!text.contains("/other"), "{text}");
    browser.click("#watch-start").expect("a button");
    shows(&mut browser, "#watch-state", "Stopped");
    choose(&mut browser, "watch-status", "4");
    browser.click("#watch-start").expect("a button");
    shows(&mut browser, "#watch-state", "Running");
    let text = listed(&mut browser, "/wanted-gone");
    let is_gone = |line: &str| line.contains("/wanted") && !line.contains("/wanted-gone");
    assert!(!text.lines().any(is_gone), "{text}");
    is_quiet(&mut browser);
}
