//! Rules about the names of types: a public one is unique in the workspace, and none is a bare participle.
//!
//! Two public types of one name make a reader look up which is meant. A type whose whole name is a participle
//! or a pronoun says neither what it is nor what it holds. Both are kept by the ratchet: names that are
//! repeated today have a line each in `xtask/tidy.toml`, the participles are counted. Tests, examples and
//! types that belong to a trait are passed over.

use super::files::SourceFile;
use super::lexer::{Language, code_only, is_word};
use super::ratchet::{NumberKind, RatchetNumber};
use super::{Finding, finding};
use std::collections::BTreeMap;

/// Participles that do not end in `-ed`, pronouns and the like.
const BARE: [&str; 48] = [
    "Begun",
    "Beside",
    "Besides",
    "Bound",
    "Broken",
    "Built",
    "Chosen",
    "Few",
    "Forgotten",
    "Found",
    "Given",
    "Gone",
    "Heard",
    "Held",
    "Hidden",
    "Kept",
    "Known",
    "Laid",
    "Left",
    "Lent",
    "Lost",
    "Made",
    "Meant",
    "Nothing",
    "Others",
    "Own",
    "Rare",
    "Read",
    "Said",
    "Seen",
    "Sent",
    "Set",
    "Shown",
    "Spoken",
    "Spoilt",
    "Taken",
    "Then",
    "Those",
    "Thrown",
    "Told",
    "Torn",
    "Understood",
    "What",
    "Which",
    "Who",
    "Why",
    "Written",
    "Wrong",
];
/// Nouns that look like participles.
const NOUNS: [&str; 5] = ["Feed", "Memcached", "Need", "Seed", "Speed"];
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// A type that a line declares.
struct TypeDeclaration<'a> {
    name: &'a str,
    line: usize,
    is_public: bool,
}

/// Public names that are declared more than once, each with its places.
pub fn repeated(files: &[SourceFile]) -> Vec<RatchetNumber> {
    let mut places: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product(file)) {
        let code = code_only(&file.text, Language::Rust);
        for TypeDeclaration { name, line, is_public } in declared(&code) {
            if is_public {
                let message = format!("`{name}` is declared elsewhere, too: say which one this is");
                let place = finding(file, line, "type-name", &message);
                places.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    let number = |(name, places): (String, Vec<Finding>)| RatchetNumber {
        kind: NumberKind::Repeated,
        limit: 1,
        ..RatchetNumber::count(&name, places)
    };
    places.into_iter().map(number).collect()
}

/// Types whose whole name is a participle or a pronoun.
pub fn participles(files: &[SourceFile]) -> RatchetNumber {
    let mut places = Vec::new();
    for file in files.iter().filter(|file| is_product(file)) {
        let code = code_only(&file.text, Language::Rust);
        for TypeDeclaration { name, line, .. } in declared(&code).filter(|one| is_bare(one.name)) {
            let message =
                format!("`{name}` is a participle or a pronoun: name the noun (`PendingChange`)");
            places.push(finding(file, line, "type-name", &message));
        }
    }
    RatchetNumber::count("participle_type_names", places)
}

fn is_product(file: &SourceFile) -> bool {
    file.extension() == "rs" && !file.is_test() && !file.path.contains("/examples/")
}

/// The types that code declares before its tests, which by the habit of the house end a file.
fn declared(code: &str) -> impl Iterator<Item = TypeDeclaration<'_>> {
    let lines = code.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    lines.enumerate().filter_map(|(number, line)| {
        let text = line.trim_start();
        let rest = match text.strip_prefix("pub(") {
            Some(rest) => rest.split_once(')')?.1.trim_start(),
            None => text.strip_prefix("pub ").unwrap_or(text),
        };
        let (keyword, rest) = rest.split_once(' ')?;
        // An indented `type` belongs to a trait.
        if !KEYWORDS.contains(&keyword) || keyword == "type" && line.starts_with(' ') {
            return None;
        }
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        let is_public = text.starts_with("pub ");
        (length > 0).then(|| TypeDeclaration { name: &rest[..length], line: number + 1, is_public })
    })
}

fn is_bare(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    let is_participle = name.ends_with("ed") && !NOUNS.contains(&name);
    is_one_word && (is_participle || BARE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    #[test]
    fn a_public_name_is_unique() {
        let files = [
            file(
                "a/src/x.rs",
                "pub struct Answer;\npub(crate) enum Target {}\n    type Item = u8;\n",
            ),
            file(
                "b/src/y.rs",
                "/// pub trait Answer\n\npub trait Answer<T> {}\npub enum Target {}\n",
            ),
            file("b/tests/z.rs", "pub struct Target;\n"),
            file("b/src/w.rs", "#[cfg(test)]\nmod tests {\n    pub struct Target;\n}\n"),
        ];
        let found = repeated(&files);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].value), ("Answer", 2));
        assert_eq!((found[0].places[1].path.as_str(), found[0].places[1].line), ("b/src/y.rs", 3));
    }

    #[test]
    fn participles_and_pronouns_are_no_names() {
        let text = "struct Told;\npub enum Waited {}\nstruct TimedOut;\npub struct Feed(u8);\n\
                    pub(super) type Why = u8;\nstruct Reader;\n";
        let lines: Vec<usize> = participles(&[file("a/src/x.rs", text)])
            .places
            .iter()
            .map(|found| found.line)
            .collect();
        assert_eq!(lines, [1, 2, 5]);
    }
}
