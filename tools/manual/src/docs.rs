//! The pages of the manual that are made from tables in the code, those for `man` among them, a chart from a
//! table of the manual, and the tables of reasons and of small applications in pages written by hand.
//!
//! Options, limits, commands and counters are data in the `pagewell` crate; their pages are written
//! from it (`tables`), never by hand. Pages that are written by hand name reasons, counters and log
//! events that stand in the sources; `named` finds those that a page leaves out. Tests of this
//! module fail where a page is not what the code says, so that `cargo test` finds it.

mod chart;
mod gallery;
mod limits;
mod named;
mod reasons;
mod tables;

pub use tables::{EXAMPLE, EXIT_STATUSES, rows_by_table};

use crate::man;
use std::fs;
use std::path::Path;

/// A page of the manual that is made, not written.
struct GeneratedPage {
    /// Its path from the root of the repository.
    path: &'static str,
    /// The text of the page.
    text: String,
}

/// All of them.
///
/// # Errors
/// A page that another one is made from cannot be read.
fn made(root: &Path) -> Result<[GeneratedPage; 9], String> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("gen-docs: {path}: {error}"))
    };
    let (figures, errors) = (read(chart::PAGE)?, read(reasons::PAGE)?);
    let (tests, applications) = (read(gallery::PAGE)?, read(gallery::GALLERY)?);
    Ok([
        GeneratedPage { path: "contrib/man/pagewell.1", text: man::command() },
        GeneratedPage { path: "contrib/man/pagewell.toml.5", text: man::file() },
        GeneratedPage { path: chart::CHART, text: chart::chart(&figures)? },
        GeneratedPage { path: gallery::PAGE, text: gallery::page(&tests, &applications)? },
        GeneratedPage { path: "docs/operating/commands.md", text: tables::commands() },
        GeneratedPage { path: "docs/operating/counters.md", text: tables::counters() },
        GeneratedPage { path: reasons::PAGE, text: reasons::page(&errors)? },
        GeneratedPage { path: "docs/operating/limits.md", text: limits::page() },
        GeneratedPage { path: "docs/operating/options.md", text: tables::options() },
    ])
}

/// Writes the pages that differ from what the code says.
///
/// # Errors
/// A page cannot be read or written; or the pages written by hand leave out a name, which only a person can
/// mend.
pub fn run(root: &Path) -> Result<(), String> {
    for page in made(root)? {
        let path = root.join(page.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == page.text) {
            continue;
        }
        fs::write(&path, page.text).map_err(|error| format!("gen-docs: {}: {error}", page.path))?;
        println!("gen-docs: wrote {}", page.path);
    }
    match named::left_out(root)?.as_slice() {
        [] => Ok(()),
        names => Err(format!("gen-docs: {}", names.join("\ngen-docs: "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::root::repository;

    #[test]
    fn generated_pages_are_up_to_date() {
        for page in made(&repository()).expect("the pages can be made") {
            let there = fs::read_to_string(repository().join(page.path)).unwrap_or_default();
            assert!(there == page.text, "{} is out of date: cargo xtask gen-docs", page.path);
        }
    }

    #[test]
    fn the_manual_names_every_public_name() {
        let left_out = named::left_out(&repository()).expect("the repository can be read");
        assert!(left_out.is_empty(), "\n{}", left_out.join("\n"));
    }
}
