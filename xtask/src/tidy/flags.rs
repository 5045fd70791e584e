//! The rule for flags: a choice by a `bool` is an `if`, not a `match` with the arms `true` and `false`.
//!
//! Counts each `match` that has one of these arms with no guard at its own level; what stands inside of other
//! patterns or arms does not count. The ratchet keeps the count.

use super::files::SourceFile;
use super::finding;
use super::lexer::{Language, code_only, is_word};
use super::ratchet::RatchetNumber;

/// Every `match` over a flag.
pub fn flags(files: &[SourceFile]) -> RatchetNumber {
    let mut places = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let code = code_only(&file.text, Language::Rust);
        for (at, _) in code.match_indices("match ") {
            let is_whole = !code[..at].bytes().next_back().is_some_and(is_word);
            if is_whole && body(&code[at..]).is_some_and(has_flag_arm) {
                let line = 1 + code[..at].matches('\n').count();
                places.push(finding(file, line, "flag", "a `match` over a flag: write `if`"));
            }
        }
    }
    RatchetNumber::count("flag_matches", places)
}

/// The text from the opening brace of a `match` on.
fn body(code: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(&code[at + 1..]),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Whether one of the arms up to the closing brace is `true =>` or `false =>`.
fn has_flag_arm(body: &str) -> bool {
    let mut depth = 0_usize;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' if depth == 0 => return false,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            b't' | b'f' if depth == 0 && is_flag_arm(body, at) => return true,
            _ => {}
        }
    }
    false
}

fn is_flag_arm(body: &str, at: usize) -> bool {
    let starts_arm =
        body[..at].trim_end().bytes().next_back().is_none_or(|byte| matches!(byte, b',' | b'}'));
    let rest = &body[at..];
    let rest = rest.strip_prefix("true").or_else(|| rest.strip_prefix("false"));
    starts_arm && rest.is_some_and(|rest| rest.trim_start().starts_with("=>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_matches_over_a_flag_are_found() {
        let text = "match a { true => 1, false => 2 }\nmatch b.c(|d| { d }) {\n    0 => 1,\n    _ => match e {\n\
                    false => 1,\n _ => 2 },\n}\nmatch f { Some(true) => 1, _ => 2 }\n// match g { true => 1 }\n\
                    match h { true if i => 1, _ => 2 }\nmatch j { trued => 1 }\n";
        let file = SourceFile { path: "a.rs".into(), text: text.into() };
        let lines: Vec<usize> = flags(&[file]).places.iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 4]);
    }
}
