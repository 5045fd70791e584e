//! `cargo xtask tidy`: the rules of the house, as code.
//!
//! Each rule is a function from the repository's files to findings, and has tests that show it can
//! find something. Checks of the compiler, clippy and rustfmt are left to them. The same rules
//! run as a test of this crate, so that `cargo test` fails where this task would.

mod changed_lines;
mod cycles;
mod decisions;
mod doc_comments;
mod files;
mod flags;
mod layers;
mod left_out;
mod lexer;
pub mod licences;
mod manifests;
mod manual_size;
mod markdown;
mod messages;
mod prose;
mod questions;
mod ratchet;
mod repository;
mod shape;
mod type_names;
mod words;

use changed_lines::ChangedLines;
use files::SourceFile;
use ratchet::RatchetNumber;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Where the ratchet's records are.
const RATCHET: &str = "xtask/tidy.toml";

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

fn finding(file: &SourceFile, line: usize, rule: &'static str, message: &str) -> Finding {
    Finding { path: file.path.clone(), line, rule, message: message.to_owned() }
}

/// The findings of all rules, rule by rule.
pub struct Outcome {
    rules: Vec<(&'static str, Vec<Finding>)>,
    notes: Vec<String>,
    files: usize,
}

impl Outcome {
    /// Everything that was found.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.rules.iter().flat_map(|(_, found)| found)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.findings() {
            writeln!(f, "{finding}")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        let failed = self.rules.iter().filter(|(_, found)| !found.is_empty()).count();
        let passed = self.rules.len() - failed;
        write!(f, "tidy: {} files, rules: {passed} passed, {failed} failed", self.files)
    }
}

/// Runs all rules over the repository at `root`; `tasks` are the names of this program's tasks.
///
/// # Errors
/// When the files cannot be read.
pub fn run(root: &Path, tasks: &[String]) -> io::Result<Outcome> {
    let files = files::read(root)?;
    let recorded = fs::read_to_string(root.join(RATCHET))?;
    let numbers = numbers(&files);
    let rules = vec![
        ("opening", shape::openings(&files)),
        ("ratchet", ratchet::faults(&numbers, &recorded, || ChangedLines::since_main(root))),
        ("layer", layers::layers(&manifests::members(&files))),
        ("left-out", left_out::left_out(&files)),
        ("name", words::names(&files)),
        ("mention", words::mentions(&files)),
        ("unwrap", words::unwraps(&files)),
        ("white-space", words::white_space(&files)),
        ("link", markdown::links(&files, root)),
        ("path", markdown::paths(&files, root)),
        ("name-in-file", markdown::names_in_files(&files)),
        ("unreachable", markdown::reachable(&files)),
        ("decision", decisions::decisions(&files)),
        ("question", questions::questions(&files)),
        ("command", markdown::commands(&files, tasks)),
        ("licence", licences::licences(root)),
        ("repository", repository::addresses(&files)),
    ];
    let mut notes = ratchet::slack(&numbers, &recorded);
    notes.extend(shape::nearly_full(&files, &manifests::members(&files)));
    Ok(Outcome { rules, notes, files: files.len() })
}

/// Everything that the ratchet keeps.
fn numbers(files: &[SourceFile]) -> Vec<RatchetNumber> {
    let mut all = shape::lengths(files);
    let members = manifests::members(files);
    all.extend(shape::crate_sizes(files, &members));
    all.extend(cycles::cycles(files, &members));
    all.extend([type_names::participles(files), doc_comments::short(files), flags::flags(files)]);
    all.extend(prose::comments(files));
    all.extend(prose::documents(files));
    all.extend(manual_size::sizes(files));
    all.extend(messages::messages(files));
    all.extend(type_names::repeated(files));
    all
}

/// Lowers the ratchet's records to what is true now.
///
/// # Errors
/// When the files cannot be read or the record cannot be written.
pub fn lower(root: &Path) -> io::Result<()> {
    let path = root.join(RATCHET);
    let recorded = fs::read_to_string(&path)?;
    fs::write(path, ratchet::lowered(&numbers(&files::read(root)?), &recorded))
}

/// All places of one number of the ratchet, a line each.
///
/// # Errors
/// There is no such number: then the names of all; or the files cannot be read.
pub fn list(root: &Path, name: &str) -> Result<String, String> {
    let numbers = numbers(&files::read(root).map_err(|error| format!("tidy: {error}"))?);
    let Some(number) = numbers.iter().find(|number| number.name == name) else {
        let names: Vec<&str> = numbers.iter().map(|number| number.name.as_str()).collect();
        return Err(format!("tidy: the ratchet has no {name}, only {}", names.join(", ")));
    };
    let places: String = number.places.iter().map(|place| format!("{place}\n")).collect();
    Ok(format!("{places}tidy: {name} = {}", number.value))
}
