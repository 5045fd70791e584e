//! The gallery of `tests/audit/gallery.txt`: small PHP applications with one fault each, and as many without, on a real
//! php-fpm behind a Pagewell that audits every hit. Each fault is found with its class within 50 requests, or those that
//! the gallery names if no trial judges it; no right application is reported. Text of responses and values of fields, which carry canaries, are written nowhere.
//! `AUDIT_GALLERY=all` runs all of it (`make audit`), else a varied quarter runs.

use acceptance::{Site, advance, client, counter, is_hit};
use harness::{Deadline, Pagewell, Request, Response};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Functions of the applications.
const LIBRARY: &str = r#"<?php
function own(string $what): string { return getenv('NOTES') . "/$what-" . basename($_SERVER['SCRIPT_NAME']); }
function data(): string { return file_exists(own('data')) ? 'new' : 'old'; }
function counter(): int { $n = (int) @file_get_contents(own('count')); file_put_contents(own('count'), $n + 1); return $n; }
function lives(): void { header('Cache-Control: max-age=86400'); }
function tagged(): void { lives(); header('Cache-Groups: "news"'); }
"#;

/// Requests to one application until its fault must have been found.
const REQUESTS_MAX: usize = 50;
/// Applications that are examined at the same time: fewer than comparisons that Pagewell makes at the same time.
const AT_ONCE: usize = 12;
/// The bound of one round of comparisons, on any machine.
const ROUND_MAX: Duration = Duration::from_secs(300);
/// Text that only requests have.
pub(crate) const CANARY: &str = "kanarienvogel";

/// An application with its expected class.
pub(crate) struct Application {
    pub(crate) name: String,
    pub(crate) class: String,
    /// Text in the cause that a trial names.
    pub(crate) cause: String,
    /// The requests after which a trial must have found the fault; an audit, if no trial judges it.
    pub(crate) within: Option<usize>,
    pub(crate) script: String,
    /// Whether it belongs to the quarter that runs with all tests.
    is_usual: bool,
    /// The marks before its name: whether only an audit or only a trial can judge it.
    marks: String,
}

impl Application {
    fn is_right(&self) -> bool {
        self.class == "right"
    }

    pub(crate) fn is_for_trials(&self) -> bool {
        !self.marks.contains('-')
    }

    fn is_for_audits(&self) -> bool {
        !self.marks.contains('+')
    }
}

/// The file of the gallery.
pub(crate) fn gallery_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/audit/gallery.txt")
}

/// The applications of the gallery.
pub(crate) fn gallery() -> Vec<Application> {
    let text = std::fs::read_to_string(gallery_path()).expect("the gallery can be read");
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let mut cells = row.splitn(5, '|').map(str::trim);
        let mut next = || cells.next().unwrap_or_else(|| panic!("five cells: {row}")).to_owned();
        let (marked, class, cause, within) = (next(), next(), next(), next());
        let (marks, name) = marked.split_at(marked.find(char::is_alphabetic).expect("a name"));
        Application {
            name: name.to_owned(),
            class,
            cause,
            within: within.parse().ok(),
            script: format!("{LIBRARY}{}", next()),
            is_usual: marks.contains('*'),
            marks: marks.to_owned(),
        }
    })
    .collect()
}

/// The rule for the application whose key has the device.
pub(crate) const RULES: &str = "[[rule]]\npath = \"/key-device.php\"\ndevice_classes = true\n";

/// Whether a request to an application comes from a phone: those for a page of one class of devices are of the other
/// class, but for the first; right pages of both get both.
fn is_of_phone(application: &Application, number: usize) -> bool {
    let name = &application.name;
    if name.starts_with("by-device") {
        name.ends_with("-phone") == (number == 0)
    } else {
        name.ends_with("-device") && !number.is_multiple_of(2)
    }
}

/// Whether requests with an odd number are for another page of the application, or are never answered from the cache.
fn has_two_kinds(application: &Application) -> bool {
    let names = ["by-method", "by-query", "by-session"];
    is_of_phone(application, 1) || names.contains(&application.name.as_str())
}

/// Whether a request to an application has no content, so that no audit compares it.
fn is_head(application: &Application, number: usize) -> bool {
    application.name == "by-method" && !number.is_multiple_of(2)
}

/// A request of a visitor with every kind of field, and with what the application decides by.
fn visit(pagewell: &Pagewell, application: &Application, number: usize) -> Response {
    let name = application.name.as_str();
    let agent =
        if is_of_phone(application, number) { "Odd/1.0 (Android; Mobile)" } else { "Odd/1.0" };
    let page = if name == "by-query" { number % 2 + 1 } else { 0 };
    let page = if page > 0 { format!("&page={page}") } else { String::new() };
    let is_signed_in = name == "by-session" && !number.is_multiple_of(2);
    let session = if is_signed_in { "; PHPSESSID=0123456789abcdef" } else { "" };
    let method = if is_head(application, number) { "HEAD" } else { "GET" };
    let request = Request::new(method, &format!("/{name}.php?utm_source={CANARY}{page}"))
        .header("User-Agent", &format!("{agent} {CANARY}"))
        .header("Accept-Language", &format!("fr-{CANARY}"))
        .header("Referer", &format!("http://{CANARY}.test/"))
        .header("DNT", "1")
        .header("CF-IPCountry", "FR")
        .header("Cookie", &format!("_ga={CANARY}; cookieyes-consent={CANARY}{session}"));
    let request = match name {
        "by-range" if number > 1 => request.header("Range", "bytes=0-3"),
        "by-condition" if number > 1 => request.header("If-None-Match", "\"1\""),
        _ => request,
    };
    client(pagewell).host("a.test").send(&request).expect("an answer")
}

/// The classes that were reported for an application by this event of the log, each with its line.
pub(crate) fn reported(log: &str, event: &str, name: &str) -> Vec<(String, String)> {
    let url = format!("/{name}.php");
    let lines = log.lines().filter(|line| line.contains(event));
    let of_it = lines.filter(|line| {
        let mut words = line.split([' ', '"', '=']);
        words.any(|word| word.split('?').next() == Some(url.as_str()))
    });
    of_it
        .filter_map(|line| {
            let class = line.split("class=").nth(1)?.trim_start_matches('"');
            Some((class.split([' ', '"']).next()?.to_owned(), line.to_owned()))
        })
        .collect()
}

/// The classes that the audit has reported for an application.
fn classes(log: &str, name: &str) -> Vec<String> {
    reported(log, "audit-found", name).into_iter().map(|(class, _)| class).collect()
}

/// The comparisons that have ended.
fn ended(pagewell: &Pagewell) -> u64 {
    counter(pagewell, "audit_compared") + counter(pagewell, "audit_unjudged")
}

/// The whole log.
pub(crate) fn log(pagewell: &Pagewell) -> String {
    std::fs::read_to_string(pagewell.dir().join("pagewell.log")).expect("there is a log")
}

/// Waits until all comparisons have ended. A comparison may wait for a later second of the clock, so it is moved.
fn await_comparisons(pagewell: &Pagewell, are_done: impl Fn() -> bool) {
    let deadline = Deadline::after(ROUND_MAX);
    while !are_done() {
        assert!(!deadline.passed(), "the comparisons do not end");
        let moment = Deadline::after(Duration::from_secs(1));
        while !are_done() && !moment.passed() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if moment.passed() {
            advance(pagewell, 11);
        }
    }
}

/// Sends hits to each application until its class was reported; returns the faults of the audit.
fn examine(
    pagewell: &Pagewell,
    site: &Site,
    (applications, are_young): (&[&Application], bool),
) -> Vec<String> {
    for application in applications {
        // A signed-in visitor comes first: its answer must not be stored.
        if application.is_right() && has_two_kinds(application) {
            visit(pagewell, application, 1);
        }
        visit(pagewell, application, 0);
    }
    if !are_young {
        // Pages that are younger may be those of their first visitors.
        advance(pagewell, 11);
        for application in applications {
            let note = site.at("notes").join(format!("data-{}.php", application.name));
            std::fs::write(note, "").expect("a note can be left");
        }
    }
    let mut left = applications.to_vec();
    let mut slow = Vec::new();
    for requests in 2..=REQUESTS_MAX {
        let before = ended(pagewell);
        let watched = || counter(pagewell, "audit_watched");
        let mut hits = 0;
        for application in &left {
            let response = visit(pagewell, application, requests);
            let status = response.header("cache-status").map(str::to_owned);
            assert!(requests > 2 || is_hit(&response), "{}: {status:?}", application.name);
            hits += u64::from(is_hit(&response) && !is_head(application, requests));
        }
        await_comparisons(pagewell, || ended(pagewell) + watched() >= before + hits);
        for late in left.iter().filter(|application| application.class == "late") {
            let purge = Request::new("PURGE", &format!("/{}.php", late.name));
            client(pagewell).host("a.test").send(&purge).expect("an answer");
        }
        if watched() > 0 {
            advance(pagewell, 61);
        }
        await_comparisons(pagewell, || watched() == 0 && ended(pagewell) >= before + hits);
        let log = log(pagewell);
        left.retain(|application| {
            let is_found = classes(&log, &application.name).contains(&application.class);
            if is_found {
                println!("{:<18} {:<16} after {requests}", application.name, application.class);
                if !application.is_for_trials() && application.within < Some(requests) {
                    slow.push(format!("{}: found after {requests} requests", application.name));
                }
            }
            // The second round has the requests of the other kind.
            let is_right = application.is_right() && (requests > 2 || !has_two_kinds(application));
            !is_found && !is_right
        });
        if left.is_empty() {
            break;
        }
    }
    let log = log(pagewell);
    let missed = left.iter().map(|application| {
        let found = classes(&log, &application.name);
        format!("{}: {} was not found; reported: {found:?}", application.name, application.class)
    });
    let alarms = applications.iter().filter(|application| application.is_right());
    let alarms = alarms.map(|application| (application, classes(&log, &application.name)));
    let alarms = alarms.filter(|(_, found)| !found.is_empty());
    let alarms = alarms.map(|(right, found)| format!("{}: reported as {found:?}", right.name));
    missed.chain(alarms).chain(slow).collect()
}

#[test]
fn an_audit_finds_each_fault_of_the_gallery_and_no_other() {
    let mut gallery = gallery();
    gallery.retain(Application::is_for_audits);
    let count = |right: bool| gallery.iter().filter(|one| one.is_right() == right).count();
    assert!(count(true) >= 40 && count(false) >= 40, "{} and {}", count(true), count(false));
    let is_all = std::env::var("AUDIT_GALLERY").is_ok_and(|which| which == "all");
    gallery.retain(|application| is_all || application.is_usual);
    let site = Site::new(&[]);
    for application in &gallery {
        site.file(&format!("{}.php", application.name), &application.script);
    }
    let pagewell = site.serve(&format!("audit = \"1 in 1\"\nphp.children = 20\n{RULES}"));
    let mut faults = Vec::new();
    // A page of one class of devices is found at any age.
    let is_young = |application: &Application| {
        application.class.starts_with("leak") && !application.name.starts_with("by-device")
    };
    for are_young in [true, false] {
        let kind = gallery.iter().filter(|application| is_young(application) == are_young);
        for applications in kind.collect::<Vec<_>>().chunks(AT_ONCE) {
            faults.extend(examine(&pagewell, &site, (applications, are_young)));
        }
    }
    assert_eq!(faults, [""; 0]);
    let log = log(&pagewell);
    for application in gallery.iter().filter(|one| one.name.starts_with("by-device")) {
        for (class, line) in reported(&log, "audit-found", &application.name) {
            let is_named = class == "leak" && line.contains("field `user-agent`");
            assert!(is_named, "{line}");
        }
    }
    assert!(!log.contains(CANARY), "{log}");
}
