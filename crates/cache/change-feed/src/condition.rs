//! Conditions on the values of a row: `where` and `unless` of a rule. A rule touches its tags for an image
//! of a row (before or after the change) only if that image meets the conditions.
//!
//! | value of the column | `where` | `unless` |
//! |---|---|---|
//! | text that a pattern matches | met | not met |
//! | any other text, NULL | not met | met |
//! | unknown | met | met |
//!
//! Invariant: uncertainty never hides a change. Databases compare text without regard to case and trailing
//! spaces. `where` does the same and therefore touches more; `unless` compares exactly, for the same
//! reason.

use crate::template::Filling;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The maximum number of columns in a rule's conditions.
const COLUMNS_MAX: usize = 16;
/// The maximum number of patterns for a column.
const PATTERNS_MAX: usize = 1_000;
/// The maximum length of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 1_024;

/// Conditions as written: columns with one pattern or several.
pub type WrittenConditions = BTreeMap<String, OneOrMany>;

/// A pattern, or a list of patterns, in which `*` matches any text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "write a string or a whole number, or a list of them: [\"a\", \"b*\"]"
)]
pub enum OneOrMany {
    /// One pattern.
    One(Value),
    /// Several patterns; at least one of them must match.
    Many(Vec<Value>),
}

/// A value as written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "write a string or a whole number")]
pub enum Value {
    /// Text, in which `*` matches any text.
    Text(String),
    /// A number in the form that `SELECT` shows.
    Number(i64),
}

/// The conditions on an image of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    all: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    column: String,
    patterns: Vec<String>,
    /// Whether the row meets it if no pattern matches.
    is_negated: bool,
}

impl Conditions {
    /// Reads the conditions.
    ///
    /// # Errors
    /// The column whose condition is invalid, and the reason.
    pub(crate) fn read(
        only: &WrittenConditions,
        unless: &WrittenConditions,
    ) -> Result<Conditions, (String, &'static str)> {
        if only.len() + unless.len() > COLUMNS_MAX {
            return Err(("where and unless".into(), "16 columns at most"));
        }
        let of = |written: &WrittenConditions, is_negated| {
            let all = written.iter();
            let read = all.map(|(column, values)| Condition::read(column, values, is_negated));
            read.collect::<Result<Vec<_>, _>>()
        };
        let mut all = of(only, false)?;
        all.extend(of(unless, true)?);
        Ok(Conditions { all })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The columns in the conditions.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &String> {
        self.all.iter().map(|condition| &condition.column)
    }

    /// Whether an image with these values may meet the conditions.
    pub(crate) fn may_hold<'a>(&self, mut value: impl FnMut(&str) -> Filling<'a>) -> bool {
        self.all.iter().all(|condition| condition.may_hold(value(&condition.column)))
    }
}

impl Condition {
    fn read(
        column: &str,
        written: &OneOrMany,
        is_negated: bool,
    ) -> Result<Condition, (String, &'static str)> {
        let values = match written {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        };
        let wrong = |why| Err((column.to_owned(), why));
        match () {
            () if column.is_empty() => return wrong("name a column"),
            () if values.is_empty() => return wrong("an empty list is met by no row"),
            () if values.len() > PATTERNS_MAX => return wrong("1,000 values at most"),
            () => {}
        }
        let mut patterns = Vec::with_capacity(values.len());
        for value in values {
            let pattern = match value {
                Value::Text(text) => text.clone(),
                Value::Number(number) => number.to_string(),
            };
            if pattern.len() > PATTERN_BYTES_MAX {
                return wrong("a value has 1,024 bytes at most");
            }
            patterns.push(if is_negated { pattern } else { folded(&pattern) });
        }
        Ok(Condition { column: column.to_owned(), patterns, is_negated })
    }

    fn may_hold(&self, value: Filling<'_>) -> bool {
        let is_one = |text: &str| self.patterns.iter().any(|pattern| matches(pattern, text));
        match value {
            Filling::Unknown => true,
            Filling::Null => self.is_negated,
            Filling::Text(text) if self.is_negated => !is_one(&text),
            Filling::Text(text) => is_one(&folded(&text)),
        }
    }
}

/// The text in lower case, without trailing spaces.
fn folded(text: &str) -> String {
    text.trim_end_matches(' ').to_lowercase()
}

/// Whether a text matches a pattern in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let (between, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = text.strip_prefix(begin).and_then(|text| text.strip_suffix(end)) else {
        return false;
    };
    let mut left = inner;
    between.split('*').all(|part| match left.find(part) {
        Some(at) => {
            left = &left[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text) in
            [("a", "a"), ("a*", "a"), ("*", ""), ("*b", "ab"), ("a*c*e", "abcde"), ("**", "x")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*a", "a"), ("*b", "bc"), ("a*c*e", "abde")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_doubt_never_hides_a_change() {
        let one = |text: &str| OneOrMany::One(Value::Text(text.into()));
        let name = |written| WrittenConditions::from([("name".to_owned(), written)]);
        let none = WrittenConditions::new();
        let only = Conditions::read(&name(one("Blog*")), &none).expect("conditions");
        let unless = Conditions::read(&none, &name(one("Cron"))).expect("conditions");
        let text = |text: &'static str| move |_: &str| Filling::Text(text.into());
        assert!(only.may_hold(text("BLOGNAME  ")) && !only.may_hold(text("cron")));
        assert!(!unless.may_hold(text("Cron")) && unless.may_hold(text("cron")));
        assert!(!only.may_hold(|_| Filling::Null) && unless.may_hold(|_| Filling::Null));
        assert!(only.may_hold(|_| Filling::Unknown) && unless.may_hold(|_| Filling::Unknown));
        let number = name(OneOrMany::Many(vec![Value::Number(1)]));
        assert!(Conditions::read(&number, &none).expect("conditions").may_hold(text("1")));
        assert!(Conditions::read(&name(OneOrMany::Many(Vec::new())), &none).is_err());
    }
}
