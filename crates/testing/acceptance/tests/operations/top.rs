//! `pagewell top` on the real binary, in a real terminal: its display, changes of size, keys, signals, and the
//! restored terminal settings. Without a terminal, it prints one table.

use acceptance::{BOUND, Site, binary, client};
use harness::{Pagewell, Signal, Terminal};
use std::process::Command;

fn kept_site() -> Site {
    Site::new(&[("index.php", "<?php keep(); header('Cache-Groups: \"a\"'); echo 1;")])
}

fn watch(pagewell: &Pagewell, columns: u16, rows: u16) -> Terminal {
    let admin = pagewell.admin().to_string();
    Terminal::run(binary(), &["top", "--admin", &admin], columns, rows).expect("it runs")
}

/// The value in the line of a metric.
fn value<'a>(lines: &'a [String], name: &str) -> &'a str {
    let line = lines.iter().find(|line| line.trim_start().starts_with(name));
    line.map_or("", |line| line.trim_start().strip_prefix(name).unwrap_or_default().trim_start())
}

#[test]
fn top_shows_activity_and_restores_the_terminal() {
    let site = kept_site();
    let pagewell = site.serve("");
    let mut terminal = watch(&pagewell, 80, 24);
    // A rate is shown from the second sample on: requests from now on are between two samples.
    terminal
        .until(BOUND, |lines| value(lines, "Requests").starts_with("0/s"))
        .expect("nothing yet");
    let own = terminal.settings().expect("settings");
    assert_ne!(own, terminal.settings_before(), "no echo while it is shown");
    let mut visitor = client(&pagewell);
    for _ in 0..12 {
        visitor.get("/").expect("an answer");
    }
    let lines = terminal
        .until(BOUND, |lines| value(lines, "Requests").contains("12 since"))
        .expect("they are counted");
    assert!(value(&lines, "Hit ratio").starts_with("91.7 %"), "{lines:#?}");
    assert!(value(&lines, "Memory").contains(" 1 page"), "{lines:#?}");
    assert!(lines.len() == 24 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    for (columns, rows) in [(132, 43), (30, 8), (80, 24)] {
        terminal.resize(columns, rows).expect("a size");
        let fits = |lines: &[String]| {
            let widest = lines.iter().map(|line| line.chars().count()).max();
            // The heading is as wide as the terminal.
            widest == Some(columns.into()) && lines.len() <= rows.into()
        };
        terminal.until(BOUND, fits).expect("it is drawn anew");
    }
    terminal.press("q").expect("a key");
    let status = terminal.wait(BOUND).expect("it ends");
    assert!(status.success(), "{status}");
    is_given_back(&terminal);
}

fn is_given_back(terminal: &Terminal) {
    assert_eq!(terminal.settings().expect("settings"), terminal.settings_before());
    let written = terminal.written();
    let [entered, left] = ["\x1b[?1049h", "\x1b[?1049l"].map(|sequence| written.rfind(sequence));
    assert!(entered < left, "the other screen was left");
    assert!(written.rfind("\x1b[?25l") < written.rfind("\x1b[?25h"), "the cursor is seen");
}

#[test]
fn signals_end_top_gracefully() {
    let site = kept_site();
    let pagewell = site.serve("");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut terminal = watch(&pagewell, 80, 24);
        terminal.until(BOUND, |lines| !value(lines, "Memory").is_empty()).expect("it is shown");
        terminal.signal(signal);
        let status = terminal.wait(BOUND).expect("it ends");
        assert!(status.success(), "{signal:?}: {status}");
        is_given_back(&terminal);
    }
    // The terminal sends the signal for Ctrl-C.
    let mut terminal = watch(&pagewell, 80, 24);
    terminal.until(BOUND, |lines| !value(lines, "Memory").is_empty()).expect("it is shown");
    terminal.press("\x1a\x1c\x03").expect("keys");
    assert!(terminal.wait(BOUND).expect("it ends").success());
    is_given_back(&terminal);
}

#[test]
fn top_waits_for_a_pagewell_that_has_stopped() {
    let site = kept_site();
    let admin = site.at("admin.sock").display().to_string();
    let serve = || site.serve_with_args(&["--admin", &format!("unix:{admin}")]);
    let mut pagewell = serve();
    let mut terminal = watch(&pagewell, 80, 24);
    terminal.until(BOUND, |lines| !value(lines, "Memory").is_empty()).expect("it is shown");
    pagewell.stop();
    terminal
        .until(BOUND, |lines| lines.iter().any(|line| line.contains("trying again")))
        .expect("it says so");
    let again = serve();
    client(&again).get("/").expect("an answer");
    terminal
        .until(BOUND, |lines| value(lines, "Requests").contains("1 since"))
        .expect("it is there again");
}

#[test]
fn without_a_terminal_it_prints_a_table_and_ends() {
    let site = kept_site();
    let pagewell = site.serve("");
    client(&pagewell).get("/").expect("an answer");
    let admin = pagewell.admin().to_string();
    let run = |args: &[&str]| {
        let args = [&["top", "--admin", &admin], args].concat();
        Command::new(binary()).args(args).output().expect("it runs")
    };
    let output = run(&[]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("Requests") && text.contains("1 since the start"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    let output = run(&["--site", "nobody.test"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody.test"), "{output:?}");
    drop(pagewell);
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is it running"), "{output:?}");
}
