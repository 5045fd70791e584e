//! Comparisons of a stored value with a constant, as the database would do them.
//!
//! Invariant: an answer that is not [`Match::Maybe`] is the database's. Where the comparison depends on a
//! collation, on rounding or on a conversion that is not known exactly, the answer is `Maybe`.
//! Not here: which comparisons a statement makes.

use crate::budget::MatchBudget;
use crate::literal::Literal;
use crate::schema::SqlColumnKind;
use crate::value_text::{ValueText, is_plain};
use change_feed::text::fold_constant;
use std::cmp::Ordering;
use std::sync::Arc;

/// Whether a row satisfies a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// The row does not satisfy the condition.
    No,
    /// The row may satisfy the condition: a value or a comparison is not known.
    Maybe,
    /// The row satisfies the condition.
    Yes,
}

impl From<bool> for Match {
    fn from(is_match: bool) -> Match {
        if is_match { Match::Yes } else { Match::No }
    }
}

impl std::ops::Not for Match {
    type Output = Match;

    fn not(self) -> Match {
        match self {
            Match::No => Match::Yes,
            Match::Maybe => Match::Maybe,
            Match::Yes => Match::No,
        }
    }
}

/// The form of a date and time.
const MOMENT: &[u8; 26] = b"0000-00-00 00:00:00.000000";

/// A constant in the form in which values of a column are compared with it. Statements share the memory of equal
/// texts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    Integer(i64),
    Number(f64),
    /// `YYYY-MM-DD HH:MM:SS.ffffff`.
    Moment(Arc<str>),
    Text {
        text: Arc<str>,
        is_case_sensitive: bool,
    },
    /// A text in folded form, for comparisons by several collations.
    Folded(Arc<str>),
    Bytes(Arc<str>),
}

/// The order of a stored value and a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// This order.
    Is(Ordering),
    /// They differ, in an unknown order.
    Differs,
    /// Unknown.
    Unknown,
}

impl Constant {
    /// The length of its text in bytes.
    pub fn text_bytes(&self) -> usize {
        match self {
            Constant::Integer(_) | Constant::Number(_) => 0,
            Constant::Moment(text)
            | Constant::Text { text, .. }
            | Constant::Folded(text)
            | Constant::Bytes(text) => text.len(),
        }
    }

    /// Its text, to share it with equal ones.
    pub fn text_mut(&mut self) -> Option<&mut Arc<str>> {
        match self {
            Constant::Integer(_) | Constant::Number(_) => None,
            Constant::Moment(text)
            | Constant::Text { text, .. }
            | Constant::Folded(text)
            | Constant::Bytes(text) => Some(text),
        }
    }

    /// The constant for comparisons with a column of this kind. `None` if they are not known.
    pub fn of(kind: SqlColumnKind, literal: &Literal) -> Option<Constant> {
        match (kind, literal) {
            (SqlColumnKind::Integer, literal) => literal.integer().map(Constant::Integer),
            (SqlColumnKind::Number, Literal::Number(number)) => {
                number.parse().ok().map(Constant::Number)
            }
            (SqlColumnKind::Moment, Literal::Text(text) | Literal::Bytes(text)) => {
                let moment = moment(text)?;
                let moment = std::str::from_utf8(&moment).ok().filter(|moment| is_real(moment));
                moment.map(|moment| Constant::Moment(moment.into()))
            }
            (SqlColumnKind::Text { is_case_sensitive }, Literal::Text(text)) => {
                fold_constant(text)?;
                Some(Constant::Text { text: (**text).into(), is_case_sensitive })
            }
            // The bytes of a text depend on the character set of its column. Those of plain characters are the
            // same in all, but equal texts may differ in case.
            (SqlColumnKind::Text { .. }, Literal::Bytes(text)) if is_plain(text) => {
                fold_constant(text).map(|text| Constant::Folded(text.into()))
            }
            (SqlColumnKind::Bytes, Literal::Text(text) | Literal::Bytes(text)) => {
                Some(Constant::Bytes((**text).into()))
            }
            _ => None,
        }
    }

    /// The constant with the opposite sign.
    pub fn negated(self) -> Option<Constant> {
        match self {
            Constant::Integer(number) => Some(Constant::Integer(-number)),
            Constant::Number(number) => Some(Constant::Number(-number)),
            Constant::Moment(_)
            | Constant::Text { .. }
            | Constant::Folded(_)
            | Constant::Bytes(_) => None,
        }
    }

    /// The constant for a column that equals another, which equals this constant: each comparison may be by
    /// another collation.
    pub fn passed_on(&self) -> Constant {
        match self {
            Constant::Text { text, .. } => {
                let folded = fold_constant(text).map_or_else(|| text.clone(), Into::into);
                Constant::Folded(folded)
            }
            other => other.clone(),
        }
    }

    /// The key under which an index finds the values that may be equal. `None` if there is none.
    pub fn key(&self) -> Option<ValueKey> {
        match self {
            Constant::Integer(number) => Some(ValueKey::Integer(*number)),
            Constant::Text { text, .. } => {
                fold_constant(text).map(|text| ValueKey::Text(text.into()))
            }
            Constant::Folded(text) | Constant::Bytes(text) => Some(ValueKey::Text((**text).into())),
            Constant::Number(_) | Constant::Moment(_) => None,
        }
    }

    /// Compares a stored value with the constant.
    pub fn compare(&self, value: ValueText<'_>, budget: &mut MatchBudget) -> Comparison {
        budget.spend(1);
        let (value, text) = (value.as_str(), value);
        match self {
            Constant::Integer(constant) => match value.parse::<i128>() {
                Ok(number) => Comparison::Is(number.cmp(&i128::from(*constant))),
                Err(_) => Comparison::Unknown,
            },
            Constant::Number(constant) => match value.parse::<f64>() {
                Ok(number) => compare_numbers(number, *constant),
                Err(_) => Comparison::Unknown,
            },
            Constant::Moment(constant) => match moment(value) {
                Some(value) => Comparison::Is(value[..].cmp(constant.as_bytes())),
                None => Comparison::Unknown,
            },
            Constant::Text { text: constant, is_case_sensitive } => {
                compare_texts(text, constant, *is_case_sensitive, budget)
            }
            Constant::Folded(folded) => compare_folded(text, folded, budget),
            Constant::Bytes(constant) => {
                budget.spend(constant.len());
                Comparison::Is(value.as_bytes().cmp(constant.as_bytes()))
            }
        }
    }
}

/// A value in the form that all values that may be equal have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ValueKey {
    Integer(i64),
    Text(Box<str>),
}

/// The key under which an index finds the constants that may be equal to this value of a column. `None` if
/// every constant may be.
pub(crate) fn key(
    kind: SqlColumnKind,
    value: ValueText<'_>,
    budget: &mut MatchBudget,
) -> Option<ValueKey> {
    let text = value.as_str();
    match kind {
        SqlColumnKind::Integer => match text.parse::<i64>() {
            Ok(number) => Some(ValueKey::Integer(number)),
            // No constant is beyond 63 bits.
            Err(_) => text.parse::<i128>().ok().map(|_| ValueKey::Text(text.into())),
        },
        SqlColumnKind::Text { .. } => {
            value.folded(budget).map(|folded| ValueKey::Text(folded.as_str().into()))
        }
        SqlColumnKind::Bytes => Some(ValueKey::Text(text.into())),
        SqlColumnKind::Number | SqlColumnKind::Moment | SqlColumnKind::Opaque => None,
    }
}

fn compare_numbers(number: f64, constant: f64) -> Comparison {
    /// The database compares decimals exactly and floats after a conversion; this is more than either loses.
    const TOLERANCE: f64 = 1e-6;
    let is_close =
        (number - constant).abs() <= TOLERANCE * number.abs().max(constant.abs()).max(1.0);
    match number.partial_cmp(&constant) {
        Some(order) if !is_close => Comparison::Is(order),
        _ => Comparison::Unknown,
    }
}

fn compare_texts(
    value: ValueText<'_>,
    text: &str,
    is_case_sensitive: bool,
    budget: &mut MatchBudget,
) -> Comparison {
    budget.spend(text.len());
    if value.is_plain(budget) && is_plain(text) {
        let value = value.as_str();
        // Whether blanks at the end count depends on the collation.
        let is_padded = value.ends_with(' ') || text.ends_with(' ');
        let is_equal =
            if is_case_sensitive { value == text } else { value.eq_ignore_ascii_case(text) };
        match (is_equal, is_padded) {
            (true, _) => return Comparison::Is(Ordering::Equal),
            (false, false) => return Comparison::Differs,
            (false, true) => {}
        }
    }
    match fold_constant(text) {
        Some(folded) => compare_folded(value, &folded, budget),
        None => Comparison::Unknown,
    }
}

fn compare_folded(value: ValueText<'_>, folded: &str, budget: &mut MatchBudget) -> Comparison {
    budget.spend(folded.len());
    match value.folded(budget) {
        Some(value) if value.as_str() != folded => Comparison::Differs,
        _ => Comparison::Unknown,
    }
}

/// A date, or a date and time, in the form that can be compared as text, `YYYY-MM-DD HH:MM:SS.ffffff`. `None`
/// unless it is written as `YYYY-MM-DD`, with or without a time `HH:MM:SS` and a fraction of at most six digits.
/// Needs no memory: a changed row is compared with the dates of many statements.
pub(crate) fn moment(text: &str) -> Option<[u8; MOMENT.len()]> {
    const DATE: usize = "0000-00-00".len();
    const SECOND: usize = "0000-00-00 00:00:00".len();
    let text = text.as_bytes();
    let is_form = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == form,
    };
    let is_complete = text.len() == DATE || (SECOND..=MOMENT.len()).contains(&text.len());
    (is_complete && text.iter().zip(MOMENT).all(is_form)).then(|| {
        let mut moment = *MOMENT;
        moment[..text.len()].copy_from_slice(text);
        moment
    })
}

/// Whether a constant is compared as it is written: it exists in the calendar, or is that of zeros, and has no
/// fraction. If it has one, an index of a column without fractions finds the moment without it.
fn is_real(moment: &str) -> bool {
    let number =
        |digits: std::ops::Range<usize>| -> Option<u32> { moment.get(digits)?.parse().ok() };
    let parts = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19].map(number);
    let [Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] = parts else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    let is_day = year > 0 && (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let has_fraction = moment.get(20..) != Some("000000");
    !has_fraction && is_day || moment.bytes().all(|byte| !(b'1'..=b'9').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: SqlColumnKind = SqlColumnKind::Text { is_case_sensitive: false };

    #[test]
    fn values_are_compared_as_the_database_does() {
        let text = |text: &str| Literal::Text(text.into());
        let number = |number: &str| Literal::Number(number.into());
        let is = Comparison::Is;
        for (kind, literal, value, expected) in [
            (SqlColumnKind::Integer, number("5"), "5", is(Ordering::Equal)),
            (SqlColumnKind::Integer, text("5"), "7", is(Ordering::Greater)),
            (SqlColumnKind::Number, number("1.5"), "1.50", Comparison::Unknown),
            (SqlColumnKind::Number, number("1.5"), "1.25", is(Ordering::Less)),
            (SqlColumnKind::Moment, text("2026-01-02"), "2026-01-02 00:00:00", is(Ordering::Equal)),
            (
                SqlColumnKind::Moment,
                text("2026-01-02 10:00:00"),
                "2026-01-02 10:00:00.5",
                is(Ordering::Greater),
            ),
            (TEXT, text("Café"), "cafe", Comparison::Unknown),
            (TEXT, text("cafe"), "CAFE", is(Ordering::Equal)),
            (TEXT, text("cafe"), "cafe ", Comparison::Unknown),
            (TEXT, text("cafe"), "coffee", Comparison::Differs),
            (TEXT, text("cafe"), "コーヒー", Comparison::Differs),
            (
                SqlColumnKind::Text { is_case_sensitive: true },
                text("cafe"),
                "CAFE",
                Comparison::Differs,
            ),
            (SqlColumnKind::Bytes, text("a"), "A", is(Ordering::Less)),
        ] {
            let constant = Constant::of(kind, &literal).expect("comparable");
            let mut budget = MatchBudget::new(u64::MAX);
            let compared = constant.compare(ValueText::new(value), &mut budget);
            assert_eq!(compared, expected, "{literal:?} {value}");
        }
        for (kind, literal) in [
            (SqlColumnKind::Integer, text("5x")),
            (SqlColumnKind::Integer, number("1.5")),
            (TEXT, number("5")),
            (TEXT, text("さくら")),
            (SqlColumnKind::Moment, text("2026-1-2")),
            (SqlColumnKind::Moment, text("2026-02-28 10:00:00.5")),
            (SqlColumnKind::Moment, text("2026-02-29")),
            (SqlColumnKind::Moment, text("2026-01-00")),
            (SqlColumnKind::Moment, text("2026-01-01 24:00:00")),
            (SqlColumnKind::Moment, number("20260102")),
            (SqlColumnKind::Opaque, text("a")),
            (TEXT, Literal::Opaque),
        ] {
            assert_eq!(Constant::of(kind, &literal), None, "{literal:?}");
        }
    }
}
