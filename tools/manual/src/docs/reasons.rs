//! The tables of reasons in the page about errors, made from `reasons::Reason`.
//!
//! They stand between two marks in a page that is otherwise written by hand.

use reasons::{Reason, ReasonTable};
use std::fmt::Write as _;

/// The page with the tables.
pub const PAGE: &str = "docs/operating/errors.md";

const END: &str = "<!-- end of the table -->";

/// Returns the page with its tables as the code says.
///
/// # Errors
/// A mark is missing.
pub fn page(written: &str) -> Result<String, String> {
    let mut text = written.to_owned();
    for section in ReasonTable::ALL {
        let mark = format!("<!-- Made by `cargo xtask gen-docs`: {section:?} -->\n");
        let missing = || format!("{PAGE}: no {}", mark.trim());
        let begin = text.find(&mark).ok_or_else(missing)? + mark.len();
        let end = begin + text[begin..].find(END).ok_or_else(missing)?;
        text.replace_range(begin..end, &table(section));
    }
    Ok(text)
}

/// Returns the table of a section. Reasons in a row with the same meaning and remedy share a line.
fn table(section: ReasonTable) -> String {
    let (name, has_status, has_remedy) = columns(section);
    let mut table = format!("| {name} |");
    let mut line = String::from("|---|");
    let optional = [(has_status, "Status"), (true, "Reason"), (has_remedy, "Remedy")];
    for (_, column) in optional.into_iter().filter(|(is_there, _)| *is_there) {
        let _ = write!(table, " {column} |");
        line.push_str("---|");
    }
    let _ = write!(table, "\n{line}\n");
    let is_here = |reason: &&Reason| reason.sections().contains(&section);
    let all: Vec<Reason> = Reason::ALL.iter().filter(is_here).copied().collect();
    for same in all.chunk_by(|one, other| cells(*one, section) == cells(*other, section)) {
        let names: Vec<String> = same.iter().map(|reason| format!("`{reason}`")).collect();
        let _ = writeln!(table, "| {} |{}", names.join(", "), cells(same[0], section));
    }
    table
}

/// The name of the first column of a section's table, and whether it has a status and a remedy.
fn columns(section: ReasonTable) -> (&'static str, bool, bool) {
    match section {
        ReasonTable::Forwarded => ("`fwd`", false, false),
        ReasonTable::Bypassed | ReasonTable::Late | ReasonTable::NotStored => {
            ("Detail", false, true)
        }
        ReasonTable::Failed => ("Detail", true, true),
        ReasonTable::Refused | ReasonTable::Answered => ("Name", true, false),
        ReasonTable::Text => ("Name", false, false),
    }
}

fn cells(reason: Reason, section: ReasonTable) -> String {
    let (_, has_status, has_remedy) = columns(section);
    let mut cells = String::new();
    if has_status {
        let _ = write!(cells, " {} |", reason.status());
    }
    let _ = write!(cells, " {} |", reason.meaning());
    if has_remedy {
        let advice = reason.advice().unwrap_or_default();
        let advice = if advice.starts_with("Nothing:") { "Nothing." } else { advice };
        let _ = write!(cells, " {advice} |");
    }
    cells
}
