//! Expressions over hosts, addresses and media types: what no list of names can say.
//!
//! The engine takes time in proportion to the text, whatever the expression; its size is bounded
//! when it is made, by the bytes of the expression and by those of the machine it becomes. What
//! other engines have beyond that (look-around, back-references) is refused with a reason.

use crate::Unread;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::Arc;

/// The longest expression in bytes.
pub const PATTERN_BYTES_MAX: usize = 2_048;
/// What an expression may become, in bytes: `(a{1000}){1000}` is short, too.
const MACHINE_BYTES_MAX: usize = 256 << 10;
/// Brackets within brackets.
const NESTING_MAX: u32 = 32;

/// An expression.
#[derive(Clone, Debug)]
pub struct Pattern(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Starts(Arc<str>),
    Matches(Arc<Regex>),
}

impl Pattern {
    /// Whatever begins with these bytes.
    pub fn starts_with(text: &str) -> Pattern {
        Pattern(Kind::Starts(text.into()))
    }

    /// A regular expression that is to be found anywhere in the text, as Varnish's `~` does.
    ///
    /// # Errors
    /// It is too long, or no expression that can be used.
    pub fn read(text: &str) -> Result<Pattern, Unread> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(Unread::PatternTooLong);
        }
        let made = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(MACHINE_BYTES_MAX)
            .dfa_size_limit(MACHINE_BYTES_MAX)
            .nest_limit(NESTING_MAX)
            .build();
        match made {
            Ok(regex) => Ok(Pattern(Kind::Matches(Arc::new(regex)))),
            Err(error) => Err(Unread::PatternUnusable(in_a_line(&error.to_string()))),
        }
    }

    /// Whether a text has it.
    pub fn is_in(&self, text: &[u8]) -> bool {
        match &self.0 {
            Kind::Starts(start) => text.starts_with(start.as_bytes()),
            Kind::Matches(regex) => regex.is_match(text),
        }
    }
}

/// The engine's errors show the expression in several lines; the last one says what is wrong.
fn in_a_line(error: &str) -> String {
    let last = error.lines().next_back().unwrap_or_default();
    let said = last.trim().trim_start_matches("error: ");
    said.chars().take(200).collect()
}

/// What has to be true of a page, all of it. A part that is not given is true of every page.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// One of its hosts has this.
    pub host: Option<Pattern>,
    /// Its path and query, in their normal form, have this.
    pub url: Option<Pattern>,
    /// Its media type has this; a page without one has nothing.
    pub content_type: Option<Pattern>,
}

/// A page as conditions see it.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// Its host.
    pub host: &'a str,
    /// The other names of the same host.
    pub aliases: &'a [String],
    /// Path and query in their normal form.
    pub url: &'a [u8],
    /// The value of `Content-Type`.
    pub content_type: Option<&'a [u8]>,
}

impl Conditions {
    /// Whether they hold for a page.
    pub fn hold(&self, page: &Described<'_>) -> bool {
        let host = |pattern: &Pattern| {
            let mut aliases = page.aliases.iter();
            pattern.is_in(page.host.as_bytes())
                || aliases.any(|name| pattern.is_in(name.as_bytes()))
        };
        let content_type =
            |pattern: &Pattern| page.content_type.is_some_and(|it| pattern.is_in(it));
        self.host.as_ref().is_none_or(host)
            && self.url.as_ref().is_none_or(|pattern| pattern.is_in(page.url))
            && self.content_type.as_ref().is_none_or(content_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_and_what_is_refused() {
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
                matches!(&error, Unread::PatternUnusable(why) if !why.is_empty()),
                "{wrong}: {error:?}"
            );
        }
        assert!(Pattern::read(&"(".repeat(40)).is_err());
        assert_eq!(Pattern::read(&"a".repeat(2_049)).unwrap_err(), Unread::PatternTooLong);
    }

    #[test]
    fn all_conditions_have_to_hold() {
        let aliases = ["b.test".to_owned()];
        let page = Described {
            host: "a.test",
            aliases: &aliases,
            url: b"/x?y",
            content_type: Some(b"text/html"),
        };
        let pattern = |text: &str| Some(Pattern::read(text).unwrap());
        let both = Conditions { host: pattern("^b"), url: pattern("^/x"), content_type: None };
        assert!(Conditions::default().hold(&page) && both.hold(&page));
        assert!(!Conditions { host: pattern("^c"), ..both.clone() }.hold(&page));
        assert!(!Conditions { content_type: pattern("image"), ..both.clone() }.hold(&page));
        let typed = Conditions { content_type: pattern("html"), ..both };
        assert!(typed.hold(&page) && !typed.hold(&Described { content_type: None, ..page }));
    }
}
