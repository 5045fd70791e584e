//! Rules about the shape of sources: how files open, how long files and functions are.
//!
//! The lengths are kept by a ratchet (`xtask/tidy.toml`): the house's limit, or today's longest
//! where something is longer still; the latter may only fall, and a note says when it can
//! (`cargo xtask tidy --lower`). A function's length is that of its text from its
//! name to its closing brace, remarks and all.

use super::files::SourceFile;
use super::lexer::{Language, code_only, is_word};
use super::{Finding, finding};

/// The opening of a Rust file has at least, and apart from tables at most, so many lines; for a file
/// of tests one will do.
const OPENING_LINES: std::ops::RangeInclusive<usize> = 3..=12;
/// In a PHP file the first remark begins within so many lines.
const PHP_OPENING_WITHIN: usize = 8;

/// A length that the ratchet keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Length {
    /// Its name in `tidy.toml`.
    pub name: &'static str,
    /// What the house wants.
    pub limit: usize,
    /// The longest there is.
    pub longest: usize,
    /// Where that is.
    pub path: String,
    /// At which line.
    pub line: usize,
    /// What it is called, if it is a function.
    pub what: String,
}

/// Every Rust and PHP file says at its top what it is for.
pub fn openings(files: &[SourceFile]) -> Vec<Finding> {
    files.iter().filter_map(opening).collect()
}

fn opening(file: &SourceFile) -> Option<Finding> {
    match file.extension() {
        "rs" => rust_opening(file),
        "php" => php_opening(file),
        _ => None,
    }
}

fn rust_opening(file: &SourceFile) -> Option<Finding> {
    let opening = file.text.lines().take_while(|line| line.starts_with("//!"));
    let (tables, prose): (Vec<&str>, Vec<&str>) =
        opening.partition(|line| line.starts_with("//! |"));
    let lines = prose.len();
    let least = if file.is_test() { 1 } else { *OPENING_LINES.start() };
    if lines + tables.len() < least {
        let message = format!("opens with {lines} lines of `//!`, not with what it is for");
        return Some(finding(file, 1, "opening", &message));
    }
    (lines > *OPENING_LINES.end()).then(|| {
        let message = format!("opens with {lines} lines; {} are enough", OPENING_LINES.end());
        finding(file, 1, "opening", &message)
    })
}

fn php_opening(file: &SourceFile) -> Option<Finding> {
    let is_remark = |line: &&str| {
        let line = line.trim_start().trim_start_matches("<?php").trim_start();
        ["/**", "/*", "//", "# "].iter().any(|start| line.starts_with(start))
    };
    let found = file.text.lines().take(PHP_OPENING_WITHIN).any(|line| is_remark(&line));
    (!found).then(|| finding(file, 1, "opening", "does not open with a remark on what it is for"))
}

/// The longest file and function of each language.
pub fn lengths(files: &[SourceFile]) -> Vec<Length> {
    let mut found = Vec::new();
    for (extension, language, names) in [
        ("rs", Language::Rust, ["rust_file_lines", "rust_function_lines"]),
        ("php", Language::Php, ["php_file_lines", "php_function_lines"]),
    ] {
        let start = |name, limit| Length {
            name,
            limit,
            longest: 0,
            path: String::new(),
            line: 1,
            what: String::new(),
        };
        let (mut whole, mut function) = (start(names[0], 250), start(names[1], 70));
        for file in files.iter().filter(|file| file.extension() == extension) {
            keep_longest(&mut whole, file, 1, file.text.lines().count(), "");
            for (name, line, lines) in functions(&code_only(&file.text, language), language) {
                keep_longest(&mut function, file, line, lines, &name);
            }
        }
        found.extend([whole, function]);
    }
    found
}

fn keep_longest(kept: &mut Length, file: &SourceFile, line: usize, lines: usize, what: &str) {
    if lines > kept.longest {
        kept.longest = lines;
        kept.path.clone_from(&file.path);
        kept.line = line;
        what.clone_into(&mut kept.what);
    }
}

/// The functions in code that has been through the lexer: name, line, number of lines.
fn functions(code: &str, language: Language) -> Vec<(String, usize, usize)> {
    let keyword = if language == Language::Rust { "fn" } else { "function" };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(keyword).map(|at| at + from) {
        from = at + keyword.len();
        let bytes = code.as_bytes();
        let starts_word = at == 0 || !is_word(bytes[at - 1]);
        let rest = code[from..].trim_start();
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts_word || name.is_empty() || bytes.get(from).copied().is_some_and(is_word) {
            continue;
        }
        if let Some(end) = end_of_body(bytes, from) {
            let line = 1 + code[..at].matches('\n').count();
            found.push((name, line, 1 + code[at..end].matches('\n').count()));
        }
    }
    found
}

/// Where the body that begins after `from` ends; `None` if only a signature is there.
fn end_of_body(code: &[u8], from: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b';' if brackets == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces = braces.checked_sub(1)?;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// What is longer than the ratchet allows.
pub fn ratchet(lengths: &[Length], recorded: &str) -> Vec<Finding> {
    let fault = |length: &Length, message: String| Finding {
        path: length.path.clone(),
        line: length.line,
        rule: "length",
        message,
    };
    let mut found = Vec::new();
    for length in lengths {
        let Length { name, longest, what, .. } = length;
        let Some(allowed) = record(recorded, name) else {
            found.push(fault(length, format!("xtask/tidy.toml has no line `{name} = …`")));
            continue;
        };
        if *longest > allowed {
            let what = if what.is_empty() { "the file" } else { what };
            found.push(fault(length, format!("{what} has {longest} lines ({name} = {allowed})")));
        }
    }
    found
}

/// What the ratchet allows without need.
pub fn slack(lengths: &[Length], recorded: &str) -> Vec<String> {
    let note = |length: &Length| {
        let needed = length.longest.max(length.limit);
        let allowed = record(recorded, length.name).filter(|allowed| *allowed > needed)?;
        let name = length.name;
        Some(format!("note: {name} = {allowed} can fall to {needed}: cargo xtask tidy --lower"))
    };
    lengths.iter().filter_map(note).collect()
}

fn record(recorded: &str, name: &str) -> Option<usize> {
    recorded.lines().find_map(|line| {
        let (found, value) = line.split_once('=')?;
        if found.trim() == name { value.trim().parse().ok() } else { None }
    })
}

/// The ratchet's file with every record that can fall lowered.
pub fn lowered(lengths: &[Length], recorded: &str) -> String {
    let lower = |line: &str| {
        let name = line.split('=').next().unwrap_or_default().trim();
        match lengths.iter().find(|length| length.name == name) {
            Some(length) => {
                let allowed = record(line, name).unwrap_or(usize::MAX);
                format!("{name} = {}", allowed.min(length.longest.max(length.limit)))
            }
            None => line.to_owned(),
        }
    };
    recorded.lines().map(lower).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn openings_are_asked_for() {
        let good = file("a.rs", "//! One.\n//! Two.\n//! Three.\nfn f() {}\n");
        let table = format!("//! a\n//! b\n{}", "//! | x |\n".repeat(20));
        let long = "//! a\n".repeat(13);
        let files = [
            good,
            file("b.rs", "//! One.\nfn f() {}\n"),
            file("c.rs", &table),
            file("d.rs", &long),
            file("e.php", "<?php\n/** Says. */\n"),
            file("f.php", "<?php\n\necho 1;\n"),
        ];
        let found: Vec<String> = openings(&files).into_iter().map(|found| found.path).collect();
        assert_eq!(found, ["b.rs", "d.rs", "f.php"]);
    }

    #[test]
    fn functions_are_measured_with_their_remarks() {
        let text = "trait T { fn a(x: [u8; 2]); }\nfn b() {\n    // }\n    if x { y }\n}\n\
                    fn c(f: fn(u8)) -> u8 { 1 }\n";
        let found = functions(&code_only(text, Language::Rust), Language::Rust);
        let expected = [("b".to_owned(), 2, 4), ("c".to_owned(), 6, 1)];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_ratchet_only_falls() {
        let files = [file("a.rs", &"x\n".repeat(300))];
        let lengths = lengths(&files);
        let with = |lines| {
            format!(
                "rust_file_lines = {lines}\nrust_function_lines = 70\n\
                                    php_file_lines = 250\nphp_function_lines = 70\n"
            )
        };
        assert_eq!(ratchet(&lengths, &with(300)), []);
        assert!(ratchet(&lengths, &with(299))[0].message.contains("has 300 lines"));
        assert_eq!((ratchet(&lengths, &with(301)), slack(&lengths, &with(300))), (vec![], vec![]));
        assert!(slack(&lengths, &with(301))[0].contains("can fall to 300"));
        assert_eq!(lowered(&lengths, &with(301)), with(300));
        assert_eq!(lowered(&lengths, &with(299)), with(299));
        assert_eq!(ratchet(&lengths, "").len(), 4);
    }
}
