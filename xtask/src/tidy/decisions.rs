//! The rule for decision records: each has a row in the index, with its status.
//!
//! `docs/decisions/README.md` has a table of all records (`NNNN-name.md`). A record without a row is a fault, and
//! so is a row that does not name the record which the first lines of its own say changed or replaced it.

use super::files::SourceFile;
use super::{Finding, finding};

const DIRECTORY: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";
/// The words in the first lines of a record that a later one changes or replaces, in lower case.
const CHANGED: [&str; 3] = ["changed by [", "replaced by [", "extended by ["];
/// How many lines at the head of a record are looked at.
const HEAD_LINES: usize = 6;

/// Records that the index lacks, and rows without the status that their record has.
pub fn decisions(files: &[SourceFile]) -> Vec<Finding> {
    let rows = files.iter().find(|file| file.path == INDEX).map_or("", |file| file.text.as_str());
    let mut found = Vec::new();
    for file in files {
        let Some(name) = file.path.strip_prefix(DIRECTORY).filter(|name| is_record(name)) else {
            continue;
        };
        let start = format!("| [{}]({name}) |", &name[..4]);
        let Some(row) = rows.lines().find(|row| row.starts_with(&start)) else {
            let message = format!("{INDEX} has no row `{start} title | status |`");
            found.push(finding(file, 1, "decision", &message));
            continue;
        };
        let status = row.rsplit(" | ").next().unwrap_or_default();
        for (line, number) in changes(&file.text) {
            if !status.contains(&format!("[{number}](")) {
                let message = format!("its row in {INDEX} does not say that {number} changed it");
                found.push(finding(file, line, "decision", &message));
            }
        }
    }
    found
}

fn is_record(name: &str) -> bool {
    let is_numbered = name.bytes().take_while(u8::is_ascii_digit).count() == 4;
    is_numbered && name.ends_with(".md")
}

/// The numbers of the records that changed this one, as its first lines say, each with its line.
fn changes(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().take(HEAD_LINES).enumerate() {
        let lower = line.to_ascii_lowercase();
        let after = CHANGED.iter().filter_map(|words| Some(lower.find(words)? + words.len()));
        found.extend(after.filter_map(|at| Some((number + 1, line.get(at..at + 4)?))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_a_row_with_its_status() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let index = "| Record | Decision | Status |\n| [0001](0001-a.md) | A | accepted |\n\
                     | [0002](0002-b.md) | B | superseded by [0003](0003-c.md) |\n\
                     | [0004](0004-d.md) | [0002](0002-b.md) | accepted |\n";
        let files = [
            file("docs/decisions/0001-a.md", "# 0001\n\nSee [0003](0003-c.md).\n"),
            file("docs/decisions/0002-b.md", "# 0002\n\nReplaced by [0003](0003-c.md).\n"),
            file("docs/decisions/0003-c.md", "# 0003\n\nReplaces [0002](0002-b.md).\n"),
            file("docs/decisions/0004-d.md", "# 0004\n\n*Extended by [0002](0002-b.md): more.*\n"),
            file(INDEX, index),
        ];
        let found: Vec<(String, usize)> =
            decisions(&files).into_iter().map(|found| (found.path, found.line)).collect();
        let expected = [("docs/decisions/0003-c.md", 1), ("docs/decisions/0004-d.md", 3)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
