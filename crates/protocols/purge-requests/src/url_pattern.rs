//! Regular expressions over URLs. Most are a path with an open end and become a lookup. The others stay
//! expressions, for which the store must be searched.
//!
//! Expressions are compared with path and query of a page, as VCL code compares them with `req.url`.

use crate::PurgeRefusal;
use crate::spelling::UrlExpression;

/// The pages that an expression over URLs selects.
#[derive(Debug)]
pub enum UrlPattern {
    /// Every URL.
    Any,
    /// This URL only: path and query.
    Exact(String),
    /// This path, which ends with a slash, and everything below it.
    Below(String),
    /// All URLs that match the expression.
    Search(UrlExpression),
}

/// Parses an expression over URLs. It may match anywhere in a URL unless it is anchored.
///
/// # Errors
/// The expression is too long, or is not a valid regular expression.
pub fn read_url_pattern(text: &str) -> Result<UrlPattern, PurgeRefusal> {
    let anchored = text.strip_prefix('^');
    let rest = anchored.unwrap_or(text);
    let (middle, open) =
        match (rest.strip_suffix(".*$"), rest.strip_suffix(".*"), rest.strip_suffix('$')) {
            (Some(middle), _, _) | (None, Some(middle), _) => (middle, true),
            (None, None, Some(middle)) => (middle, false),
            (None, None, None) => (rest, true),
        };
    let search = || UrlExpression::read(text).map(UrlPattern::Search);
    let Some(plain) = plain(middle) else { return search() };
    match (anchored, open, plain.as_str()) {
        (_, true, "" | "/") => Ok(UrlPattern::Any),
        (Some(_), false, path) if path.starts_with('/') => Ok(UrlPattern::Exact(plain)),
        (Some(_), true, path) if is_directory(path) => Ok(UrlPattern::Below(plain)),
        _ => search(),
    }
}

/// Whether `path` is made of whole segments, so that all URLs with this prefix are below one directory.
pub(crate) fn is_directory(path: &str) -> bool {
    path.starts_with('/') && path.ends_with('/') && !path.contains(['?', '#'])
}

/// The text that an expression without special characters matches, with its escapes removed. `None` for other
/// expressions.
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
    fn simple_expressions_become_look_ups() {
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
