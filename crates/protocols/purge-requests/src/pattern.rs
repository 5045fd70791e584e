//! Regular expressions over hosts, URLs and media types, for purges that no list of tags can express.
//!
//! The regex engine takes time linear in the length of the text, whatever the expression. The length of an
//! expression and the size of its compiled form are bounded. Look-around and back-references, which other
//! engines support, are rejected with a reason.

use crate::PurgeRefusal;
use crate::spelling::UrlExpression;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::Arc;

/// The maximum length of an expression in bytes.
pub const PATTERN_BYTES_MAX: usize = 2_048;
/// The maximum size of a compiled expression in bytes: a short one such as `(a{1000}){1000}` may be large.
const MACHINE_BYTES_MAX: usize = 256 << 10;
/// The maximum nesting depth of groups in an expression.
const NESTING_MAX: u32 = 32;

/// A compiled expression, or a plain prefix.
#[derive(Clone, Debug)]
pub struct Pattern(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Starts(Arc<str>),
    Matches(Arc<Regex>),
}

impl Pattern {
    /// Matches every text that begins with `text`.
    pub fn starts_with(text: &str) -> Pattern {
        Pattern(Kind::Starts(text.into()))
    }

    /// A regular expression that may match anywhere in the text, like the operator `~` of Varnish.
    ///
    /// # Errors
    /// The expression is too long, or is not a valid regular expression.
    pub fn read(text: &str) -> Result<Pattern, PurgeRefusal> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PurgeRefusal::PatternTooLong);
        }
        let made = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(MACHINE_BYTES_MAX)
            .dfa_size_limit(MACHINE_BYTES_MAX)
            .nest_limit(NESTING_MAX)
            .build();
        match made {
            Ok(regex) => Ok(Pattern(Kind::Matches(Arc::new(regex)))),
            Err(error) => Err(PurgeRefusal::PatternUnusable(in_a_line(&error.to_string()))),
        }
    }

    /// Whether the pattern matches a text.
    pub fn is_in(&self, text: &[u8]) -> bool {
        match &self.0 {
            Kind::Starts(start) => text.starts_with(start.as_bytes()),
            Kind::Matches(regex) => regex.is_match(text),
        }
    }
}

/// The engine shows an error on several lines. The last line describes the error.
fn in_a_line(error: &str) -> String {
    let last = error.lines().next_back().unwrap_or_default();
    let said = last.trim().trim_start_matches("error: ");
    said.chars().take(200).collect()
}

/// Conditions on a page. The page matches if all of them hold. A condition that is absent always holds.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Matches the host of the page or one of its aliases.
    pub host: Option<Pattern>,
    /// Matches path and query of the page after URL normalisation.
    pub url: Option<UrlExpression>,
    /// Matches the media type of the page. A page without a media type does not match.
    pub content_type: Option<Pattern>,
}

/// The properties of a page that conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub struct PageProperties<'a> {
    /// The host of the page.
    pub host: &'a str,
    /// The other names of the same host.
    pub aliases: &'a [String],
    /// Path and query after URL normalisation.
    pub url: &'a [u8],
    /// The spelling of `url` that all its spellings have in common (RFC 3986 section 6.2.2).
    pub spelled: &'a [u8],
    /// The value of `Content-Type`.
    pub content_type: Option<&'a [u8]>,
}

impl Conditions {
    /// Whether the conditions hold for a page.
    pub fn hold(&self, page: &PageProperties<'_>) -> bool {
        let host = |pattern: &Pattern| {
            let mut aliases = page.aliases.iter();
            pattern.is_in(page.host.as_bytes())
                || aliases.any(|name| pattern.is_in(name.as_bytes()))
        };
        let content_type =
            |pattern: &Pattern| page.content_type.is_some_and(|it| pattern.is_in(it));
        self.host.as_ref().is_none_or(host)
            && self.url.as_ref().is_none_or(|url| url.is_in(page.url, page.spelled))
            && self.content_type.as_ref().is_none_or(content_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_matched_or_refused() {
        assert!(Pattern::read("^/news/[0-9]+$").unwrap().is_in(b"/news/4"));
        assert!(!Pattern::read("^/news/[0-9]+$").unwrap().is_in(b"/news/4/"));
        assert!(Pattern::read("(?i)\\.PNG").unwrap().is_in(b"/a.png?x"));
        assert!(
            Pattern::starts_with("/a.").is_in(b"/a.b")
                && !Pattern::starts_with("/a.").is_in(b"/ab")
        );
        for wrong in ["(", "a(?=b)", "(a)\\1", "*", "[z-a]", "(a{1000}){1000}"] {
            let error = Pattern::read(wrong).unwrap_err();
            assert!(
                matches!(&error, PurgeRefusal::PatternUnusable(why) if !why.is_empty()),
                "{wrong}: {error:?}"
            );
        }
        assert!(Pattern::read(&"(".repeat(40)).is_err());
        assert_eq!(Pattern::read(&"a".repeat(2_049)).unwrap_err(), PurgeRefusal::PatternTooLong);
    }

    #[test]
    fn all_conditions_have_to_hold() {
        let aliases = ["b.test".to_owned()];
        let page = PageProperties {
            host: "a.test",
            aliases: &aliases,
            url: b"/x?y",
            spelled: b"/x?y",
            content_type: Some(b"text/html"),
        };
        let pattern = |text: &str| Some(Pattern::read(text).unwrap());
        let url = Some(UrlExpression::read("^/x").unwrap());
        let both = Conditions { host: pattern("^b"), url, content_type: None };
        assert!(Conditions::default().hold(&page) && both.hold(&page));
        assert!(!Conditions { host: pattern("^c"), ..both.clone() }.hold(&page));
        assert!(!Conditions { content_type: pattern("image"), ..both.clone() }.hold(&page));
        let typed = Conditions { content_type: pattern("html"), ..both };
        assert!(typed.hold(&page) && !typed.hold(&PageProperties { content_type: None, ..page }));
    }
}
