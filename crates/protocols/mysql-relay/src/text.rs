//! The text of a statement in words, strings and marks, as far as a relay must understand it: where its
//! placeholders are, and which settings of the session it changes.
//!
//! Invariant: what is inside a string, a quoted name or a comment is never taken for something else, in the
//! mode of the session. A text that cannot be split is refused as a whole. Not here: the structure of SQL.

use crate::session::{SessionCharset, SessionMode};

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlPart<'t> {
    /// A word without quotes, a number, or a variable with its `@`.
    Word(&'t [u8]),
    /// The content of a quoted string, as written.
    Text(&'t [u8]),
    /// The content of a quoted name, as written.
    Name(&'t [u8]),
    /// A placeholder, with its place in the text.
    Placeholder(usize),
    /// The beginning of a comment that some servers execute.
    Executable,
    /// Any other character.
    Mark(u8),
}

/// The text cannot be split: a quote or a comment does not end, or its character set hides quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoParts;

impl SqlPart<'_> {
    /// Whether the part is this word, in any case.
    pub fn is(&self, expected: &str) -> bool {
        matches!(self, SqlPart::Word(word) if word.eq_ignore_ascii_case(expected.as_bytes()))
    }
}

/// Splits a text.
///
/// # Errors
/// [`NoParts`].
pub fn split(text: &[u8], mode: SessionMode) -> Result<Vec<SqlPart<'_>>, NoParts> {
    // In some Chinese and Japanese character sets, these bytes are also the second half of a character.
    let is_half = |pair: &[u8]| !pair[0].is_ascii() && matches!(pair[1], b'\\' | b'`');
    if mode.charset == SessionCharset::Other && text.windows(2).any(is_half) {
        return Err(NoParts);
    }
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0 => at += 1,
            b'#' => at += line(rest),
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|next| *next <= b' ') => {
                at += line(rest);
            }
            b'/' if rest.starts_with(b"/*!") || rest.starts_with(b"/*M!") => {
                parts.push(SqlPart::Executable);
                at += 3;
            }
            b'/' if rest.starts_with(b"/*") => {
                let end = rest[2..].windows(2).position(|pair| pair == b"*/").ok_or(NoParts)?;
                at += end + 4;
            }
            b'\'' | b'"' | b'`' => {
                let is_text = byte == b'\'' || byte == b'"' && !mode.has_ansi_quotes;
                let has_escapes = is_text && !mode.has_plain_backslashes;
                let length = quoted(rest, has_escapes).ok_or(NoParts)?;
                let content = &rest[1..length - 1];
                parts.push(if is_text { SqlPart::Text(content) } else { SqlPart::Name(content) });
                at += length;
            }
            b'?' => {
                parts.push(SqlPart::Placeholder(at));
                at += 1;
            }
            _ if is_word(byte) => {
                let length = rest.iter().take_while(|byte| is_word(**byte)).count();
                parts.push(SqlPart::Word(&rest[..length]));
                at += length;
            }
            _ => {
                parts.push(SqlPart::Mark(byte));
                at += 1;
            }
        }
    }
    Ok(parts)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || !byte.is_ascii()
}

/// The length of a comment that ends with its line.
fn line(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// The length of the quoted part at the start, with both quotes. A doubled quote does not end it. `None` if it
/// does not end.
fn quoted(rest: &[u8], has_escapes: bool) -> Option<usize> {
    let quote = *rest.first()?;
    let mut at = 1;
    loop {
        match *rest.get(at)? {
            b'\\' if has_escapes => at += 2,
            byte if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, mode: SessionMode) -> Option<Vec<usize>> {
        let parts = split(text.as_bytes(), mode).ok()?;
        let place = |part: &SqlPart<'_>| match part {
            SqlPart::Placeholder(at) => Some(*at),
            _ => None,
        };
        Some(parts.iter().filter_map(place).collect())
    }

    #[test]
    fn placeholders_are_found_outside_of_quotes_and_comments() {
        let plain = SessionMode::default();
        for (text, expected) in [
            ("a = ? AND b = ?", Some(vec![4, 14])),
            ("'?' \"?\" `?` ?", Some(vec![12])),
            (r"'it\'s ?' ?", Some(vec![10])),
            ("'a''?' ?", Some(vec![7])),
            ("-- ?\n# ?\n/* ? */ ?", Some(vec![17])),
            ("a--?", Some(vec![3])),
            ("'a", None),
            ("/* a", None),
            (r"'a\'", None),
        ] {
            assert_eq!(places(text, plain), expected, "{text}");
        }
        let backslashes = SessionMode { has_plain_backslashes: true, ..plain };
        assert_eq!(places(r"'a\' ?", backslashes), Some(vec![5]));
        let quotes = SessionMode { has_ansi_quotes: true, ..plain };
        assert_eq!(places(r#""a\" ?"#, quotes), Some(vec![5]));
        assert_eq!(places(r#""a\" ?"#, plain), None);
    }

    #[test]
    fn a_half_of_a_character_is_no_backslash() {
        let other = SessionMode { charset: SessionCharset::Other, ..SessionMode::default() };
        assert_eq!(split(b"'\xbf\\' ?'", other), Err(NoParts));
        assert!(split(b"'\xe9' ?", other).is_ok());
        let binary = SessionMode { charset: SessionCharset::Binary, ..SessionMode::default() };
        assert_eq!(split(b"'\xbf\\' ?'", binary), Ok(vec![SqlPart::Text(b"\xbf\\' ?")]));
    }
}
