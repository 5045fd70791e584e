//! Names that stand in the sources and have to stand in the manual: errors of the control interface, events of the
//! log. The reasons are not among them: their page is made from their table.
//!
//! The sources are read as text: an error is a small-lettered word in quotes behind its status. Finding too much is
//! harmless, it asks for a line in the manual; what each rule finds is bounded from below by a test.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

const ERRORS: &str = "docs/operating/errors.md";
/// The crate that answers with errors of its own.
const CONTROL: &str = "crates/server/control/src";
const LOG: &str = "docs/operating/log.md";
/// The folder of the server's crates.
const SERVER: &str = "crates/server";

/// The names that the pages leave out, each with a sentence.
///
/// # Errors
/// A file cannot be read.
pub fn left_out(root: &Path) -> Result<Vec<String>, String> {
    let (mut found, log, page) = (Vec::new(), read(&root.join(LOG))?, read(&root.join(ERRORS))?);
    for name in errors(&read_all(&root.join(CONTROL))?) {
        if !page.contains(&format!("`{name}`")) {
            found.push(format!("{ERRORS} does not speak of `{name}` ({CONTROL})"));
        }
    }
    for (level, name) in levels(&read_server(root)?) {
        if !section(&log, &level).contains(&format!("`{name}`")) {
            found.push(format!("{LOG} does not list `{name}` under {level}"));
        }
    }
    Ok(found)
}

/// The names of errors: `=> (StatusCode::X, "not-json")`, `error(StatusCode::X, "not-found"`.
fn errors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let Some((before, rest)) = line.split_once('"') else { continue };
        let Some((word, _)) = rest.split_once('"') else { continue };
        let before = before.trim_end();
        if before.ends_with(',') && before.contains("StatusCode::") && is_name(word) {
            found.insert(word.to_owned());
        }
    }
    found
}

/// Whether a word has letters and hyphens only; numbers and sentences are no names.
fn is_name(word: &str) -> bool {
    let mut letters = word.bytes();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The events with their levels: `tracing::warn!(event = "origin-refused", …)`.
fn levels(text: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for call in text.split("tracing::").skip(1) {
        let Some((level, rest)) = call.split_once("!(") else { continue };
        if let Some(rest) = rest.trim_start().strip_prefix("event = \"")
            && let Some((name, _)) = rest.split_once('"')
        {
            found.insert((level.to_owned(), name.to_owned()));
        }
    }
    found
}

/// The text below the heading `## level…`, to the next heading.
fn section<'a>(text: &'a str, level: &str) -> &'a str {
    let mut sections = text.split("\n## ").skip(1);
    sections.find(|section| section.starts_with(level)).unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The sources of each crate of the server.
fn server(root: &Path) -> Result<Vec<String>, String> {
    let as_text = |error: io::Error| format!("{SERVER}: {error}");
    let mut all = Vec::new();
    for entry in fs::read_dir(root.join(SERVER)).map_err(as_text)? {
        let name = entry.map_err(as_text)?.file_name();
        let source = format!("{SERVER}/{}/src", name.to_string_lossy());
        all.extend(root.join(&source).is_dir().then_some(source));
    }
    all.sort();
    Ok(all)
}

/// All the Rust files of the server, without their tests.
fn read_server(root: &Path) -> Result<String, String> {
    server(root)?.iter().map(|source| read_all(&root.join(source))).collect()
}

/// A file, or all the Rust files below a directory, without their tests.
fn read_all(path: &Path) -> Result<String, String> {
    if path.is_file() {
        let text = read(path)?;
        return Ok(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
    }
    let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut all = String::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&read_all(&path)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::root::repository;

    /// The names of log events: `event = "php-fpm-died"`.
    fn events(text: &str) -> BTreeSet<String> {
        let after = text.split("event = \"").skip(1);
        after.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn errors_are_found_and_other_words_are_not() {
        let text = r#"
            ControlError::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json"),
            serve::error(StatusCode::NOT_FOUND, "not-found", None)
            HistorySpan::Day => "day",
            503 => "The site has more to do",
            let plain = "word";
        "#;
        let found: Vec<String> = errors(text).into_iter().collect();
        assert_eq!(found, ["not-found", "not-json"]);
    }

    #[test]
    fn the_sources_have_names_to_be_found() {
        let server = read_server(&repository()).expect("sources");
        let (errors, events) = (errors(&server), events(&server));
        assert!(errors.contains("host-refused"), "{errors:?}");
        assert!(events.contains("php-fpm-died"), "{events:?}");
        let levels = levels(&server);
        for (level, name) in [("error", "php-fpm-died"), ("info", "stopping")] {
            assert!(levels.contains(&(level.to_owned(), name.to_owned())), "{levels:?}");
        }
        let named: BTreeSet<String> = levels.into_iter().map(|(_, name)| name).collect();
        assert_eq!(named, events);
    }
}
