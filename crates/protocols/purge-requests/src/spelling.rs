//! Expressions over URLs, whatever the percent-encoding: `^/%d9%85/` also finds `/%D9%85/` and the bytes themselves.
//!
//! The expression is compared with the URL as it is stored, and once more with its escapes decoded, with the
//! normalised spelling of the URL. A match of either counts: a page too many costs a render.

use crate::PurgeRefusal;
use crate::pattern::Pattern;
use std::fmt::Write;

/// Bytes whose escapes may stay in the normalised spelling of a URL, because they are delimiters there.
const DELIMITERS: &[u8] = b"/?#%&=+;";

/// An expression over URLs.
#[derive(Clone, Debug)]
pub struct UrlExpression {
    as_written: Pattern,
    /// The expression for the normalised spelling; the same one if it has no escapes.
    decoded: Option<Pattern>,
}

impl UrlExpression {
    /// Matches every URL that begins with `text`.
    pub fn starts_with(text: &str) -> UrlExpression {
        let decoded = decoded(text, Text::Literal).and_then(|text| Pattern::read(&text).ok());
        UrlExpression { as_written: Pattern::starts_with(text), decoded }
    }

    /// A regular expression that may match anywhere in the URL.
    ///
    /// # Errors
    /// The expression is too long, or is not a valid regular expression.
    pub fn read(text: &str) -> Result<UrlExpression, PurgeRefusal> {
        let as_written = Pattern::read(text)?;
        let decoded = decoded(text, Text::Expression).map(|text| Pattern::read(&text));
        Ok(UrlExpression { as_written, decoded: decoded.transpose()? })
    }

    /// Whether the expression matches a URL, as stored or in its normalised spelling.
    pub fn is_in(&self, url: &[u8], spelled: &[u8]) -> bool {
        let decoded = self.decoded.as_ref().unwrap_or(&self.as_written);
        self.as_written.is_in(url)
            || (self.decoded.is_some() || url != spelled) && decoded.is_in(spelled)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// The beginning of a URL.
    Literal,
    /// A regular expression.
    Expression,
}

/// A regular expression for the text with its escapes decoded; `None` if it has none. The escape of a delimiter
/// stands for itself and for the delimiter. In a class of characters nothing is decoded.
fn decoded(text: &str, kind: Text) -> Option<String> {
    let mut out = String::with_capacity(2 * text.len());
    if kind == Text::Literal {
        out.push('^');
    }
    let (mut rest, mut found, mut in_class) = (text, false, false);
    while let Some(letter) = rest.chars().next() {
        // `\%` is a percent sign, too.
        let escape = rest.strip_prefix('\\').filter(|_| kind == Text::Expression).unwrap_or(rest);
        if let Some(byte) = escaped(escape).filter(|_| !in_class) {
            found = true;
            // Writing to a text cannot fail.
            let _ = if DELIMITERS.contains(&byte) {
                write!(out, "(?:%{byte:02X}|\\x{byte:02x})")
            } else {
                write!(out, "\\x{byte:02x}")
            };
            rest = &escape[3..];
            continue;
        }
        let mut end = letter.len_utf8();
        match (kind, letter) {
            (Text::Literal, _) => {
                if letter.is_ascii_punctuation() {
                    out.push('\\');
                }
            }
            (Text::Expression, '\\') => end += rest[end..].chars().next().map_or(0, char::len_utf8),
            (Text::Expression, '[') => in_class = true,
            (Text::Expression, ']') => in_class = false,
            (Text::Expression, _) => {}
        }
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    found.then_some(out)
}

/// The byte that the escape at the beginning of a text denotes.
fn escaped(text: &str) -> Option<u8> {
    let [b'%', high, low, ..] = text.as_bytes() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    Some(digit(*high)? << 4 | digit(*low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an expression matches a URL, with the spelling that `page_store` gives it.
    fn finds(expression: &str, url: &str, spelled: &[u8]) -> bool {
        UrlExpression::read(expression).unwrap().is_in(url.as_bytes(), spelled)
    }

    #[test]
    fn every_spelling_is_found() {
        let meem = "/\u{645}/page".as_bytes();
        for url in ["/%D9%85/page", "/%d9%85/page", "/%D9%85/p%61ge"] {
            for expression in
                ["^/%D9%85/", "^/%d9%85/page$", "/%d9%85/[a-z]+$", "^/\u{645}/", r"^/\%d9\%85/p"]
            {
                assert!(finds(expression, url, meem), "{expression} {url}");
            }
            for start in ["/%D9%85", "/%d9%85/p", "/\u{645}"] {
                let expression = UrlExpression::starts_with(start);
                assert!(expression.is_in(url.as_bytes(), meem), "{start} {url}");
            }
            assert!(!finds("^/%D9%86/", url, meem), "{url}");
        }
        assert!(finds("^/news", "/%6eews/4", b"/news/4"));
        assert!(!UrlExpression::starts_with("/a.%62").is_in(b"/axb", b"/axb"));
    }

    #[test]
    fn the_escape_of_a_delimiter_stays_one() {
        assert!(finds("^/a%2fb$", "/a%2Fb", b"/a%2Fb"));
        assert!(finds("^/a%26b$", "/%61%26b", b"/a&b"));
        assert!(finds("^/a/[^/]+$", "/a/b%2fc", b"/a/b%2Fc"));
    }

    #[test]
    fn classes_and_groups_stay_as_they_are() {
        assert_eq!(decoded("^/[^%2F]%41", Text::Expression).unwrap(), r"^/[^%2F]\x41");
        assert_eq!(decoded(r"^/\[%41", Text::Expression).unwrap(), r"^/\[\x41");
        assert_eq!(decoded("/a.b*", Text::Literal), None);
        assert_eq!(decoded("/a.%4", Text::Expression), None);
    }
}
