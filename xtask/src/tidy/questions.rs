//! The rule for questions of users: the table in `docs/questions.md` leads each of them to a page.
//!
//! A row has the question, the word that a reader searches for, and a link to a heading. The page is at most two
//! links away from the README (one of them to the index of the manual, say), and the heading contains the word.
//! That the heading exists is a rule of `markdown.rs` as well.

use super::files::SourceFile;
use super::markdown::{linked, slug};
use super::{Finding, finding};
use std::collections::BTreeSet;

const PAGE: &str = "docs/questions.md";
const START: &str = "README.md";
/// The head of the table.
const HEAD: &str = "| Question | Word | Page |";
/// The most links from the README to a page.
const LINKS_MAX: usize = 2;

/// Rows whose page is too far away, or whose heading does not contain the word.
pub fn questions(files: &[SourceFile]) -> Vec<Finding> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else { return Vec::new() };
    let near = near(files);
    let mut found = Vec::new();
    let rows = page.text.lines().enumerate().skip_while(|(_, line)| *line != HEAD).skip(2);
    let mut count = 0;
    for (at, line) in rows.take_while(|(_, line)| line.starts_with('|')) {
        count += 1;
        if let Err(message) = check(line, files, &near) {
            found.push(finding(page, at + 1, "question", &message));
        }
    }
    if count == 0 {
        found.push(finding(page, 1, "question", &format!("no table `{HEAD}`")));
    }
    found
}

/// The pages that at most [`LINKS_MAX`] links lead to.
fn near(files: &[SourceFile]) -> BTreeSet<String> {
    let mut near = BTreeSet::from([START.to_owned()]);
    for _ in 0..LINKS_MAX {
        let pages: Vec<&SourceFile> =
            files.iter().filter(|file| near.contains(&file.path)).collect();
        near.extend(pages.iter().flat_map(|page| linked(page)).map(|(path, _)| path));
    }
    near
}

fn check(row: &str, files: &[SourceFile], near: &BTreeSet<String>) -> Result<(), String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [_, word, link] = cells.as_slice() else { return Err("a row has three cells".into()) };
    let line = SourceFile { path: PAGE.into(), text: (*link).to_owned() };
    let Some((path, heading)) = linked(&line).into_iter().next() else {
        return Err("its third cell has no link".into());
    };
    if !near.contains(&path) {
        return Err(format!("{path} is more than {LINKS_MAX} links from {START}"));
    }
    let Some(page) = files.iter().find(|file| file.path == path) else {
        return Err(format!("there is no {path}"));
    };
    let titles = page.text.lines().filter(|line| line.starts_with('#'));
    let Some(title) =
        titles.map(|line| line.trim_start_matches('#').trim()).find(|title| slug(title) == heading)
    else {
        return Err(format!("{path} has no heading #{heading}"));
    };
    if title.to_lowercase().contains(&word.to_lowercase()) {
        return Ok(());
    }
    Err(format!("the heading `{title}` does not contain `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    fn found(table: &str) -> Vec<String> {
        let files = [
            file("README.md", "[Manual](docs/README.md)\n"),
            file("docs/README.md", "[A](guide/a.md)\n"),
            file("docs/guide/a.md", "# Alpha beta\n[B](b.md)\n"),
            file("docs/guide/b.md", "# Beta\n"),
            file(PAGE, &format!("# Q\n\n{table}")),
        ];
        questions(&files).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn each_question_leads_to_a_heading_with_its_word() {
        let table = |row: &str| format!("{HEAD}\n|---|---|---|\n{row}\n");
        let none: Vec<String> = Vec::new();
        assert_eq!(found(&table("| How? | Beta | [A](guide/a.md#alpha-beta) |")), none);
        for (row, message) in [
            ("| How? | gamma | [A](guide/a.md#alpha-beta) |", "does not contain `gamma`"),
            ("| How? | beta | [B](guide/b.md#beta) |", "more than 2 links"),
            ("| How? | beta | [A](guide/a.md#alpha) |", "no heading #alpha"),
            ("| How? | beta | guide/a.md |", "no link"),
            ("| How? | beta |", "three cells"),
            ("", "no table"),
        ] {
            let found = found(&table(row));
            assert!(found.len() == 1 && found[0].contains(message), "{row}: {found:?}");
        }
    }
}
