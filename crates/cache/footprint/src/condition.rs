//! Conditions on the rows of one table.
//!
//! Invariant: a condition that was read from a statement is *necessary*: a row that does not satisfy it does
//! not affect the result. Where it answers [`Match::Yes`] or [`Match::No`], the answer is the database's.
//! Comparisons with NULL satisfy nothing, also when they are negated. Not here: the statement.

use crate::compare::{Comparison, Constant, Match, Pattern, moment};
use crate::row::{SqlRow, SqlValue};
use std::cmp::Ordering;

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// Every row satisfies it.
    Always,
    /// No row satisfies it.
    Never,
    /// One column satisfies a test.
    Atom(Atom),
    /// All of these.
    All(Vec<Condition>),
    /// At least one of these.
    Any(Vec<Condition>),
}

/// A test of one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Atom {
    /// The position of the column in its table.
    pub column: u16,
    /// The part of a date and time that is tested instead of the whole value.
    pub part: Option<MomentPart>,
    /// The test of the value, or of its part.
    pub test: Test,
    /// Whether the row must fail the test.
    pub is_negated: bool,
}

/// A test of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// It is one of these.
    In(Vec<Constant>),
    /// It is between these, or beyond one of them.
    Range { low: Option<RangeEnd>, high: Option<RangeEnd> },
    /// It matches a pattern of `LIKE`.
    Like(Pattern),
    /// It is NULL.
    Null,
}

/// An end of a range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RangeEnd {
    /// The value at this end.
    pub value: Constant,
    /// Whether the value itself is in the range.
    pub is_included: bool,
}

/// A part of a date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MomentPart {
    /// `YEAR()`
    Year,
    /// `MONTH()`
    Month,
    /// `DAY()`, `DAYOFMONTH()`
    Day,
}

impl Condition {
    /// All of these conditions.
    pub fn all(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut all = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Always => {}
                Condition::Never => return Condition::Never,
                Condition::All(inner) => all.extend(inner),
                other @ (Condition::Atom(_) | Condition::Any(_)) => all.push(other),
            }
        }
        match all.len() {
            0 => Condition::Always,
            1 => all.remove(0),
            _ => Condition::All(all),
        }
    }

    /// At least one of these conditions.
    pub fn any(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let mut any = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Never => {}
                Condition::Always => return Condition::Always,
                Condition::Any(inner) => any.extend(inner),
                other @ (Condition::Atom(_) | Condition::All(_)) => any.push(other),
            }
        }
        match any.len() {
            0 => Condition::Never,
            1 => any.remove(0),
            _ => Condition::Any(any),
        }
    }

    /// Whether the row satisfies the condition.
    pub fn matches(&self, row: &SqlRow<'_>) -> Match {
        match self {
            Condition::Always => Match::Yes,
            Condition::Never => Match::No,
            Condition::Atom(atom) => atom.matches(row.get(atom.column)),
            Condition::All(all) => {
                let mut least = Match::Yes;
                for condition in all {
                    least = least.min(condition.matches(row));
                    if least == Match::No {
                        break;
                    }
                }
                least
            }
            Condition::Any(any) => {
                any.iter().map(|condition| condition.matches(row)).max().unwrap_or(Match::No)
            }
        }
    }

    /// Whether the condition fails for a row of NULLs, so that an outer join that it follows is an inner one.
    pub fn rejects_null(&self) -> bool {
        match self {
            Condition::Always => false,
            Condition::Never => true,
            Condition::Atom(atom) => atom.test != Test::Null || atom.is_negated,
            Condition::All(all) => all.iter().any(Condition::rejects_null),
            Condition::Any(any) => any.iter().all(Condition::rejects_null),
        }
    }

    /// The conditions that must all hold.
    pub fn conjuncts(&self) -> &[Condition] {
        match self {
            Condition::All(all) => all,
            Condition::Always => &[],
            Condition::Never | Condition::Atom(_) | Condition::Any(_) => std::slice::from_ref(self),
        }
    }
}

impl Atom {
    fn matches(&self, value: &SqlValue<'_>) -> Match {
        let text = match value {
            SqlValue::Unknown => return Match::Maybe,
            SqlValue::Null => return Match::from(self.test == Test::Null && !self.is_negated),
            SqlValue::Text(text) => text.as_ref(),
        };
        let is_match = match self.part {
            None => self.test.matches(text),
            Some(part) => part.of(text).map_or(Match::Maybe, |number| self.test.matches(number)),
        };
        if self.is_negated { !is_match } else { is_match }
    }

    /// The constants, if the value of the column must be equal to one of them.
    pub fn constants(&self) -> Option<&[Constant]> {
        match &self.test {
            Test::In(constants) if self.part.is_none() && !self.is_negated => Some(constants),
            _ => None,
        }
    }
}

impl Test {
    fn matches(&self, text: &str) -> Match {
        match self {
            Test::In(constants) => one_of(constants, text),
            Test::Range { low, high } => {
                let inside = |bound: &Option<RangeEnd>, outside: Ordering| {
                    bound.as_ref().map_or(Match::Yes, |bound| bound.matches(text, outside))
                };
                inside(low, Ordering::Less).min(inside(high, Ordering::Greater))
            }
            Test::Like(pattern) => pattern.matches(text),
            // MariaDB: `IS NULL` is true for a date of zeros, which frameworks write for "none".
            Test::Null if text.starts_with("0000-00-00") => Match::Maybe,
            Test::Null => Match::No,
        }
    }
}

/// Whether the text is one of the constants. Whole numbers are in ascending order.
fn one_of(constants: &[Constant], text: &str) -> Match {
    if let Some(Constant::Integer(_)) = constants.first() {
        let Ok(number) = text.parse::<i128>() else { return Match::Maybe };
        let order = |constant: &Constant| match constant {
            Constant::Integer(constant) => constant.cmp(&number),
            _ => Ordering::Less,
        };
        return constants.binary_search_by(order).is_ok().into();
    }
    let is_match = |constant: &Constant| match constant.compare(text) {
        Comparison::Is(order) => Match::from(order == Ordering::Equal),
        Comparison::Differs => Match::No,
        Comparison::Unknown => Match::Maybe,
    };
    constants.iter().map(is_match).max().unwrap_or(Match::No)
}

impl RangeEnd {
    fn matches(&self, text: &str, outside: Ordering) -> Match {
        match self.value.compare(text) {
            Comparison::Is(Ordering::Equal) => self.is_included.into(),
            Comparison::Is(order) => (order != outside).into(),
            Comparison::Differs | Comparison::Unknown => Match::Maybe,
        }
    }
}

impl MomentPart {
    /// The digits of this part, as a number. `None` if the text is not a date.
    fn of(self, text: &str) -> Option<&str> {
        moment(text)?;
        let digits = match self {
            MomentPart::Year => text.get(..4)?,
            MomentPart::Month => text.get(5..7)?,
            MomentPart::Day => text.get(8..10)?,
        };
        Some(digits)
    }
}
