//! An audit and a trial write nothing about visitors. Requests and pages carry canaries in every place; then the
//! log with all its levels, all files but the stored pages, and all answers of the control interface are searched. An
//! operator who asks a trial for words gets those of Pagewell's own renders, and none of a visitor's request or answer.
//! In a trial also the answers to other visitors are searched.

use acceptance::{Site, advance, binary, client, counter, is_hit, until};
use harness::{Address, Client, Pagewell, Request, Response};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The beginning of all canaries; a name for the place follows. It looks like a word, not like a token.
const CANARY: &str = "kanarienvogel";
/// A segment of a path with a token, as in a link that a visitor got by mail.
const TOKEN: &str = "8f3a9c2b77d1tokenvogel";
/// Calls that show the paths of requests, and the user agents that make most of them: they are the list of top causes.
const SHOWS_PATHS: [&str; 2] = ["/v1/misses", "/v1/most-requested"];
const AGENT: &str = "agentvogel";

/// Pages that differ from their renders: by a cookie, by a file that changes, by chance; and a right one.
const PAGES: [(&str, &str); 4] = [
    (
        "leak.php",
        "<?php header('Cache-Control: public, max-age=600'); header('X-Own: kanarienvogelfield');
         $c = $_COOKIE['currency'] ?? 'kanarienvogelnone'; echo \"<p title='kanarienvogeltitle'>kanarienvogeltext $c</p>\";",
    ),
    (
        "aged.php",
        "<?php header('Cache-Control: max-age=600');
         $new = file_exists(getenv('NOTES') . '/changed') ? 'kanarienvogelnew' : 'kanarienvogelold'; echo \"<p>$new</p>\";",
    ),
    (
        "random.php",
        "<?php header('Cache-Control: max-age=600'); echo '<p>kanarienvogeldraw', mt_rand(1, 2), '</p>';",
    ),
    ("right.php", "<?php header('Cache-Control: max-age=600'); echo '<p>kanarienvogelright</p>';"),
];
/// Calls whose answers show what was recorded, and the dashboard. The events of `/v1/live` are the figures of
/// `/v1/stats`; those of `/v1/requests` are the requests themselves, for operators who watch them, as are an access log
/// and traces.
const CALLS: [&str; 14] = [
    "/",
    "/v1/status",
    "/v1/trial",
    "/v1/stats",
    "/v1/history",
    "/v1/misses",
    "/v1/most-requested",
    "/v1/changes",
    "/v1/sources",
    "/v1/certificates",
    "/v1/uncovered-tags",
    "/v1/ready",
    "/v1/live?events=1",
    "/metrics",
];

/// Whether a visitor has cookies.
fn has_cookies(number: usize) -> bool {
    number % 3 == 2
}

/// The target of a request for a page.
fn target_of(path: &str) -> String {
    format!("/{path}?utm_source={CANARY}utm&q={CANARY}query")
}

/// A request with a canary in every field.
fn visit(pagewell: &Pagewell, page: &str, number: usize) -> Response {
    let cookie = format!("_ga={CANARY}ga; currency={CANARY}currency; theme={CANARY}theme");
    // Some addresses have a token: they are never requested again.
    let path = if number % 4 == 3 { format!("{page}/{TOKEN}") } else { page.to_owned() };
    let mut request = Request::get(&target_of(&path))
        .header("User-Agent", &format!("Odd/1.0 {AGENT}"))
        .header("Accept-Language", &format!("fr-{CANARY}"))
        .header("Referer", &format!("http://{CANARY}.test/{TOKEN}"));
    // Some visitors have cookies, and some a field that no page may be stored with.
    if has_cookies(number) {
        request = request.header("Cookie", &cookie);
    }
    if number % 6 == 5 {
        request = request.header("X-Api-Key", &format!("{CANARY}key"));
    }
    client(pagewell).host("a.test").send(&request).expect("an answer")
}

/// A text that was written, with its place.
type WrittenText = (String, String);

/// The log, and all files but those of pages.
fn files(site: &Site, log: &Path) -> Vec<WrittenText> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut all = vec![("the log".to_owned(), text(&fs::read(log).expect("a log")))];
    for entry in fs::read_dir(site.at("snapshots")).expect("a directory") {
        let path = entry.expect("an entry").path();
        // Pages themselves, and the URLs that were purged, are in the snapshot and its journal.
        let is_of_pages = |name: &str| name.contains(".snapshot") || name.contains(".journal");
        if !is_of_pages(&path.display().to_string()) {
            all.push((path.display().to_string(), text(&fs::read(&path).expect("a file"))));
        }
    }
    all
}

/// The explanation of a page, without the canaries of the URL that the operator names.
fn explained(pagewell: &Pagewell) -> String {
    let url = format!("http://a.test{}", target_of("leak.php"));
    let told = pagewell.explain(&json!({ "url": url }).to_string()).expect("an explanation");
    assert!(!told["last_render"].is_null(), "it was rendered: {told}");
    let named = ["utm", "query"].map(|name| format!("{CANARY}{name}"));
    named.iter().fold(told.to_string(), |text, name| text.replace(name, ""))
}

/// The log, the files, and the answers of the control interface.
fn written(site: &Site, pagewell: &Pagewell) -> Vec<WrittenText> {
    let mut all = files(site, &pagewell.dir().join("pagewell.log"));
    for call in CALLS {
        let mut admin = Client::new(pagewell.admin().clone()).host("localhost");
        let answer = admin.get(call).expect("an answer");
        assert_eq!(answer.status, 200, "{call}");
        all.push((call.into(), answer.text()));
    }
    all.push(("/v1/explain".into(), explained(pagewell)));
    let Address::Tcp(admin) = pagewell.admin() else { panic!("a TCP address") };
    for command in ["status", "trial", "stats"] {
        let output = Command::new(binary()).args([command, "--admin", &admin.to_string()]).output();
        let output = output.expect("it runs");
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        all.push((command.into(), String::from_utf8_lossy(&text).into_owned()));
    }
    all
}

fn contains_no_canary(written: &[WrittenText]) {
    for (place, text) in written {
        assert!(!text.contains(CANARY), "{place}: {text}");
        let is_of_requests = SHOWS_PATHS.contains(&place.as_str());
        assert!(is_of_requests || !text.contains(TOKEN), "{place}: {text}");
        assert!(is_of_requests || !text.contains(AGENT), "{place}: {text}");
    }
}

fn serve(more: &str) -> (Site, Pagewell) {
    let site = Site::new(&PAGES);
    let snapshots = site.at("snapshots");
    fs::create_dir(&snapshots).expect("a directory");
    let config = format!(
        "{more}\nphp.children = 4\n[snapshot]\ndirectory = {snapshots:?}\nunwatched = \"serve\"\nevery = \"1s\"\n"
    );
    let file = site.config(&config, "").display().to_string();
    let pagewell = site.serve_with_args(&["--config", &file, "--log", "debug"]);
    (site, pagewell)
}

/// Writes the records of a process that ends, and searches them as well.
fn ended(site: &Site, mut pagewell: Pagewell) {
    contains_no_canary(&written(site, &pagewell));
    let log = pagewell.dir().join("pagewell.log");
    pagewell.stop();
    contains_no_canary(&files(site, &log));
}

#[test]
fn an_audit_writes_nothing_of_a_visitor() {
    let (site, pagewell) = serve("audit = \"1 in 1\"");
    let compared = || -> u64 {
        let names = ["audit_compared", "audit_unjudged", "audit_suspected"];
        names.iter().map(|name| counter(&pagewell, name)).sum()
    };
    for (page, _) in PAGES {
        site.clear_notes();
        for number in 0..12 {
            let before = compared();
            if is_hit(&visit(&pagewell, page, number)) && number % 4 != 3 {
                // A page that is watched is not compared again.
                let is_watched = || counter(&pagewell, "audit_watched") > 0;
                until("the comparison ends", || compared() > before || is_watched());
            }
            site.note("changed");
        }
    }
    until("something is found", || {
        advance(&pagewell, 10);
        let log = fs::read_to_string(pagewell.dir().join("pagewell.log")).expect("a log");
        log.contains("audit-found")
    });
    ended(&site, pagewell);
}

#[test]
fn a_trial_writes_nothing_of_a_visitor() {
    let (site, pagewell) = serve("mode = \"trial\"\ntrial.budget = \"100%\"");
    let mut admin = Client::new(pagewell.admin().clone()).host("localhost");
    let mut number = 0;
    until("the leak and the draw are found", || {
        for (page, _) in PAGES {
            let answer = visit(&pagewell, page, number);
            let received = format!("{:?}\n{}", answer.headers, answer.text());
            // A page shows its visitor's own cookies.
            let of_others: &[&str] =
                if has_cookies(number) { &["key"] } else { &["key", "ga", "currency", "theme"] };
            for name in of_others {
                assert!(!received.contains(&format!("{CANARY}{name}")), "{page}: {received}");
            }
        }
        number += 1;
        site.note("changed");
        advance(&pagewell, 1);
        let report = admin.get("/v1/trial").expect("an answer").text();
        report.contains("random.php") && report.contains("currency")
    });
    let on_request = admin.get("/v1/trial?text=true").expect("an answer").text();
    let Address::Tcp(address) = pagewell.admin() else { panic!("a TCP address") };
    let mut command = Command::new(binary());
    let output = command.args(["trial", "--text", "--admin", &address.to_string()]).output();
    let shown = String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned();
    for text in [on_request, shown] {
        // The word of the page for a visitor without the cookie.
        assert!(text.contains("kanarienvogelnone"), "{text}");
        for sent in ["currency", "ga", "theme", "utm", "query", "key", ".test"] {
            assert!(!text.contains(&format!("{CANARY}{sent}")), "{sent}: {text}");
        }
        for sent in [AGENT, TOKEN, &format!("fr-{CANARY}")] {
            assert!(!text.contains(sent), "{sent}: {text}");
        }
    }
    ended(&site, pagewell);
}
