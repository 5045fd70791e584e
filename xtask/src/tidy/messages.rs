//! Plain English in the texts that programs print, in titles of scenarios, and in files that are neither code nor
//! manual: `contrib`, `scripts`, the Makefile.
//!
//! A text that a program prints is a string literal of Rust: errors, log, help, tables. Placeholders (`{name}`) are
//! no words. Literals of tests are left out, and those of `tidy`, which has the lists of words. The words are
//! those of `prose`.

use super::files::SourceFile;
use super::lexer::literals_only;
use super::prose::{Fault, look_at, numbers};
use super::ratchet::RatchetNumber;

/// Directories whose lines are all read.
const READ_WHOLE: [&str; 2] = ["contrib/", "scripts/"];
/// The rules have the words that they look for.
const RULES: &str = "xtask/src/tidy/";

/// The count of words, persons and clauses.
pub fn messages(files: &[SourceFile]) -> Vec<RatchetNumber> {
    let mut found = Vec::new();
    for file in files {
        for (number, line) in texts(file).lines().enumerate() {
            look_at(file, number + 1, line, &mut found);
        }
    }
    let found = found.into_iter().map(|(_, place)| (Fault::Word, place)).collect();
    numbers(found, &[("message_words", Fault::Word)])
}

/// The text of a file that is to be read, on the lines where it is.
fn texts(file: &SourceFile) -> String {
    let is_whole = READ_WHOLE.iter().any(|directory| file.path.starts_with(directory));
    match file.extension() {
        "rs" if file.is_test() || file.path.starts_with(RULES) => String::new(),
        "rs" => {
            let code = file.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            without_placeholders(&literals_only(code))
        }
        "scn" => {
            let title = |line: &str| line.strip_prefix("title ").unwrap_or_default().to_owned();
            file.text.lines().map(|line| title(line) + "\n").collect()
        }
        "json" | "php" => String::new(),
        _ if is_whole || file.path == "Makefile" => file.text.clone(),
        _ => String::new(),
    }
}

/// The text without the names in braces.
fn without_placeholders(text: &str) -> String {
    let mut parts = text.split('{');
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((name, after)) if !name.contains([' ', '\n']) => rest.push_str(after),
            _ => rest.push_str(part),
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        messages(&[SourceFile { path: path.into(), text: text.into() }])[0].value
    }

    #[test]
    fn literals_titles_and_scripts_are_read() {
        for (path, text, expected) in [
            ("a/src/b.rs", "// told\nlet told = \"told {told} {heard:?}\";", 1),
            ("a/src/b.rs", "f(\"What is sent goes\\n\", r#\"he\"#);", 2),
            ("a/src/b.rs", "#[cfg(test)]\nmod tests { f(\"told\"); }", 0),
            ("a/tests/b.rs", "f(\"told\");", 0),
            ("xtask/src/tidy/b.rs", "f(\"told\");", 0),
            ("tests/scenarios/a.scn", "title  Who asks is told\n# he\n", 2),
            ("scripts/setup", "echo told # anew\n", 2),
            ("contrib/a.service", "Description=he\n", 1),
            ("Makefile", "a: ## besides\n", 1),
            ("crates/a.html", "told", 0),
        ] {
            assert_eq!(count(path, text), expected, "{path}: {text}");
        }
    }
}
