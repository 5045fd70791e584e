//! `cargo measure redirects`: how long redirect files take at a start or reload, to be read and to be searched for
//! redirects that never end. The figures are those of the build of this program: `cargo run --release -p bench --
//! redirects` measures that of a release.
//!
//! The targets of half of the lines are no old paths; the others are in chains of twenty, the longest that browsers
//! follow. Each target is compared with the rules of the site. Invariant: a search that finds a fault in these lines does
//! not count.

use harness::{PrivateDir, Stopwatch};
use serde_json::json;
use site_files::RedirectFiles;
use site_rules::{KeyForm, Secret, SiteRules, Surroundings, raw};
use std::fmt::Write as _;
use std::fs;

/// The length of the chains, in redirects.
const CHAIN: usize = 20;

/// How much is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct LineCount {
    /// The number of lines
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    lines: u32,
    /// The number of rules with deny, and of those with redirect
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=250))]
    rules: u32,
}

/// Reads the lines, searches them, and prints the figures.
///
/// # Errors
/// A message, if a line is refused or the search is wrong.
pub fn run(amount: &LineCount) -> Result<(), String> {
    let dir = PrivateDir::temporary("redirects").map_err(|error| format!("bench: {error}"))?;
    let file = dir.path().join("redirects.tsv");
    fs::write(&file, lines(amount.lines as usize)).map_err(|error| format!("bench: {error}"))?;
    let mut rules = rules(amount.rules)?;
    let (form, names) = (KeyForm::read(&raw::Keys::default())?, [file.display().to_string()]);
    let began = Stopwatch::start();
    let (map, _) = RedirectFiles::read(&names, &form, None)?;
    let reading = began.elapsed();
    rules.set_redirect_map(map);
    let began = Stopwatch::start();
    let found = rules.loops_of_lines(&["a.test"]);
    let searching = began.elapsed();
    if let Some(fault) = found.first() {
        return Err(format!("bench: {}", fault.message));
    }
    let milliseconds = [reading, searching].map(|time| time.as_secs_f64() * 1e3);
    let [reading, searching] = milliseconds;
    println!(
        "{} lines, {} rules: {reading:.0} ms to read, {searching:.0} ms to search for loops",
        amount.lines,
        amount.rules * 2
    );
    let figures = json!({ "lines": amount.lines, "rules": amount.rules * 2, "read_ms": reading, "search_ms": searching });
    super::write("redirects", &figures).map(drop)
}

fn lines(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = match at {
            _ if at < count / 2 => {
                writeln!(text, "/archive/{at}/an-old-title\t/blog/{at}/a-title/")
            }
            _ if at % CHAIN == CHAIN - 1 => writeln!(text, "/moved/{at}\t/blog/{at}/"),
            _ => writeln!(text, "/moved/{at}\t/moved/{}", at + 1),
        };
    }
    text
}

/// Rules with patterns of the usual kinds.
fn rules(count: u32) -> Result<SiteRules, String> {
    let written = (0..count).flat_map(|at| {
        [
            json!({ "path_regex": format!("\\.(sql|bak{at})$"), "deny": 403 }),
            json!({ "path": format!("/old-{at}/**"), "redirect": "/new/$1" }),
        ]
    });
    let read = |rule| serde_json::from_value(rule).map_err(|error| format!("bench: {error}"));
    let written: Vec<raw::Rule> = written.map(read).collect::<Result<_, _>>()?;
    let around = Surroundings {
        base: http_cache::Policy::default(),
        secret: Secret::new([7; 32]),
        has_trusted_proxies: false,
        files: None,
    };
    SiteRules::read(&written, &raw::Keys::default(), &raw::Cookies::default(), around)
        .map_err(|error| format!("bench: {error}"))
}
