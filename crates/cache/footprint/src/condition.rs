//! Conditions on the rows of one table.
//!
//! Invariant: a condition that was read from a statement is *necessary*: a row that does not satisfy it does
//! not affect the result. Where it answers [`Match::Yes`] or [`Match::No`], the answer is the database's.
//! Comparisons with NULL satisfy nothing, also when they are negated. Not here: the statement.

use crate::budget::MatchBudget;
use crate::compare::{Comparison, Constant, Match, ValueKey, moment};
use crate::pattern::Pattern;
use crate::row::{SqlRow, SqlValue};
use crate::schema::Columns;
use crate::value_text::ValueText;
use std::cmp::Ordering;

/// The constants of a test. A condition has their positions, so that all statements of one shape share it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    One(Constant),
    /// Whole numbers in ascending order.
    Integers(Box<[i64]>),
    Constants(Box<[Constant]>),
    Pattern(Box<Pattern>),
}

/// The position of an operand among those of its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot(pub u16);

/// A condition on a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    /// It is one of these.
    In(Slot),
    /// It is between these, or beyond one of them.
    Range { low: Option<RangeEnd>, high: Option<RangeEnd> },
    /// It matches a pattern of `LIKE`.
    Like(Slot),
    /// It is NULL.
    Null,
}

/// An end of a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RangeEnd {
    /// The value at this end.
    pub value: Slot,
    /// Whether the value itself is in the range.
    pub is_included: bool,
}

/// A part of a date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    /// Whether the row satisfies the condition; [`Match::Maybe`] if the budget is spent.
    pub fn matches(
        &self,
        row: &SqlRow<'_>,
        operands: &[Operand],
        budget: &mut MatchBudget,
    ) -> Match {
        if budget.is_spent() {
            return Match::Maybe;
        }
        budget.spend(1);
        match self {
            Condition::Always => Match::Yes,
            Condition::Never => Match::No,
            Condition::Atom(atom) => atom.matches(row, operands, budget),
            Condition::All(all) => {
                let mut least = Match::Yes;
                for condition in all {
                    least = least.min(condition.matches(row, operands, budget));
                    if least == Match::No {
                        break;
                    }
                    if budget.is_spent() {
                        // The rest is not tested.
                        return Match::Maybe;
                    }
                }
                least
            }
            Condition::Any(any) => {
                let mut most = Match::No;
                for condition in any {
                    most = most.max(condition.matches(row, operands, budget));
                    if most == Match::Yes {
                        break;
                    }
                    if budget.is_spent() {
                        return Match::Maybe;
                    }
                }
                most
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

    /// Adds the columns that the condition tests.
    pub fn collect_columns(&self, columns: &mut Columns) {
        match self {
            Condition::Always | Condition::Never => {}
            Condition::Atom(atom) => columns.insert(atom.column.into()),
            Condition::All(inner) | Condition::Any(inner) => {
                inner.iter().for_each(|condition| condition.collect_columns(columns));
            }
        }
    }

    /// The operand with the constants that a column must have one of, if the condition says so.
    pub fn constants(&self, column: u16) -> Option<Slot> {
        self.conjuncts().iter().find_map(|conjunct| match conjunct {
            Condition::Atom(atom) if atom.column == column => atom.constants(),
            _ => None,
        })
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
    fn matches(&self, row: &SqlRow<'_>, operands: &[Operand], budget: &mut MatchBudget) -> Match {
        let text = match row.get(self.column) {
            SqlValue::Unknown => return Match::Maybe,
            SqlValue::Null => return Match::from(self.test == Test::Null && !self.is_negated),
            SqlValue::Text(text) => row.text(self.column, text),
        };
        let is_match = match self.part {
            None => self.test.matches(text, operands, budget),
            Some(part) => part.of(text.as_str()).map_or(Match::Maybe, |number| {
                self.test.matches(ValueText::new(number), operands, budget)
            }),
        };
        if self.is_negated { !is_match } else { is_match }
    }

    /// The operand, if the value of the column must be equal to one of its constants.
    pub fn constants(&self) -> Option<Slot> {
        match &self.test {
            Test::In(slot) if self.part.is_none() && !self.is_negated => Some(*slot),
            _ => None,
        }
    }
}

impl Slot {
    /// Adds an operand to those of a statement. A statement has fewer tokens than there are slots.
    pub fn add(operands: &mut Vec<Operand>, operand: Operand) -> Slot {
        operands.push(operand);
        Slot(u16::try_from(operands.len() - 1).unwrap_or(u16::MAX))
    }

    /// The operand at this position.
    pub fn of(self, operands: &[Operand]) -> &Operand {
        &operands[usize::from(self.0)]
    }
}

impl Test {
    fn matches(
        &self,
        text: ValueText<'_>,
        operands: &[Operand],
        budget: &mut MatchBudget,
    ) -> Match {
        match self {
            Test::In(slot) => slot.of(operands).has(text, budget),
            Test::Range { low, high } => {
                let mut inside = |end: &Option<RangeEnd>, outside: Ordering| {
                    let end = end.as_ref();
                    end.map_or(Match::Yes, |end| end.matches(text, outside, operands, budget))
                };
                inside(low, Ordering::Less).min(inside(high, Ordering::Greater))
            }
            Test::Like(slot) => match slot.of(operands) {
                Operand::Pattern(pattern) => pattern.matches(text, budget),
                Operand::One(_) | Operand::Integers(_) | Operand::Constants(_) => Match::Maybe,
            },
            // MariaDB: `IS NULL` is true for a date of zeros, which frameworks write for "none".
            Test::Null if text.as_str().starts_with("0000-00-00") => Match::Maybe,
            Test::Null => Match::No,
        }
    }
}

impl Operand {
    /// The memory for the constants, and for finding a statement by each of them, in bytes.
    pub fn heap_bytes(&self) -> usize {
        const PLACE_BYTES: usize = 16;
        let text =
            |constant: &Constant| size_of::<Constant>() + PLACE_BYTES + constant.text_bytes();
        match self {
            Operand::One(constant) => text(constant),
            Operand::Integers(all) => all.len() * (size_of::<i64>() + PLACE_BYTES),
            Operand::Constants(all) => all.iter().map(text).sum(),
            Operand::Pattern(pattern) => PLACE_BYTES + size_of::<Pattern>() + pattern.heap_bytes(),
        }
    }

    /// The operand for these constants.
    pub fn of(mut constants: Vec<Constant>) -> Operand {
        let integer = |constant: &Constant| match constant {
            Constant::Integer(number) => Some(*number),
            _ => None,
        };
        match (constants.len(), constants.iter().map(integer).collect::<Option<Vec<i64>>>()) {
            (1, _) => Operand::One(constants.remove(0)),
            (_, Some(mut integers)) => {
                integers.sort_unstable();
                integers.dedup();
                Operand::Integers(integers.into())
            }
            (_, None) => Operand::Constants(constants.into()),
        }
    }

    /// Its constants, to share their texts.
    pub fn constants_mut(&mut self) -> &mut [Constant] {
        match self {
            Operand::One(constant) => std::slice::from_mut(constant),
            Operand::Constants(constants) => constants,
            Operand::Integers(_) | Operand::Pattern(_) => &mut [],
        }
    }

    /// The operand for a column that equals another, see [`Constant::passed_on`].
    pub fn passed_on(&self) -> Operand {
        match self {
            Operand::One(constant) => Operand::One(constant.passed_on()),
            Operand::Constants(all) => {
                Operand::Constants(all.iter().map(Constant::passed_on).collect())
            }
            Operand::Integers(_) | Operand::Pattern(_) => self.clone(),
        }
    }

    /// Whether the text is one of the constants.
    fn has(&self, text: ValueText<'_>, budget: &mut MatchBudget) -> Match {
        let equals =
            |constant: &Constant, budget: &mut MatchBudget| match constant.compare(text, budget) {
                Comparison::Is(order) => Match::from(order == Ordering::Equal),
                Comparison::Differs => Match::No,
                Comparison::Unknown => Match::Maybe,
            };
        match self {
            Operand::One(constant) => equals(constant, budget),
            Operand::Integers(integers) => match text.as_str().parse::<i128>() {
                Ok(number) => {
                    integers.binary_search_by(|own| i128::from(*own).cmp(&number)).is_ok().into()
                }
                Err(_) => Match::Maybe,
            },
            Operand::Constants(constants) => {
                let mut most = Match::No;
                for constant in constants {
                    most = most.max(equals(constant, budget));
                    if most == Match::Yes {
                        break;
                    }
                    if budget.is_spent() {
                        return Match::Maybe;
                    }
                }
                most
            }
            Operand::Pattern(_) => Match::Maybe,
        }
    }

    /// The keys under which an index finds the values that may be one of the constants. `None` if one has
    /// none.
    pub fn keys(&self) -> Option<Vec<ValueKey>> {
        match self {
            Operand::One(constant) => Some(vec![constant.key()?]),
            Operand::Integers(integers) => {
                Some(integers.iter().copied().map(ValueKey::Integer).collect())
            }
            Operand::Constants(constants) => constants.iter().map(Constant::key).collect(),
            Operand::Pattern(_) => None,
        }
    }
}

impl RangeEnd {
    fn matches(
        &self,
        text: ValueText<'_>,
        outside: Ordering,
        operands: &[Operand],
        budget: &mut MatchBudget,
    ) -> Match {
        let Operand::One(value) = self.value.of(operands) else { return Match::Maybe };
        match value.compare(text, budget) {
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
