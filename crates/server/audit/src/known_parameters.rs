//! The knowledge of a trial about the parameters of URLs: which values have changed no page, and whether one has.
//!
//! One effect is enough, and is never forgotten. A value on a page that was not compared keeps a parameter from being advised
//! until the same value is compared on this page: another value says nothing about it. Memory: 64 names with at most 1,024
//! numbers each. Values are numbers of this process. Beyond a bound nothing is advised for the name, and the report says so.

use crate::seen_visitors::{SeenVisitors, VisitorNumbers};
use page_comparison::SeenParameter;
use std::collections::{HashMap, HashSet};

/// Names that are known. A stranger can make further ones: they are not looked at.
const NAMES_MAX: usize = 64;
/// Different values, and different pages, of a name that are counted.
const COUNTED_MAX: usize = 128;
/// Values of a name on pages that were not compared. With more of them, nothing is advised.
const OPEN_MAX: usize = 256;
/// Comparisons by renders for a name.
const TESTS_MAX: u32 = 20;

/// The effect of a parameter on one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterEffect {
    Nothing,
    Changes,
    /// It was not compared.
    Open,
}

/// The known parameters of a site.
#[derive(Debug, Default)]
pub(crate) struct KnownParameters(HashMap<String, KnownParameter>);

#[derive(Debug, Default)]
struct KnownParameter {
    /// The values that changed nothing, and the pages for which they did not.
    values: HashSet<u64>,
    pages: HashSet<u64>,
    /// The values and pages that were not compared.
    open: HashSet<(u64, u64)>,
    has_more_open: bool,
    has_effect: bool,
    tests: u32,
    /// The visitors whose answers were compared.
    visitors: SeenVisitors,
}

impl KnownParameters {
    pub(crate) fn has_effect(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|known| known.has_effect)
    }

    /// Whether the name can be remembered.
    pub(crate) fn has_room(&self, name: &str) -> bool {
        self.0.len() < NAMES_MAX || self.0.contains_key(name)
    }

    /// Counts a comparison by renders. Returns whether there were not too many.
    pub(crate) fn may_test(&mut self, name: &str) -> bool {
        let known = self.0.entry(name.to_owned()).or_default();
        known.tests = known.tests.saturating_add(1);
        known.tests <= TESTS_MAX
    }

    /// Notes the effect of a value on a page, for this visitor. Returns what is known about the parameter.
    pub(crate) fn note(
        &mut self,
        name: &str,
        (value, page): (u64, u64),
        (effect, visitor): (ParameterEffect, VisitorNumbers),
    ) -> SeenParameter {
        let known = self.0.entry(name.to_owned()).or_default();
        match effect {
            ParameterEffect::Nothing => {
                known.open.remove(&(value, page));
                known.visitors.note(visitor);
                for (set, number) in [(&mut known.values, value), (&mut known.pages, page)] {
                    if set.len() < COUNTED_MAX {
                        set.insert(number);
                    }
                }
            }
            ParameterEffect::Changes => {
                *known = KnownParameter { has_effect: true, ..KnownParameter::default() };
            }
            ParameterEffect::Open if known.open.len() < OPEN_MAX => {
                known.open.insert((value, page));
            }
            ParameterEffect::Open => known.has_more_open |= !known.open.contains(&(value, page)),
        }
        SeenParameter {
            values: known.values.len() as u64,
            pages: known.pages.len() as u64,
            open: known.open.len() as u64 + u64::from(known.has_more_open),
            has_effect: known.has_effect,
            visitors: known.visitors.counts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VISITOR: VisitorNumbers = VisitorNumbers { client: 1, agent: 2, cookies: None };

    #[test]
    fn one_effect_is_remembered_and_a_page_that_was_not_compared_is_open() {
        use ParameterEffect::{Changes, Nothing, Open};
        let mut all = KnownParameters::default();
        for value in 0..30 {
            all.note("ref", (value, value % 3), (Nothing, VISITOR));
        }
        let seen = all.note("ref", (1, 1), (Nothing, VISITOR));
        assert_eq!((seen.values, seen.pages, seen.open, seen.has_effect), (30, 3, 0, false));
        assert_eq!(seen.visitors.clients, 1, "all are of one visitor");
        assert_eq!(all.note("ref", (31, 9), (Open, VISITOR)).open, 1);
        assert_eq!(all.note("ref", (32, 1), (Nothing, VISITOR)).open, 1, "another page");
        assert_eq!(
            all.note("ref", (33, 9), (Nothing, VISITOR)).open,
            1,
            "another value of the page"
        );
        assert_eq!(all.note("ref", (31, 9), (Nothing, VISITOR)).open, 0, "it is compared now");
        assert!(all.note("ref", (34, 1), (Changes, VISITOR)).has_effect && all.has_effect("ref"));
        let seen = all.note("ref", (35, 1), (Nothing, VISITOR));
        assert!(seen.has_effect && !all.has_effect("page"));
        (0..=TESTS_MAX).for_each(|test| assert_eq!(all.may_test("page"), test < TESTS_MAX));
    }

    #[test]
    fn everything_is_bounded() {
        let mut all = KnownParameters::default();
        for number in 0..500 {
            let name = format!("name{number}");
            if all.has_room(&name) {
                all.note(&name, (1, 1), (ParameterEffect::Nothing, VISITOR));
            }
            all.note("name1", (number, number), (ParameterEffect::Nothing, VISITOR));
            all.note("name2", (number, number), (ParameterEffect::Open, VISITOR));
        }
        assert_eq!(all.0.len(), NAMES_MAX);
        assert!(all.has_room("name1") && !all.has_room("name499"));
        assert_eq!(
            (all.0["name1"].values.len(), all.0["name2"].open.len()),
            (COUNTED_MAX, OPEN_MAX)
        );
        for page in 0..500 {
            all.note("name2", (page, page), (ParameterEffect::Nothing, VISITOR));
        }
        assert_eq!(
            all.note("name2", (1, 1), (ParameterEffect::Nothing, VISITOR)).open,
            1,
            "some are forgotten"
        );
    }
}
