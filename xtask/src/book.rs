//! `cargo xtask book`: the manual as HTML with a search, made by mdBook, in `target/book/html`. It is read without
//! a network.
//!
//! The list of pages is `docs/README.md` and nothing else ([`pages`]): its sections are the parts of the book, the
//! pages that it links to the chapters. Links to files that are no chapter (code, decisions) become plain text.
//! After the build every link is checked, and so is the first result of some searches ([`search`]).
//!
//! mdBook is a program of its own, which `scripts/setup dist` and `package` install: as a library it would be
//! built with the tests.

mod pages;
mod search;

use crate::package;
use harness::root::{self, Profile};
use pages::Book;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Searches of users.
const SEARCHES: [search::Search; 7] = [
    ("old page", "old page", "troubleshooting.html"),
    ("letsencrypt", "letsencrypt", "guide/certbot.html"),
    ("kubernetes", "kubernet", "operating/containers.html"),
    ("crawler", "crawler", "guide/crawlers.html"),
    ("ubuntu", "ubuntu", "install.html"),
    ("woocommerce", "woocommerc", "guide/shops.html"),
    ("purge tag", "purg tag", "guide/purging.html"),
];

/// The settings of mdBook. Titles count most in a search, so that the page about a word comes first.
const SETTINGS: &str = r#"[book]
title = "Pagewell"
language = "en"
src = "src"

[build]
build-dir = "html"
create-missing = false
use-default-preprocessors = false

[output.html]
no-section-label = true
smart-punctuation = false

[output.html.print]
enable = false

[output.html.search]
limit-results = 20
use-boolean-and = true
boost-title = 8
boost-hierarchy = 8
boost-paragraph = 1
expand = true
heading-split-level = 2
"#;

/// The book in `target/book/html`. Returns its first page.
///
/// # Errors
/// Those of [`build`].
pub fn run() -> Result<PathBuf, String> {
    Ok(build(&root::target().join("book"))?.join("index.html"))
}

/// Builds the book for a package into a directory of it, below `place`. A package for tests has none where mdBook
/// is not installed.
///
/// # Errors
/// Those of [`build`], or a file cannot be copied.
pub fn install(place: &Path, to: &Path, profile: Profile) -> Result<(), String> {
    if profile == Profile::Dev && program().is_none() {
        return Ok(());
    }
    copy(&build(&place.join("book"))?, to)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    for entry in fs::read_dir(from).map_err(|error| fault(from, error))? {
        let path = entry.map_err(|error| fault(from, error))?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            package::write(&to, &package::read(&path)?, 0o644)?;
        }
    }
    Ok(())
}

/// Builds the book in a directory, and checks its links and searches. Returns the directory of the HTML.
///
/// # Errors
/// mdBook is not installed or has failed; the links that lead nowhere; the searches with another first result.
fn build(place: &Path) -> Result<PathBuf, String> {
    let program = program().ok_or(
        "book: mdbook is not installed: scripts/setup package, or \
         cargo install --locked --no-default-features --features search mdbook",
    )?;
    let _ = fs::remove_dir_all(place);
    write_sources(&Book::read(&root::repository())?, place)?;
    let built = Command::new(&program).arg("build").arg(place).output();
    let built = built.map_err(|error| format!("book: {}: {error}", program.display()))?;
    if !built.status.success() {
        return Err(format!("book: mdbook: {}", String::from_utf8_lossy(&built.stderr)));
    }
    let html = place.join("html");
    let mut faults = dead_links(&html)?;
    faults.extend(search::wrong(&html, &SEARCHES)?);
    if faults.is_empty() { Ok(html) } else { Err(format!("book: {}", faults.join("\nbook: "))) }
}

/// mdBook, if it is installed: beside the other tools of a release, or on the path.
fn program() -> Option<PathBuf> {
    let own = root::target().join("dist-tools/bin/mdbook");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("mdbook"));
    std::iter::once(own).chain(on_path).find(|program| program.is_file())
}

fn write_sources(book: &Book, place: &Path) -> Result<(), String> {
    let source = place.join("src");
    write(&place.join("book.toml"), SETTINGS.as_bytes())?;
    write(&source.join("SUMMARY.md"), book.summary().as_bytes())?;
    for chapter in &book.chapters {
        write(&source.join(&chapter.path), chapter.text.as_bytes())?;
    }
    for (from, to) in &book.images {
        let image = fs::read(from).map_err(|error| fault(from, error))?;
        write(&source.join(to), &image)?;
    }
    Ok(())
}

/// The links of all pages that lead to no file or no heading, or that load something from the network.
fn dead_links(html: &Path) -> Result<Vec<String>, String> {
    let mut pages = Vec::new();
    html_files(html, &mut pages)?;
    let mut found = BTreeSet::new();
    for page in
        pages.iter().filter(|page| !page.ends_with("toc.html") && !page.ends_with("404.html"))
    {
        let text = fs::read_to_string(page).map_err(|error| fault(page, error))?;
        let directory = page.parent().unwrap_or(html);
        for target in attributes(&text, "href=\"")
            .filter(|target| !target.contains(':') && !target.starts_with('/'))
        {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = if path.is_empty() { page.clone() } else { directory.join(path) };
            let there = fs::read_to_string(&to).is_ok_and(|text| {
                heading.is_empty() || text.contains(&format!("id=\"{heading}\""))
            });
            if !there && (!heading.is_empty() || !to.exists()) {
                found.insert(format!("{}: {target} leads nowhere", page.display()));
            }
        }
        let loaded = attributes(&text, "src=\"").filter(|target| target.contains("://"));
        found.extend(loaded.map(|target| format!("{}: {target} needs a network", page.display())));
    }
    Ok(found.into_iter().collect())
}

/// The values of an attribute, which is written with its equals sign and quote.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(name).skip(1).filter_map(|rest| rest.split_once('"')).map(|(value, _)| value)
}

fn html_files(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(directory).map_err(|error| fault(directory, error))? {
        let path = entry.map_err(|error| fault(directory, error))?.path();
        if path.is_dir() {
            html_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| fault(directory, error))?;
    }
    fs::write(path, content).map_err(|error| fault(path, error))
}

fn fault(path: &Path, error: impl std::fmt::Display) -> String {
    format!("book: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs mdBook. It is installed for packages and releases, where [`build`] checks the same.
    #[test]
    fn the_book_has_no_dead_link_and_its_search_finds_the_right_page_first() {
        if program().is_some() {
            let place = harness::PrivateDir::temporary("book").expect("a directory");
            build(&place.path().join("book")).expect("the manual is a book");
        }
    }

    #[test]
    fn links_to_nowhere_and_into_the_network_are_found() {
        let place = harness::PrivateDir::temporary("links").expect("a directory");
        write(&place.path().join("b.html"), b"<h1 id=\"there\">").expect("written");
        let page = "<a href=\"b.html#there\"><a href=\"b.html#gone\"><a href=\"c.html\">\
                    <a href=\"https://example.org/\"><script src=\"https://example.org/a.js\">";
        write(&place.path().join("a.html"), page.as_bytes()).expect("written");
        let found = dead_links(place.path()).expect("read");
        assert_eq!(found.len(), 3, "{found:?}");
        for expected in ["b.html#gone leads", "c.html leads", "a.js needs"] {
            assert!(found.iter().any(|one| one.contains(expected)), "{expected}: {found:?}");
        }
    }
}
