//! Rules that no request reaches: an earlier rule of their kind fits all their requests, and the first that fits counts.
//! `pagewell check` reports them.
//!
//! Not here: whether conditions cover others (`coverage`), and the lists (`rules`, `edge::unreached`).

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

/// Warnings about the rules of a list that earlier ones cover. `decides` says by their places whether a rule decides for
/// all requests that a later one fits, and which requests reach that one nevertheless.
pub(crate) fn warnings(
    rules: &[ListedRule],
    decides: impl Fn(usize, usize) -> Option<Remaining>,
) -> Vec<String> {
    let mut found: BTreeMap<(usize, &str, Remaining), Vec<usize>> = BTreeMap::new();
    for (later, rule) in rules.iter().enumerate() {
        let first = (0..later).find_map(|earlier| Some((earlier, decides(earlier, later)?)));
        if let Some((earlier, remaining)) = first {
            found.entry((earlier, rule.key, remaining)).or_default().push(rule.number);
        }
    }
    let of_group = found.iter().map(|((first, key, remaining), numbers)| {
        warning(&rules[*first], key, *remaining, numbers)
    });
    of_group.collect()
}

/// A warning about the rules with these numbers. `key` is that of their kind.
fn warning(first: &ListedRule, key: &str, remaining: Remaining, numbers: &[usize]) -> String {
    let is_run = numbers.windows(2).all(|two| two[1] == two[0] + 1);
    let which = match numbers {
        [only] => format!("rule {only} is"),
        [begin, .., end] if is_run => format!("rules {begin} to {end} are"),
        all => {
            let all: Vec<String> = all.iter().map(usize::to_string).collect();
            format!("rules {} are", all.join(", "))
        }
    };
    let except = match remaining {
        Remaining::Nothing => "",
        Remaining::Fragments => ", except by ESI fragments",
    };
    let why = match (first.has_conditions, numbers.len()) {
        (false, _) => "has no conditions, so that it fits every request",
        (true, 1) => "fits all its requests",
        (true, _) => "fits all their requests",
    };
    let of_kind = if first.key == CACHING { "about" } else { "with" };
    let number = first.number;
    format!(
        "{which} never reached for {key}{except}: rule {number} {why}, and the first rule {of_kind} {} that fits counts",
        first.key
    )
}
