//! Rules about words: in names, in remarks, in texts.
//!
//! Names that are declared may not use the words that the glossary has better ones for; vague ends
//! of type names (a manager of what?) are refused too. Loose ends are not left as remarks. Texts
//! speak of the software, not of how it was made. The words themselves are put together from parts
//! here, so that this file keeps its own rules.

use super::files::SourceFile;
use super::lexer::{Language, code_only, is_word};
use super::{Finding, finding};

/// Not in any declared name.
const REPLACED: [&str; 7] = ["object", "asset", "backend", "upstream", "grace", "ban", "coalesce"];
/// Not the first of several words in the name of a function: the name of a test is a statement.
const CLAUSES: [&str; 5] = ["what", "whatever", "who", "whoever", "whose"];
/// Not in the name of a type or a module.
const VAGUE: [&str; 9] =
    ["manager", "util", "utils", "helper", "helpers", "handler", "context", "data", "info"];
const DECLARES: [&str; 13] = [
    "fn", "struct", "enum", "trait", "type", "mod", "const", "static", "let", "mut", "union",
    "class", "function",
];
const DECLARES_TYPES: [&str; 8] =
    ["struct", "enum", "trait", "type", "mod", "union", "class", "interface"];
const LOOSE_ENDS: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
const ELSEWHERE: [&str; 9] = [
    concat!("/wo", "rk/"),
    concat!(".lib", "rary"),
    concat!("/tmp/", "brief"),
    concat!("issues", " show"),
    concat!("Cla", "ude"),
    concat!("Chat", "GPT"),
    concat!("AI-", "generated"),
    concat!("language", " model"),
    concat!("coding", " agent"),
];

/// Declared names use the words of the glossary.
pub fn names(files: &[SourceFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files {
        let language = match file.extension() {
            "rs" => Language::Rust,
            "php" => Language::Php,
            _ => continue,
        };
        let code = code_only(&file.text, language);
        for (number, line) in code.lines().enumerate() {
            for (keyword, name) in declared(line) {
                if let Some(word) = forbidden(keyword, name) {
                    let message = format!("`{name}`: not `{word}` (see GLOSSARY.md)");
                    found.push(finding(file, number + 1, "name", &message));
                }
            }
        }
    }
    found
}

/// The names a line declares, each with the word before it; a field's is the empty word.
fn declared(line: &str) -> Vec<(&str, &str)> {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let pairs =
        words.windows(2).filter(|pair| DECLARES.contains(&pair[0]) || pair[0] == "interface");
    let mut found: Vec<(&str, &str)> = pairs.map(|pair| (pair[0], pair[1])).collect();
    let field = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
    // An indented `type` belongs to a trait, which may be somebody else's.
    found.retain(|(keyword, _)| *keyword != "type" || !line.starts_with(' '));
    if let Some((name, rest)) = field.split_once(':')
        && !rest.starts_with(':')
        && !name.is_empty()
        && name.bytes().all(is_word)
    {
        found.push(("", name));
    }
    found
}

fn forbidden(keyword: &str, name: &str) -> Option<String> {
    let vague = DECLARES_TYPES.contains(&keyword);
    let parts = parts(name);
    if keyword == "fn" && parts.len() > 1 && CLAUSES.contains(&parts[0].as_str()) {
        return Some(parts[0].clone());
    }
    parts
        .into_iter()
        .find(|part| REPLACED.contains(&part.as_str()) || vague && VAGUE.contains(&part.as_str()))
}

/// The words of a name: `StoredPage`, `stored_page` and `STORED_PAGE` have two.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && after_small) {
            parts.push(String::new());
        }
        if letter != '_' {
            parts.last_mut().into_iter().for_each(|part| part.extend(letter.to_lowercase()));
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
    }
    parts
}

/// Remarks leave no loose ends, and texts speak of nothing but the software.
pub fn mentions(files: &[SourceFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(word) = LOOSE_ENDS.iter().find(|word| has_word(line, word)) {
                let message = format!("`{word}`: do it, or say in prose what is not done");
                found.push(finding(file, number + 1, "loose-end", &message));
            }
            if let Some(word) = ELSEWHERE.iter().find(|word| line.contains(**word)) {
                found.push(finding(file, number + 1, "mention", &format!("`{word}`")));
            }
            if let Some(number_named) = numbered(line) {
                let message = format!("speaks of number {number_named} of a list that is not here");
                found.push(finding(file, number + 1, "mention", &message));
            }
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].bytes().next_back();
        let after = line[at + word.len()..].bytes().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The number in "see this-or-that 12" or "#12", after the word for a ticket.
fn numbered(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let word = concat!("iss", "ue");
    lower.match_indices(word).find_map(|(at, _)| {
        let is_part = lower[..at].bytes().next_back().is_some_and(is_word);
        let rest = lower[at + word.len()..].strip_prefix(' ').filter(|_| !is_part)?;
        let rest = rest.trim_start_matches('#');
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        (!digits.is_empty()).then_some(digits)
    })
}

/// Only tests may unwrap.
pub fn unwraps(files: &[SourceFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs" && !file.is_test()) {
        let code = code_only(&file.text, Language::Rust);
        for (number, line) in code.lines().enumerate() {
            // By the habit of the house tests are the end of a file.
            if line.trim() == "#[cfg(test)]" || line.trim_start().starts_with("#[cfg(all(test") {
                break;
            }
            if line.contains(".unwrap()") {
                let message = "say with `expect` why it cannot fail, or pass the error on";
                found.push(finding(file, number + 1, "unwrap", message));
            }
        }
    }
    found
}

/// No line ends in white space, and every file ends with a line end.
pub fn white_space(files: &[SourceFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                found.push(finding(file, number + 1, "white-space", "at the end of the line"));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            let last = file.text.lines().count();
            found.push(finding(file, last, "white-space", "no line end at the end of the file"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> [SourceFile; 1] {
        [SourceFile { path: "src/a.rs".into(), text: text.into() }]
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(parts("StoredPage"), ["stored", "page"]);
        assert_eq!(parts("PAGE_BYTES"), ["page", "bytes"]);
        assert_eq!(parts("http1Client"), ["http1", "client"]);
    }

    #[test]
    fn forbidden_names_are_found_where_they_are_declared() {
        let bad = rust(
            "struct FillManager;\nfn to_backend() {\n    let asset = 1;\n}\nstruct S {\n    pub(crate) grace: u8,\n}\n\
             fn what_is_done_stays() {}\nfn what() {}\n",
        );
        let lines: Vec<usize> = names(&bad).iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 2, 3, 6, 8]);
        let good = rust(
            "use std::task::Context;\nfn bandwidth(c: &mut Context) { object::f(); }\nfn data_record() {}\n    type Data = u8;\n// let ban\n",
        );
        assert_eq!(names(&good), []);
    }

    #[test]
    fn loose_ends_and_mentions_are_found() {
        let text = format!("// {}: later\n// see {} 7\n// a tissue 8\n", LOOSE_ENDS[0], "issue");
        let rules: Vec<&str> = mentions(&rust(&text)).iter().map(|found| found.rule).collect();
        assert_eq!(rules, ["loose-end", "mention"]);
    }

    #[test]
    fn unwraps_are_for_tests() {
        let text = "fn a() { b.unwrap(); }\n// .unwrap()\n#[cfg(test)]\nmod tests { fn c() { d.unwrap(); } }\n";
        assert_eq!(unwraps(&rust(text)).len(), 1);
        let test = SourceFile { path: "x/tests/a.rs".into(), text: text.into() };
        assert_eq!(unwraps(&[test]), []);
    }

    #[test]
    fn white_space_at_the_end_is_found() {
        assert_eq!(white_space(&rust("a \nb\n\tc")).len(), 2);
    }
}
