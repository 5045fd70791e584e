//! The rules for decisions: each page has a row in the index, and so has each number that a text cites.
//!
//! `docs/decisions/README.md` has tables of all pages, with the numbers that they had before. A page that no row links to
//! is a fault, and so is `[0036]` or `decision 0036` if no row has the number. That the links lead to pages that exist
//! is a rule of `markdown.rs`.

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
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            for cited in cited(line).filter(|cited| !rows.iter().any(|row| row.contains(*cited))) {
                let message = format!("{INDEX} has no row with the number {cited}");
                found.push(finding(file, number + 1, "decision", &message));
            }
        }
    }
    found
}

/// The numbers of decisions that a line cites: four digits in brackets, or after the word.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    [concat!("[", "0"), concat!("decision", " 0"), concat!("decisions", " 0")]
        .into_iter()
        .flat_map(|begin| line.match_indices(begin).map(move |(at, _)| at + begin.len() - 1))
        .filter_map(|at| line.get(at..at + 4))
        .filter(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    #[test]
    fn every_page_has_a_row() {
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

    #[test]
    fn each_cited_number_has_a_row() {
        let text =
            format!("// [{0}036](x) bytes[0..4]\n// [{0}037]\n// decision {0}099, 0098\n", 0);
        let files = [file("a.rs", &text), file(INDEX, "| [A](a.md) | A | 0036, 0037 |\n")];
        let found: Vec<usize> = decisions(&files).into_iter().map(|found| found.line).collect();
        assert_eq!(found, [3]);
    }
}
