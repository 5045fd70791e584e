//! Rules that no request reaches: an earlier rule of their kind fits all their requests, and the first that fits counts.
//! `pagewell check` reports them.
//!
//! Not here: whether conditions cover others (`rule_conditions`), and the lists (`rules`, `edge::unreached`).

use std::collections::BTreeMap;

/// The kind of the rules that have many keys.
pub(crate) const CACHING: &str = "caching";

/// A rule in the list of its kind.
pub(crate) struct ListedRule {
    pub(crate) number: usize,
    /// The key of its kind, or `caching`.
    pub(crate) key: &'static str,
    pub(crate) has_conditions: bool,
}

/// The requests that reach a rule although an earlier one fits all that it fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remaining {
    /// No request.
    Nothing,
    /// Requests of pages for their ESI fragments.
    Fragments,
}

/// Rules of one kind that the same earlier rule covers.
#[derive(Clone)]
pub(crate) struct UnreachedRules {
    first: usize,
    first_key: &'static str,
    first_has_conditions: bool,
    /// The key of the rules that are not reached.
    key: &'static str,
    remaining: Remaining,
    numbers: Vec<usize>,
}

/// The rules of a list that earlier ones cover. `decides` says by their places whether a rule decides for all requests
/// that a later one fits, and which requests reach that one nevertheless.
pub(crate) fn find_unreached(
    rules: &[ListedRule],
    decides: impl Fn(usize, usize) -> Option<Remaining>,
) -> Vec<UnreachedRules> {
    let mut found: BTreeMap<(usize, &'static str, Remaining), Vec<usize>> = BTreeMap::new();
    for (later, rule) in rules.iter().enumerate() {
        let first = (0..later).find_map(|earlier| Some((earlier, decides(earlier, later)?)));
        if let Some((earlier, remaining)) = first {
            found.entry((earlier, rule.key, remaining)).or_default().push(rule.number);
        }
    }
    let of_group = found.into_iter().map(|((first, key, remaining), numbers)| UnreachedRules {
        first: rules[first].number,
        first_key: rules[first].key,
        first_has_conditions: rules[first].has_conditions,
        key,
        remaining,
        numbers,
    });
    of_group.collect()
}

impl UnreachedRules {
    /// The warning. `named` gives the number of a rule with its name.
    pub(crate) fn warning(&self, named: impl Fn(usize) -> String) -> String {
        let UnreachedRules { first, first_key, key, ref numbers, .. } = *self;
        let is_run = numbers.windows(2).all(|two| two[1] == two[0] + 1);
        let which = match &numbers[..] {
            [only] => format!("rule {} is", named(*only)),
            [begin, .., end] if is_run => {
                format!("rules {} to {} are", named(*begin), named(*end))
            }
            all => {
                let all: Vec<String> = all.iter().map(|number| named(*number)).collect();
                format!("rules {} are", all.join(", "))
            }
        };
        let except = match self.remaining {
            Remaining::Nothing => "",
            Remaining::Fragments => ", except by ESI fragments",
        };
        let why = match (self.first_has_conditions, numbers.len()) {
            (false, _) => "has no conditions, so that it fits every request",
            (true, 1) => "fits all its requests",
            (true, _) => "fits all their requests",
        };
        let of_kind = if first_key == CACHING { "about" } else { "with" };
        let first = named(first);
        format!(
            "{which} never reached for {key}{except}: rule {first} {why}, and the first rule {of_kind} {first_key} that \
             fits counts"
        )
    }
}
