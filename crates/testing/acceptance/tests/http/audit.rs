//! The gallery of `tests/audit/gallery.txt`: small PHP applications with one fault each, and as many without, on a real
//! php-fpm behind a Pagewell that audits every hit. Each fault is found with its class within 50 requests; no right
//! application is reported. Text of responses and values of fields, which carry canaries, are written nowhere.

use acceptance::{Site, client, counter, is_hit, until};
use harness::{Client, Pagewell, Request, Response};
use std::path::Path;

/// Functions of the applications.
pub(crate) const LIBRARY: &str = r#"<?php
function own(string $what): string { return getenv('NOTES') . "/$what-" . basename($_SERVER['SCRIPT_NAME']); }
function data(): string { return file_exists(own('data')) ? 'new' : 'old'; }
function counter(): int { $n = (int) @file_get_contents(own('count')); file_put_contents(own('count'), $n + 1); return $n; }
function lives(): void { header('Cache-Control: max-age=600'); }
function tagged(): void { lives(); header('Cache-Groups: "news"'); }
"#;

/// Requests to one application until its fault must have been found.
const REQUESTS_MAX: usize = 50;
/// Text that only requests have.
pub(crate) const CANARY: &str = "kanarienvogel";

/// An application with its expected class.
pub(crate) struct Application {
    pub(crate) name: String,
    pub(crate) class: String,
}

/// The applications with their scripts.
pub(crate) fn gallery() -> Vec<(Application, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/audit/gallery.txt");
    let text = std::fs::read_to_string(path).expect("the gallery can be read");
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let mut cells = row.splitn(3, '|').map(str::trim);
        let mut next = || cells.next().unwrap_or_else(|| panic!("three cells: {row}")).to_owned();
        (Application { name: next(), class: next() }, format!("{LIBRARY}{}", next()))
    })
    .collect()
}

/// A request of a visitor with every kind of field.
fn visit(pagewell: &Pagewell, name: &str) -> Response {
    let request = Request::get(&format!("/{name}.php?utm_source={CANARY}"))
        .header("User-Agent", &format!("Odd/1.0 {CANARY}"))
        .header("Accept-Language", &format!("fr-{CANARY}"))
        .header("Referer", &format!("http://{CANARY}.test/"))
        .header("Cookie", &format!("_ga={CANARY}"));
    client(pagewell).host("a.test").send(&request).expect("an answer")
}

/// The classes that were reported for an application.
fn reported(log: &str, name: &str) -> Vec<String> {
    let url = format!("/{name}.php");
    let lines = log.lines().filter(|line| line.contains("audit-found"));
    let of_it = lines.filter(|line| {
        let mut words = line.split([' ', '"', '=']);
        words.any(|word| word.split('?').next() == Some(url.as_str()))
    });
    of_it
        .filter_map(|line| {
            let class = line.split("class=").nth(1)?;
            Some(class.trim_start_matches('"').split([' ', '"']).next()?.to_owned())
        })
        .collect()
}

/// The comparisons that have ended, or found a page wrong for the first time.
fn ended(pagewell: &Pagewell) -> u64 {
    let names = ["audit_compared", "audit_unjudged", "audit_suspected"];
    names.iter().map(|name| counter(pagewell, name)).sum()
}

/// The whole log.
pub(crate) fn log(pagewell: &Pagewell) -> String {
    std::fs::read_to_string(pagewell.dir().join("pagewell.log")).expect("there is a log")
}

/// Sends hits until the class was reported. Returns the number of requests.
///
/// # Errors
/// The classes that were reported instead.
fn find(pagewell: &Pagewell, application: &Application) -> Result<usize, String> {
    let Application { name, class } = application;
    for requests in 1..=REQUESTS_MAX {
        let before = ended(pagewell);
        assert!(is_hit(&visit(pagewell, name)) || requests > 1, "{name}: a hit");
        until("the comparison ends", || ended(pagewell) > before);
        if reported(&log(pagewell), name).contains(class) {
            return Ok(requests + 1);
        }
    }
    let found = reported(&log(pagewell), name);
    Err(format!("{name}: {class} was not found; reported: {found:?}"))
}

#[test]
fn an_audit_finds_each_fault_of_the_gallery_and_no_other() {
    let gallery = gallery();
    let is_right = |class: &str| class == "right";
    let count = |right: bool| {
        gallery.iter().filter(|(application, _)| is_right(&application.class) == right).count()
    };
    assert!(count(true) >= 40 && count(false) >= 40, "{} and {}", count(true), count(false));
    let site = Site::new(&[]);
    for (application, script) in &gallery {
        site.file(&format!("{}.php", application.name), script);
    }
    let pagewell = site.serve("audit = \"1 in 1\"\nphp.children = 4\n");
    let named = |right: bool, leak: bool| {
        let all = gallery.iter().map(|(application, _)| application);
        let wanted = move |application: &&Application| {
            is_right(&application.class) == right && (application.class == "leak") == leak
        };
        all.filter(wanted)
    };
    let mut faults = Vec::new();
    let mut show = |application: &Application, found: Result<usize, String>| match found {
        Ok(requests) => {
            println!("{:<18} {:<16} after {requests}", application.name, application.class);
        }
        Err(fault) => faults.push(fault),
    };
    for leak in named(false, true) {
        visit(&pagewell, &leak.name);
        show(leak, find(&pagewell, leak));
    }
    let others: Vec<&Application> = named(false, false).chain(named(true, false)).collect();
    for application in &others {
        visit(&pagewell, &application.name);
        // Pages that are younger may be those of their first visitors.
        let clock = Request::new("POST", "/v1/clock")
            .header("Content-Type", "application/json")
            .content(br#"{"advance_ms":10001}"#);
        let mut admin = Client::new(pagewell.admin().clone()).host("localhost");
        assert_eq!(admin.send(&clock).expect("an answer").status, 200);
        std::fs::write(site.at("notes").join(format!("data-{}.php", application.name)), "")
            .expect("a note can be left");
        if is_right(&application.class) {
            let before = ended(&pagewell);
            let response = visit(&pagewell, &application.name);
            assert!(
                is_hit(&response),
                "{}: {:?}",
                application.name,
                response.header("cache-status")
            );
            until(&application.name, || ended(&pagewell) > before);
        } else {
            show(application, find(&pagewell, application));
        }
    }
    let log = log(&pagewell);
    for application in others.iter().filter(|application| is_right(&application.class)) {
        let found = reported(&log, &application.name);
        if !found.is_empty() {
            faults.push(format!("{}: reported as {found:?}", application.name));
        }
    }
    assert_eq!(faults, [""; 0]);
    assert!(!log.contains(CANARY), "{log}");
}
