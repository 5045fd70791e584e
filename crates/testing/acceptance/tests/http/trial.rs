//! The gallery of `tests/audit/gallery.txt` under trial: visitors of four kinds get the origin's answers only, and each
//! fault is found with its class and cause within the requests that the gallery names; no right application is reported
//! as wrong, and none has a difference that renders did not explain.
//!
//! The whole gallery is a target of its own (`make trial`); a part of it is tested with all other tests. With
//! `GALLERY=write` the whole writes into the gallery after how many requests each fault was found, and two more.

use crate::audit::{Application, CANARY, RULES, gallery, gallery_path, log};
use acceptance::{Site, advance, client, counter, is_hit, trial_report, trial_suspects};
use harness::{Pagewell, Request};
use serde_json::Value;
use std::collections::HashMap;

/// Requests to one application that has no bound yet, until its fault must have been found.
const REQUESTS_MAX: usize = 50;
/// Requests above those that were needed, for a machine that is too busy to compare each of them.
const ROOM: usize = 2;

/// Sends what right applications answer for one visitor, by method, or in part. Nothing of it is compared.
fn visit_otherwise(pagewell: &Pagewell, name: &str) {
    let path = format!("/{name}.php");
    let get = |field, value| Request::get(&path).header(field, value);
    let requests = match name {
        "by-session" => vec![get("Cookie", "PHPSESSID=0123456789abcdef")],
        "by-method" => vec![Request::new("HEAD", &path), Request::form(&path, "")],
        "partial-content" => vec![get("Range", "bytes=0-3")],
        "not-modified" => vec![get("If-None-Match", "\"1\"")],
        _ => Vec::new(),
    };
    for request in requests {
        let response = client(pagewell).host("a.test").send(&request).expect("an answer");
        assert!(!is_hit(&response), "{name}: nothing stored is sent");
    }
}

/// A request of one of four kinds of visitors, and the end of its comparison. Some of the first kind and of the last one
/// come after other requests.
pub(crate) fn visit(pagewell: &Pagewell, name: &str, number: usize) {
    if matches!(number, 0 | 3) {
        visit_otherwise(pagewell, name);
    }
    let page = if name == "by-query" && number % 4 > 1 { "?page=2" } else { "" };
    let path = format!("/{name}.php{page}");
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0";
    let phone = "Mozilla/5.0 (Android 14; Mobile; rv:130.0) Gecko/130.0 Firefox/130.0";
    let request = match number % 4 {
        0 if name.ends_with("-phone") => Request::get(&path).header("User-Agent", phone),
        0 => Request::get(&format!("{path}?utm_source={CANARY}"))
            .header("User-Agent", &format!("Odd/1.0 {CANARY}"))
            .header("Accept-Language", &format!("fr-{CANARY}"))
            .header("Referer", &format!("http://{CANARY}.test/"))
            .header("Accept", "text/plain")
            .header("DNT", "1")
            .header("CF-IPCountry", "FR")
            .header("Cookie", &format!("_ga={CANARY}")),
        1 => Request::get(&path).header("User-Agent", firefox).header("Accept-Language", "en"),
        2 => Request::get(&path)
            .header("User-Agent", phone)
            .header("Accept-Language", "de")
            .header("CF-IPCountry", "DE")
            .header("Cookie", "currency=USD; _ga=1"),
        _ => Request::get(&path)
            .header("User-Agent", firefox)
            .header("Accept-Language", "en")
            .header("Cookie", "consent=yes; cookieyes-consent=yes"),
    };
    let before = counter(pagewell, "trial_answers");
    let response = client(pagewell).host("a.test").send(&request).expect("an answer");
    assert!(!is_hit(&response), "{name}: nothing stored is sent");
    let is_done = || counter(pagewell, "trial_answers") > before;
    assert!(wait_by_the_clock(pagewell, is_done), "{name}: the comparison does not end");
}

/// Waits for something that may wait for the clock, to see whether a text follows it. Returns whether it happens.
fn wait_by_the_clock(pagewell: &Pagewell, is_done: impl Fn() -> bool) -> bool {
    for round in 0..1_200 {
        if is_done() {
            return true;
        }
        if round >= 20 {
            advance(pagewell, 1);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    false
}

/// The applications that a trial can judge.
fn applications() -> Vec<Application> {
    gallery().into_iter().filter(Application::is_for_trials).collect()
}

/// Whether a page with a fault of this class is watched for a minute before it is reported: a purge would be late.
fn is_watched(class: &str) -> bool {
    matches!(class, "broken-promise" | "aged" | "late")
}

/// The requests to one application, and after how many of them its fault was reported.
#[derive(Clone, Copy, Default)]
struct Visits {
    sent: usize,
    found_after: Option<usize>,
}

/// A trial, and the requests that it got.
struct RunningTrial<'p, 'a> {
    pagewell: &'p Pagewell,
    visits: HashMap<&'a str, Visits>,
}

impl<'a> RunningTrial<'_, 'a> {
    /// The problems that are reported so far.
    fn problems(&self) -> Value {
        trial_report(self.pagewell)["problems"].take()
    }

    /// Sends a request, and notes whether the fault is known then.
    fn send(&mut self, application: &'a Application, number: usize) {
        visit(self.pagewell, &application.name, number);
        self.visits.entry(application.name.as_str()).or_default().sent += 1;
        if is_watched(&application.class) && application.class != "late" {
            self.end_watch();
        }
        self.look(application);
    }

    /// Lets the minute pass for which pages are watched.
    fn end_watch(&self) {
        let is_watching = || counter(self.pagewell, "audit_watched") > 0;
        if is_watching() {
            advance(self.pagewell, 61);
            wait_by_the_clock(self.pagewell, || !is_watching());
        }
    }

    /// Notes whether the fault of an application is reported.
    fn look(&mut self, application: &'a Application) {
        let Application { name, class, .. } = application;
        let visits = self.visits.get(name.as_str()).copied().unwrap_or_default();
        if class == "right" || visits.found_after.is_some() {
            return;
        }
        let problems = self.problems();
        let is_found = found(&problems, name).iter().any(|(found, _)| found == class);
        let visits = self.visits.entry(name.as_str()).or_default();
        visits.found_after = is_found.then_some(visits.sent);
    }

    fn is_found(&self, application: &Application) -> bool {
        self.visits.get(application.name.as_str()).is_some_and(|it| it.found_after.is_some())
    }
}

/// Runs a trial over these applications. Returns its faults, and the requests: a fault of an application that is not
/// found with its class and cause within its requests is one, and a right application that is reported or suspect.
fn trial(all: &[Application]) -> (Vec<String>, HashMap<&str, Visits>) {
    let site = Site::new(&[]);
    for application in all {
        site.file(&format!("{}.php", application.name), &application.script);
    }
    let config = "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n";
    let pagewell = site.serve(&format!("{config}{RULES}"));
    let mut trial = RunningTrial { pagewell: &pagewell, visits: HashMap::new() };
    for application in all {
        (0..2).for_each(|_| trial.send(application, 0));
    }
    advance(&pagewell, 11);
    for application in all {
        let Application { name, class, .. } = application;
        std::fs::write(site.at("notes").join(format!("data-{name}.php")), "")
            .expect("a note can be left");
        if class == "late" {
            let renders = || counter(&pagewell, "audit_renders");
            let before = renders();
            // A comparison with a verdict against a page has six renders.
            for number in (1..6).take_while(|_| renders() < before + 6) {
                trial.send(application, number);
            }
            let purge = Request::new("PURGE", &format!("/{name}.php"));
            client(&pagewell).host("a.test").send(&purge).expect("an answer");
            wait_for(|| counter(&pagewell, "audit_watched") == 0);
            trial.look(application);
        } else {
            (1..6).for_each(|number| trial.send(application, number));
        }
    }
    for application in all {
        let mut number = 6;
        while application.class != "right"
            && !is_watched(&application.class)
            && number < REQUESTS_MAX - 2
            && !trial.is_found(application)
        {
            trial.send(application, number);
            number += 1;
        }
    }
    trial.end_watch();
    assert!(!log(&pagewell).contains(CANARY), "{}", log(&pagewell));
    let mut faults = judged(all, &trial.problems(), &trial.visits);
    faults.extend(unexplained(all, trial_suspects(&pagewell)));
    (faults, trial.visits)
}

/// The suspects that are not of an application with a fault.
fn unexplained(all: &[Application], suspects: Vec<String>) -> Vec<String> {
    let is_of = |suspect: &str, application: &Application| {
        application.class != "right" && suspect.contains(&format!("/{}.php", application.name))
    };
    let suspects = suspects.into_iter();
    suspects.filter(|suspect| !all.iter().any(|one| is_of(suspect, one))).collect()
}

/// The problems that are reported for an application: the class of each, and its cause.
fn found<'p>(problems: &'p Value, name: &str) -> Vec<(&'p str, &'p str)> {
    let url = format!("/{name}.php");
    let problems = problems.as_array().expect("a list").iter();
    let is_of_it = |problem: &&Value| {
        // The names of parameters may follow.
        let of = problem["url"].as_str().and_then(|found| found.split('?').next());
        of == Some(url.as_str())
    };
    problems.filter(is_of_it).map(class_and_cause).collect()
}

/// The class of a problem, and its cause.
fn class_and_cause(problem: &Value) -> (&str, &str) {
    (problem["class"].as_str().unwrap_or_default(), problem["cause"].as_str().unwrap_or_default())
}

/// Prints the table of the faults (fault, class, found after, cause), and returns what is missing or wrong in it.
fn judged(all: &[Application], problems: &Value, visits: &HashMap<&str, Visits>) -> Vec<String> {
    let mut faults = Vec::new();
    for application in all {
        let Application { name, class, within, .. } = application;
        let found = found(problems, name);
        let named = found.iter().find(|(found, _)| found == class);
        match (class.as_str(), named) {
            ("right", _) if !found.is_empty() => {
                faults.push(format!("{name}: reported as {found:?}"));
            }
            ("right", _) => {}
            (_, None) => faults.push(format!("{name}: {class} was not found, but {found:?}")),
            (_, Some((_, named))) => {
                let Visits { sent, found_after } = visits[name.as_str()];
                let after = found_after.unwrap_or(sent);
                println!("| {name} | {class} | {after} | {named} |");
                if application.cause.is_empty() || !named.contains(&*application.cause) {
                    faults.push(format!("{name}: another cause: {named}"));
                }
                if after > within.unwrap_or(REQUESTS_MAX) {
                    faults.push(format!("{name}: found after {after} requests, not {within:?}"));
                }
            }
        }
    }
    faults
}

/// Writes into the gallery after how many requests each fault was found, with room for a busy machine.
fn write_gallery(visits: &HashMap<&str, Visits>) {
    let text = std::fs::read_to_string(gallery_path()).expect("the gallery can be read");
    let measured = |line: &str| {
        let marked = line.split('|').next()?;
        let name = marked.trim_start_matches(|letter: char| !letter.is_alphabetic()).trim();
        let after = visits.get(name).and_then(|visits| visits.found_after)?;
        let cell = format!(" {:<6} ", after + ROOM);
        let mut cells: Vec<&str> = line.splitn(5, '|').collect();
        *cells.get_mut(3)? = &cell;
        Some(cells.join("|"))
    };
    let line = |line: &str| {
        let is_row = !line.starts_with('#');
        is_row.then(|| measured(line)).flatten().unwrap_or_else(|| line.to_owned()) + "\n"
    };
    let written: String = text.lines().map(line).collect();
    std::fs::write(gallery_path(), written).expect("the gallery can be written");
}

/// Waits for a while, and goes on if it does not happen: the table shows what is missing.
fn wait_for(is_done: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if is_done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_trial_finds_faults_of_each_class_with_their_causes() {
    let wanted = [
        "tag-file",
        "tag-beside-nonce",
        "tag-language",
        "tag-number",
        "late-file",
        "life-json",
        "by-agent",
        "by-device",
        "by-device-phone",
        "vary-device",
        "key-device",
        "by-language",
        "by-address",
        "clock-unix",
        "draw-of-two",
        "draw-few-posts",
        "lagging",
        "by-currency",
        "by-both",
        "loses-utm",
        "by-referrer",
        "by-analytics",
        "by-banner",
        "by-session",
        "not-modified",
        "plain",
        "nonce",
        "json-order",
        "pdf-date",
        "vary-language",
        "vary-country",
        "gzip",
        "large",
        "redirect",
    ];
    let mut all = applications();
    all.retain(|application| wanted.contains(&application.name.as_str()));
    assert_eq!(trial(&all).0, [""; 0]);
}

#[test]
#[ignore = "make trial"]
fn a_trial_finds_each_fault_of_the_gallery_and_its_cause() {
    let all = applications();
    let right = all.iter().filter(|application| application.class == "right").count();
    let wrong = all.len() - right;
    assert!(right >= 40 && wrong >= 40, "{right} and {wrong}");
    let (faults, visits) = trial(&all);
    if std::env::var("GALLERY").is_ok_and(|what| what == "write") {
        write_gallery(&visits);
    }
    assert_eq!(faults, [""; 0]);
}
