//! Rules about the shape of sources: how files open, how long files, functions and crates are.
//!
//! The lengths are kept by the ratchet ([`super::ratchet`]): the house's limit, or today's longest
//! where something is longer still. A function's length is that of its text from its
//! name to its closing brace, remarks and all; a crate's is that of all files in its `src`.

use super::files::SourceFile;
use super::lexer::{Language, code_only, is_word};
use super::manifests::Member;
use super::ratchet::{NumberKind, RatchetNumber};
use super::{Finding, finding};

/// The opening of a Rust file has at least, and apart from tables at most, so many lines; for a file
/// of tests one will do.
const OPENING_LINES: std::ops::RangeInclusive<usize> = 3..=12;
/// In a PHP file the first remark begins within so many lines.
const PHP_OPENING_WITHIN: usize = 8;
/// The sources of a crate have at most so many lines.
const CRATE_LINES: usize = 10_500;
/// From so many lines on, a crate is to be divided before it is full.
const CRATE_LINES_NOTED: usize = 8_000;

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
pub fn lengths(files: &[SourceFile]) -> Vec<RatchetNumber> {
    let mut found = Vec::new();
    for (extension, language, names) in [
        ("rs", Language::Rust, ["rust_file_lines", "rust_function_lines"]),
        ("php", Language::Php, ["php_file_lines", "php_function_lines"]),
    ] {
        let (mut whole, mut function) = (longest(names[0], 250), longest(names[1], 70));
        for file in files.iter().filter(|file| file.extension() == extension) {
            keep_longest(&mut whole, file, 1, file.text.lines().count(), "the file");
            for (name, line, lines) in functions(&code_only(&file.text, language), language) {
                keep_longest(&mut function, file, line, lines, &name);
            }
        }
        found.extend([whole, function]);
    }
    found
}

/// The largest crates by the lines of their `src`: the binary's own, and the largest of the others.
pub fn crate_sizes(files: &[SourceFile], members: &[Member]) -> Vec<RatchetNumber> {
    let mut largest = longest("crate_lines", CRATE_LINES);
    let mut pagewell = longest("pagewell_crate_lines", CRATE_LINES);
    for member in members {
        let lines = crate_lines(files, member);
        let path = format!("{}/Cargo.toml", member.directory);
        let manifest = SourceFile { path, text: String::new() };
        let of = if member.name == "pagewell" { &mut pagewell } else { &mut largest };
        keep_longest(of, &manifest, 1, lines, &format!("the crate `{}`", member.name));
    }
    vec![largest, pagewell]
}

/// The crates that are nearly full, as notes.
pub fn nearly_full(files: &[SourceFile], members: &[Member]) -> Vec<String> {
    let sizes = members.iter().map(|member| (member, crate_lines(files, member)));
    let large = sizes.filter(|(_, lines)| *lines > CRATE_LINES_NOTED);
    let note = |(member, lines): (&Member, usize)| {
        let Member { name, .. } = member;
        format!("note: the crate `{name}` has {lines} lines: divide it before it has {CRATE_LINES}")
    };
    large.map(note).collect()
}

fn crate_lines(files: &[SourceFile], member: &Member) -> usize {
    let sources = format!("{}/src/", member.directory);
    let own = files.iter().filter(|file| file.extension() == "rs");
    let own = own.filter(|file| file.path.starts_with(&sources));
    own.map(|file| file.text.lines().count()).sum()
}

fn longest(name: &str, limit: usize) -> RatchetNumber {
    RatchetNumber { kind: NumberKind::Longest, limit, ..RatchetNumber::count(name, Vec::new()) }
}

fn keep_longest(
    kept: &mut RatchetNumber,
    file: &SourceFile,
    line: usize,
    lines: usize,
    what: &str,
) {
    if lines > kept.value {
        kept.value = lines;
        kept.places = vec![finding(file, line, "length", &format!("{what} has {lines} lines"))];
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

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

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
    fn crates_are_measured_by_their_sources() {
        let lines = |count| "x\n".repeat(count);
        let files = [
            file("crates/a/src/lib.rs", &lines(6_000)),
            file("crates/a/src/b/c.rs", &lines(5_000)),
            file("crates/a/tests/d.rs", &lines(90_000)),
            file("crates/pagewell/src/main.rs", &lines(20_000)),
        ];
        let member = |name: &str| Member {
            name: name.to_owned(),
            directory: format!("crates/{name}"),
            dependencies: Vec::new(),
        };
        let found = crate_sizes(&files, &[member("a"), member("pagewell")]);
        assert_eq!((found[0].value, found[1].value), (11_000, 20_000));
        assert!(found[0].places[0].to_string().contains("the crate `a` has 11000 lines"));
    }
}
