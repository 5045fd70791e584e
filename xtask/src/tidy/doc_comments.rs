//! The rule for documentation comments: they can be understood without the signature below them.
//!
//! Their length can be checked: on a public item (a function, a type, a field, a constant) fewer than
//! four words are counted, and the ratchet keeps the count. Attributes between the comment and the item are
//! passed over, and so are tests.

use super::files::SourceFile;
use super::finding;
use super::ratchet::RatchetNumber;

/// Fewer words than this say too little.
const WORDS_MIN: usize = 4;

/// Public items whose documentation has fewer than four words.
pub fn short(files: &[SourceFile]) -> RatchetNumber {
    let mut places = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs" && !file.is_test()) {
        for (line, text) in documented(&file.text) {
            if words(&text) < WORDS_MIN {
                let message = format!(
                    "`{}`: say what the item is, so that nobody has to read its signature",
                    text.trim()
                );
                places.push(finding(file, line, "doc-comment", &message));
            }
        }
    }
    RatchetNumber::count("short_doc_comments", places)
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// The documentation of each public item before the tests, with its first line.
fn documented(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut documentation: Option<(usize, String)> = None;
    let mut in_attribute = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line == "#[cfg(test)]" {
            break;
        }
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
        } else if let Some(words) = line.strip_prefix("///") {
            documentation.get_or_insert((number + 1, String::new())).1.push_str(words);
        } else if let Some(documentation) = documentation.take()
            && line.starts_with("pub ")
        {
            found.push(documentation);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ones_on_public_items_are_found() {
        let text = "/// Its number.\npub number: u8,\n/// It.\nfn own() {}\n/// One.\n/// And three words.\n#[a(\n  b\n)]\n\
                    pub fn a() {}\n    /// `GET` — or not.\n    #[must_use]\n    pub struct A;\n\
                    #[cfg(test)]\n/// No.\npub fn b() {}\n";
        let file = SourceFile { path: "a.rs".into(), text: text.into() };
        let lines: Vec<usize> = short(&[file]).places.iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 11]);
    }
}
