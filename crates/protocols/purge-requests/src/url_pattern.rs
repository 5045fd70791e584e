//! Expressions over addresses. Most are a path with an open end, and become a look-up; what is left
//! stays an expression, which a store has to be searched for.
//!
//! They are compared with path and query of a page, as VCLs compare them with `req.url`.

use crate::Unread;
use crate::pattern::Pattern;

/// What an expression over addresses means.
#[derive(Debug)]
pub enum UrlPattern {
    /// Every address.
    Any,
    /// This one, path and query.
    Exact(String),
    /// Everything below this path, which ends with a slash, and the path itself.
    Below(String),
    /// What the expression says.
    Search(Pattern),
}

/// Reads an expression over addresses; found anywhere in them, unless it says where.
///
/// # Errors
/// It is too long, or cannot be used.
pub fn read_url_pattern(text: &str) -> Result<UrlPattern, Unread> {
    let anchored = text.strip_prefix('^');
    let rest = anchored.unwrap_or(text);
    let (middle, open) =
        match (rest.strip_suffix(".*$"), rest.strip_suffix(".*"), rest.strip_suffix('$')) {
            (Some(middle), _, _) | (None, Some(middle), _) => (middle, true),
            (None, None, Some(middle)) => (middle, false),
            (None, None, None) => (rest, true),
        };
    let search = || Pattern::read(text).map(UrlPattern::Search);
    let Some(plain) = plain(middle) else { return search() };
    match (anchored, open, plain.as_str()) {
        (_, true, "" | "/") => Ok(UrlPattern::Any),
        (Some(_), false, path) if path.starts_with('/') => Ok(UrlPattern::Exact(plain)),
        (Some(_), true, path) if is_directory(path) => Ok(UrlPattern::Below(plain)),
        _ => search(),
    }
}

/// Whether everything that begins with this lies below a whole segment.
pub(crate) fn is_directory(path: &str) -> bool {
    path.starts_with('/') && path.ends_with('/') && !path.contains(['?', '#'])
}

/// An expression that is plain text, its escapes undone.
fn plain(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next()? {
                class if class.is_ascii_alphanumeric() => return None,
                escaped => plain.push(escaped),
            },
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' | '|' => {
                return None;
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match read_url_pattern(text) {
            Ok(UrlPattern::Any) => "any".into(),
            Ok(UrlPattern::Exact(url)) => format!("= {url}"),
            Ok(UrlPattern::Below(path)) => format!("< {path}"),
            Ok(UrlPattern::Search(_)) => "search".into(),
            Err(error) => error.as_str().into(),
        }
    }

    #[test]
    fn what_becomes_a_look_up() {
        for (text, right) in [
            (".*", "any"),
            ("", "any"),
            ("/", "any"),
            ("/.*", "any"),
            ("^/", "any"),
            ("^/.*$", "any"),
            ("^.*", "any"),
            ("^/news/", "< /news/"),
            ("^/news/.*", "< /news/"),
            ("^/news/.*$", "< /news/"),
            ("^/a\\.b/", "< /a.b/"),
            ("^/news/4$", "= /news/4"),
            ("^/s\\?q=1$", "= /s?q=1"),
            ("^/$", "= /"),
            ("/news/", "search"),
            ("^/news", "search"),
            ("^/a.b$", "search"),
            ("\\.png$", "search"),
            ("^/s\\?q=", "search"),
            ("^/a/(b|c)", "search"),
            ("^/n\\d/", "search"),
            ("news$", "search"),
            ("^/a/\\?x/", "search"),
            ("$", "search"),
            ("(", "pattern-unusable"),
            ("^/a/\\", "pattern-unusable"),
        ] {
            assert_eq!(read(text), right, "{text}");
        }
    }
}
