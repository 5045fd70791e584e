//! The rule for decisions: each page has a row in the index.
//!
//! `docs/decisions/README.md` has tables of all pages. A page that no row links to is a fault. That the links
//! lead to pages that exist is a rule of `markdown.rs`.

use super::files::SourceFile;
use super::{Finding, finding};

const DIRECTORY: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";

/// Pages that no row of the index links to.
pub fn decisions(files: &[SourceFile]) -> Vec<Finding> {
    let index = files.iter().find(|file| file.path == INDEX).map_or("", |file| file.text.as_str());
    let rows: Vec<&str> = index.lines().filter(|line| line.starts_with('|')).collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md" && file.path != INDEX) {
        let Some(name) = file.path.strip_prefix(DIRECTORY) else { continue };
        let link = format!("]({name})");
        if !rows.iter().any(|row| row.contains(&link)) {
            let message = format!("{INDEX} has no row with a link to it");
            found.push(finding(file, 1, "decision", &message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_row() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let index = "Also [C](c.md).\n\n| Page | Decision |\n|---|---|\n| [A](a.md) | A |\n";
        let files = [
            file("docs/a.md", ""),
            file("docs/decisions/a.md", "# A\n"),
            file("docs/decisions/b.md", "# B\n"),
            file("docs/decisions/c.md", "# C\n"),
            file(INDEX, index),
        ];
        let found: Vec<String> = decisions(&files).into_iter().map(|found| found.path).collect();
        assert_eq!(found, ["docs/decisions/b.md", "docs/decisions/c.md"]);
    }
}
