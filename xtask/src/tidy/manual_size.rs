//! The size of the manual: how many Markdown files there are, and how many words are in the pages for users.
//!
//! Pages for users are the README, `docs` without decisions and internals, and the manuals of the PHP packages. A
//! word is a text between white space; the bars and lines of tables are none.

use super::files::SourceFile;
use super::finding;
use super::ratchet::{NumberKind, RatchetNumber};

/// The most Markdown files.
const FILES_MAX: usize = 110;
/// The most words in the pages for users.
const WORDS_MAX: usize = 64_000;
const NOT_FOR_USERS: [&str; 2] = ["docs/decisions/", "docs/internals/"];

/// The number of Markdown files, and of words in the pages for users.
pub fn sizes(files: &[SourceFile]) -> [RatchetNumber; 2] {
    let pages: Vec<&SourceFile> = files.iter().filter(|file| file.extension() == "md").collect();
    let for_users = pages.iter().filter(|page| is_for_users(&page.path));
    let words: usize = for_users.map(|page| word_count(&page.text)).sum();
    let number = |name: &str, limit: usize, value: usize, what: &str| {
        let message = format!("{value} {what}: merge or shorten pages");
        let first = pages.first().map(|page| finding(page, 1, "size", &message));
        let places = first.into_iter().collect();
        RatchetNumber { name: name.to_owned(), kind: NumberKind::Longest, limit, value, places }
    };
    [
        number("markdown_files", FILES_MAX, pages.len(), "Markdown files"),
        number("words_for_users", WORDS_MAX, words, "words in the pages for users"),
    ]
}

fn is_for_users(path: &str) -> bool {
    let is_left_out = NOT_FOR_USERS.iter().any(|directory| path.starts_with(directory));
    let is_manual = path.starts_with("php/") && path.ends_with("/README.md");
    path == "README.md" || is_manual || path.starts_with("docs/") && !is_left_out
}

fn word_count(text: &str) -> usize {
    let is_word = |word: &&str| word.chars().any(|c| !matches!(c, '|' | '-' | ':'));
    text.split_whitespace().filter(is_word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_users_are_counted_without_decisions() {
        let file = |path: &str| SourceFile {
            path: path.into(),
            text: "# A title\n\n| a | `b c` |\n|---|---|\n".into(),
        };
        let files = [
            file("README.md"),
            file("docs/guide/a.md"),
            file("docs/decisions/a.md"),
            file("docs/internals/a.md"),
            file("php/client/README.md"),
            file("php/client/DEVELOPING.md"),
            file("src/a.rs"),
        ];
        let [pages, words] = sizes(&files);
        assert_eq!((pages.value, pages.limit), (6, 110));
        // Three in the title with its mark, three in the row.
        assert_eq!((words.value, words.limit), (3 * 6, 64_000));
        assert!(words.places[0].to_string().contains("18 words in the pages for users"));
    }
}
