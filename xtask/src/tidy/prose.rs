//! Plain English in comments and in the manual: words that a reader has to look up, persons where there are
//! machines, sentences that begin with a clause, tables without a heading.
//!
//! Looks at the comments of Rust and PHP that have a line of their own, and at all Markdown but for the change
//! log; text between back-quotes, targets of links and fenced blocks are passed over. Messages of the programs and
//! files of other kinds are in `messages`. Each kind is counted, apart for comments and documents, and the ratchet
//! keeps the counts. It compares words and knows no grammar.

use super::files::SourceFile;
use super::lexer::is_word;
use super::ratchet::RatchetNumber;
use super::{Finding, finding};

/// Words that are not used, each with what is written instead.
const WORDS: [(&str, &str); 24] = [
    ("anew", "again; restart, refresh, fetch"),
    ("as ever", "as before"),
    ("befalls", "happens to"),
    ("besides", "also, in addition"),
    ("comes along", "arrives"),
    ("for want of", "without, for lack of"),
    ("heard", "received, applied"),
    ("in hand", "in flight, pending"),
    ("is so much", "the amount"),
    ("lately", "recently"),
    ("let go of", "release, free"),
    ("lets go of", "releases, frees"),
    ("of which", "a sentence of its own"),
    ("owed", "send backlog, unread response bytes"),
    ("owes", "has in its send backlog"),
    ("restless", "busy"),
    ("spoilt", "damaged"),
    ("takes its leave", "exits, closes the connection"),
    ("that which", "the noun"),
    ("told", "notified; a change is published"),
    ("unheard", "uncovered (tags), not received"),
    ("untold", "pending"),
    ("wherewith", "with which"),
    ("whoever", "the client, the request, the process"),
];
const PERSONS: [&str; 4] = ["he", "him", "his", "himself"];
/// Begins of a clause that stands where a noun should.
const CLAUSES: [&str; 5] = ["What", "Who", "Whoever", "That which", "Whatever"];

/// The most words of a sentence that are not reported.
const SENTENCE_WORDS: usize = 35;

/// A fault in one line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Word,
    Person,
    Clause,
    TableHead,
    Long,
}

/// The counts for comments: words, persons, clauses.
pub fn comments(files: &[SourceFile]) -> Vec<RatchetNumber> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| matches!(file.extension(), "rs" | "php")) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(text) = comment(line, file.extension()) {
                look_at(file, number + 1, text, &mut found);
            }
        }
    }
    numbers(
        found,
        &[
            ("comment_words", Fault::Word),
            ("comment_persons", Fault::Person),
            ("comment_clauses", Fault::Clause),
        ],
    )
}

/// The counts for Markdown: the same, tables whose head is empty, and long sentences.
pub fn documents(files: &[SourceFile]) -> Vec<RatchetNumber> {
    let mut found = Vec::new();
    let is_document = |file: &&SourceFile| file.extension() == "md" && file.path != "CHANGELOG.md";
    for file in files.iter().filter(is_document) {
        for (number, words) in long_sentences(&file.text) {
            let message = format!("{words} words in a sentence: split it");
            found.push((Fault::Long, finding(file, number, "sentence", &message)));
        }
        let mut in_block = false;
        for (number, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if !in_block {
                look_at(file, number + 1, line, &mut found);
                if is_empty_head(line) {
                    let message = "an empty head of a table: name its columns";
                    found.push((Fault::TableHead, finding(file, number + 1, "table", message)));
                }
            }
        }
    }
    numbers(
        found,
        &[
            ("document_words", Fault::Word),
            ("document_persons", Fault::Person),
            ("document_clauses", Fault::Clause),
            ("document_table_heads", Fault::TableHead),
            ("document_long_sentences", Fault::Long),
        ],
    )
}

pub(super) fn numbers(found: Vec<(Fault, Finding)>, names: &[(&str, Fault)]) -> Vec<RatchetNumber> {
    let of = |kind: Fault| found.iter().filter(move |(fault, _)| *fault == kind);
    let places = |kind: Fault| of(kind).map(|(_, place)| place.clone()).collect();
    names.iter().map(|(name, kind)| RatchetNumber::count(name, places(*kind))).collect()
}

/// The text of a comment that has the line for itself.
fn comment<'a>(line: &'a str, extension: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let starts: &[&str] = match extension {
        "rs" => &["///", "//!", "//"],
        _ => &["//", "/**", "* ", "# "],
    };
    starts.iter().find_map(|start| line.strip_prefix(start))
}

/// Adds the faults of a line of text.
pub(super) fn look_at(
    file: &SourceFile,
    number: usize,
    line: &str,
    found: &mut Vec<(Fault, Finding)>,
) {
    let text = without_targets(&without_code(line));
    let lower = text.to_ascii_lowercase();
    for (word, instead) in WORDS {
        for _ in 0..occurrences(&lower, word) {
            let message = format!("`{word}`: {instead}");
            found.push((Fault::Word, finding(file, number, "word", &message)));
        }
    }
    for person in PERSONS {
        for _ in 0..occurrences(&text, person) {
            let message = format!("`{person}`: the client, the request, the process, the reader");
            found.push((Fault::Person, finding(file, number, "person", &message)));
        }
    }
    for clause in clauses(&text) {
        let message = format!("`{clause} …` begins with a clause: put a noun there");
        found.push((Fault::Clause, finding(file, number, "clause", &message)));
    }
}

/// The text without what stands between back-quotes.
fn without_code(line: &str) -> String {
    let mut parts = line.split('`');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(rest) => text.extend(["`x`", rest]),
            // A quote that is not closed here is one of the text.
            None => text.extend(["`", code]),
        }
    }
    text
}

/// The text without the targets of its links, which may be names of files: `[text](target)`.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.extend(["]", part.split_once(')').map_or(part, |(_, rest)| rest)]);
    }
    text
}

/// How often a text has these words, none of them part of a longer one.
fn occurrences(text: &str, words: &str) -> usize {
    let is_whole = |(at, _): &(usize, &str)| {
        let before = text[..*at].bytes().next_back();
        let after = text[at + words.len()..].bytes().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    };
    text.match_indices(words).filter(is_whole).count()
}

/// The clauses that begin a sentence or a cell of a table, each with the word after its first.
fn clauses(text: &str) -> Vec<String> {
    let ends = text.match_indices(['.', ';', ':', '|']).map(|(at, _)| at + 1);
    let begins = ends.filter(|at| text[*at..].starts_with(' '));
    let begins = std::iter::once(0).chain(begins);
    begins.filter_map(|at| clause(text[at..].trim_start())).collect()
}

fn clause(sentence: &str) -> Option<String> {
    let start = CLAUSES
        .iter()
        .find(|start| sentence.strip_prefix(**start).is_some_and(|rest| rest.starts_with(' ')))?;
    let (word, rest) = sentence[start.len() + 1..].split_once(' ')?;
    let is_a_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut words = rest.split(' ');
    let is_question = words.next() == Some("is")
        && words.next().is_some_and(|word| ["a", "an", "the"].contains(&word));
    (is_a_word && !is_question).then(|| format!("{start} {word}"))
}

/// The sentences of Markdown with more than [`SENTENCE_WORDS`] words: the line of their last word, and
/// the number of words. A paragraph may have several lines; an item of a list, a heading and a cell of
/// a table end a sentence.
fn long_sentences(text: &str) -> Vec<(usize, usize)> {
    let (mut found, mut words, mut in_block) = (Vec::new(), 0, false);
    let mut end = |line: usize, words: &mut usize| {
        let count = std::mem::take(words);
        found.extend((count > SENTENCE_WORDS).then_some((line, count)));
    };
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let is_fence = line.starts_with("```");
        in_block ^= is_fence;
        if in_block || !continues_a_paragraph(line) {
            end(at, &mut words);
        }
        if in_block || is_fence {
            continue;
        }
        let text = without_targets(&without_code(line));
        for cell in text.split('|') {
            let mut rest = cell;
            while let Some((sentence, after)) = cut_at_end(rest) {
                words += word_count(sentence);
                end(at + 1, &mut words);
                rest = after;
            }
            words += word_count(rest);
            if line.starts_with('|') || is_end(rest) || rest.ends_with(':') {
                end(at + 1, &mut words);
            }
        }
    }
    end(text.lines().count(), &mut words);
    found
}

/// The number of words; a list of names in back-quotes counts as one.
fn word_count(text: &str) -> usize {
    let is_code = |word: &str| word.trim_matches([',', ';', '.', ':', '(', ')']) == "`x`";
    let words: Vec<_> = text.split_whitespace().map(is_code).collect();
    words.chunk_by(|one, next| *one && *next).count()
}

/// Whether a line may continue the paragraph before it.
fn continues_a_paragraph(line: &str) -> bool {
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with(". ");
    let begins = ["- ", "* ", "+ ", "#", "|", "> ", "```"];
    !line.is_empty() && !is_numbered && !begins.iter().any(|begin| line.starts_with(begin))
}

/// Cuts a text at the end of its first sentence: a full stop, a question mark or an exclamation mark,
/// with closing marks behind it, or a colon before a list. `None`: the text is one sentence at most.
fn cut_at_end(text: &str) -> Option<(&str, &str)> {
    let mut parts = text.match_indices(' ').map(|(at, _)| text.split_at(at));
    parts.find(|(before, after)| is_end(before) || before.ends_with(':') && is_list(after))
}

fn is_end(text: &str) -> bool {
    let closed = text.trim_end_matches(['*', '_', ')', ']', '"', '\'', '”']);
    closed.ends_with(['.', '?', '!'])
}

/// Whether the rest of a sentence enumerates: it has a comma or a semicolon.
fn is_list(after: &str) -> bool {
    let sentence = after.split(". ").next().unwrap_or_default();
    sentence.contains(", ") || sentence.contains("; ")
}

fn is_empty_head(line: &str) -> bool {
    line.starts_with('|')
        && line.matches('|').count() > 1
        && line.bytes().all(|byte| matches!(byte, b'|' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(path: &str, text: &str) -> Vec<(String, usize)> {
        let files = [SourceFile { path: path.into(), text: text.into() }];
        let all = comments(&files).into_iter().chain(documents(&files));
        all.filter(|one| one.value > 0).map(|one| (one.name, one.value)).collect()
    }

    fn count(name: &str, value: usize) -> (String, usize) {
        (name.to_owned(), value)
    }

    #[test]
    fn words_and_persons_are_found_in_comments_alone() {
        let text =
            "//! Made anew: Told, he.\nfn told() {} // told\n    /// `told` foretold, let go of\n";
        assert_eq!(counts("a.rs", text), [count("comment_words", 3), count("comment_persons", 1)]);
        assert_eq!(
            counts("a.php", " * Besides.\n# Lately\n#[Told]\n"),
            [count("comment_words", 2)]
        );
    }

    #[test]
    fn clauses_begin_sentences_and_cells() {
        for (text, expected) in [
            ("What was sent goes. Who asks waits; Whatever comes up", 3),
            ("| a | What is left |", 1),
            ("What it is the test", 0),
            ("What it is", 1),
            ("so says What it is. see a.What it", 0),
            ("Whatever happens. That which is left", 1),
        ] {
            assert_eq!(clauses(text).len(), expected, "{text}");
        }
    }

    #[test]
    fn long_sentences_are_found() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let text = format!("{}. {}.\n| {} | {} |\n", words(35), words(36), words(37), words(3));
        assert!(counts("a.md", &text).contains(&count("document_long_sentences", 2)), "{text}");
    }

    #[test]
    fn sentences_end_where_a_reader_pauses() {
        let half = "word ".repeat(20);
        let half = half.trim_end();
        for end in [
            "? ", "! ", ".** ", ".) ", ".\" ", ": a, ", "\n- ", "\n2. ", "\n\n", ".\n", ":\n",
            " | ", "\n# ",
        ] {
            let text = format!("{}{half}{end}{half}.", if end == " | " { "| " } else { "" });
            assert_eq!(long_sentences(&text), [], "{text}");
        }
        for inside in [", ", "; ", ": ", " (word) ", "\n", "\n  ", " 3.5 ", " `a. b` "] {
            let text = format!("{half}{inside}{half}.\n");
            let found: Vec<_> =
                long_sentences(&text).iter().map(|(_, words)| *words > 39).collect();
            assert_eq!(found, [true], "{text}");
        }
        assert_eq!(long_sentences(&"`a`, `b`; ".repeat(50)), []);
        assert_eq!(long_sentences(&format!("```\n{half}\n{half}\n```\n")), []);
        assert_eq!(long_sentences(&format!("a\n\n{half}\n{half} b. c")), [(4, 41)]);
    }

    #[test]
    fn tables_have_a_head() {
        let text = "| | |\n|---|---|\n| a | b |\n```\n| |\ntold\n```\nHe is in [hand](told.md).\nIn hand.\n";
        let expected = [count("document_words", 1), count("document_table_heads", 1)];
        assert_eq!(counts("docs/a.md", text), expected);
        assert_eq!(counts("CHANGELOG.md", text), []);
    }

    #[test]
    fn a_finding_names_the_place_and_the_term() {
        let files = [SourceFile { path: "a.rs".into(), text: "\n// what is owed\n".into() }];
        let found = comments(&files).remove(0).places.remove(0).to_string();
        assert_eq!(found, "a.rs:2: word: `owed`: send backlog, unread response bytes");
    }
}
