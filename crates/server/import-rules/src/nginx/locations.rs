//! `location` as a condition on the path, and the order in which nginx chooses one.
//!
//! nginx takes an exact location, else the longest prefix if it is preferred (`^~`), else the first expression, else the
//! longest prefix. In that order, the first rule of Pagewell that matches is the rule of the chosen location. A plain
//! prefix below a preferred one is taken before it, so that its restrictions are kept.

use super::Translation;
use super::scope::{Scope, read_scope};
use crate::draft::RuleConditions;
use crate::pattern::{Exactness, GlobShape, PathPattern, escaped, shapes};
use crate::source::Directive;

/// How a location is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LocationKind {
    Exact,
    /// A prefix before expressions (`^~`), or one in another location.
    Preferred,
    Regex,
    Prefix,
    /// `@name`, which only `try_files` and `error_page` choose.
    Named,
}

/// A location.
#[derive(Debug)]
pub(super) struct Location<'a> {
    pub(super) directive: &'a Directive,
    pub(super) kind: LocationKind,
    /// The path or expression.
    pub(super) text: String,
    /// The conditions of a restriction.
    pub(super) conditions: RuleConditions,
    /// Whether they match exactly the paths of the location.
    pub(super) is_exact: bool,
    /// The expression for captures.
    pub(super) regex: Option<String>,
    pub(super) shapes: Vec<GlobShape>,
    pub(super) scope: Scope<'a>,
    /// The index of the location around it.
    pub(super) parent: Option<usize>,
    /// Whether the location around it is not for all paths.
    is_inner: bool,
}

impl Location<'_> {
    /// Whether it is the one for all other paths.
    pub(super) fn is_catch_all(&self) -> bool {
        self.kind == LocationKind::Prefix && self.text == "/"
    }

    /// Whether a path may belong to both.
    pub(super) fn may_meet(&self, other: &Location<'_>) -> bool {
        if self.kind == LocationKind::Exact
            && other.kind == LocationKind::Regex
            && let Some(regex) = &other.regex
        {
            return crate::pattern::compiled(regex)
                .is_ok_and(|regex| regex.is_match(self.text.as_bytes()));
        }
        self.shapes.iter().any(|one| other.shapes.iter().any(|two| one.may_meet(two)))
    }

    /// Whether a script at any depth may run here.
    pub(super) fn runs_any_script(&self) -> bool {
        let runs = self.scope.php.is_some();
        let matches = |path: &str| match (&self.kind, &self.regex) {
            (LocationKind::Regex, Some(regex)) => {
                crate::pattern::compiled(regex).is_ok_and(|regex| regex.is_match(path.as_bytes()))
            }
            (LocationKind::Prefix | LocationKind::Preferred, _) => path.starts_with(&self.text),
            _ => false,
        };
        runs && !self.is_inner && matches("/import/probe-deep/x.php") && matches("/import.php")
    }
}

/// All locations of a server, in the order of their choice; those with a name last.
pub(super) fn read<'a>(translation: &mut Translation<'a>, server: &Scope<'a>) -> Vec<Location<'a>> {
    let mut all = Vec::new();
    add(translation, &server.locations, None, &mut all);
    let order = order(&all);
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(|index| (order[*index], *index));
    let new_place = |old: usize| places.iter().position(|place| *place == old);
    let mut sorted: Vec<(usize, Location<'a>)> = all.into_iter().enumerate().collect();
    sorted.sort_by_key(|(index, _)| (order[*index], *index));
    sorted
        .into_iter()
        .map(|(_, mut location)| {
            location.parent = location.parent.and_then(new_place);
            location
        })
        .collect()
}

/// The rank of each location: its class, and then longer texts first.
fn order(all: &[Location<'_>]) -> Vec<(u8, usize)> {
    let preferred: Vec<&str> = all
        .iter()
        .filter(|one| one.kind == LocationKind::Preferred && one.parent.is_none())
        .map(|one| one.text.as_str())
        .collect();
    all.iter()
        .map(|one| {
            let longest = usize::MAX - one.text.len();
            match one.kind {
                LocationKind::Exact => (0, 0),
                LocationKind::Regex if one.parent.is_some() => {
                    let outer = one.parent.map_or(0, |index| all[index].text.len());
                    (1, usize::MAX - outer)
                }
                LocationKind::Preferred => (2, longest),
                LocationKind::Prefix
                    if preferred.iter().any(|begin| one.text.starts_with(begin)) =>
                {
                    (2, longest)
                }
                LocationKind::Regex => (3, 0),
                LocationKind::Prefix => (4, longest),
                LocationKind::Named => (5, 0),
            }
        })
        .collect()
}

fn add<'a>(
    translation: &mut Translation<'a>,
    directives: &[&'a Directive],
    parent: Option<usize>,
    all: &mut Vec<Location<'a>>,
) {
    for &directive in directives {
        let inner: Vec<&'a Directive> = directive.inner().iter().collect();
        let scope = read_scope(translation, &inner, false);
        let nested = scope.locations.clone();
        let (modifier, text) = match directive.words.as_slice() {
            [modifier, text] => (modifier.as_str(), translation.expanded(text)),
            [text] => split(text),
            _ => ("", String::new()),
        };
        let Some(location) = location(
            translation,
            directive,
            (modifier, &text),
            scope,
            parent.map(|index| &all[index]),
        ) else {
            translation.judgements.lost_restriction(directive, "its expression cannot be read");
            continue;
        };
        if location.kind == LocationKind::Named || location.is_exact {
            translation.judgements.translated(directive);
        } else {
            translation
                .judgements
                .translated_but(directive, "its restrictions apply to more paths than in nginx");
        }
        let is_inner = parent.is_some_and(|index| !all[index].is_catch_all());
        all.push(Location { parent, is_inner, ..location });
        let index = all.len() - 1;
        add(translation, &nested, Some(index), all);
    }
}

/// A modifier that is written without a space.
fn split(text: &str) -> (&'static str, String) {
    for modifier in ["^~", "~*", "~", "="] {
        if let Some(rest) = text.strip_prefix(modifier) {
            return (modifier, rest.to_owned());
        }
    }
    ("", text.to_owned())
}

fn location<'a>(
    translation: &mut Translation<'a>,
    directive: &'a Directive,
    (modifier, text): (&str, &str),
    scope: Scope<'a>,
    parent: Option<&Location<'a>>,
) -> Option<Location<'a>> {
    let (kind, pattern) = match modifier {
        "=" => (LocationKind::Exact, None),
        "^~" => (LocationKind::Preferred, None),
        "~" | "~*" => match PathPattern::read(text, modifier == "~*", Exactness::MayWiden) {
            Ok(pattern) => (LocationKind::Regex, Some(pattern)),
            Err(why) => {
                translation.judgements.lost_restriction(directive, &why);
                return None;
            }
        },
        "" if text.starts_with('@') => (LocationKind::Named, None),
        "" => (LocationKind::Prefix, None),
        _ => return None,
    };
    let mut conditions = match &pattern {
        Some(pattern) => RuleConditions::default().with_pattern(pattern),
        None => path_conditions(kind, text),
    };
    let mut is_exact = pattern.as_ref().is_none_or(|pattern| pattern.is_exact);
    let regex = pattern.map(|pattern| pattern.regex);
    let own = match &regex {
        Some(regex) => shapes(regex),
        None if kind == LocationKind::Exact => vec![GlobShape::of(text)],
        None => vec![GlobShape::of(&format!("{text}**"))],
    };
    if let (Some(parent), Some(regex)) = (parent, &regex)
        && !parent.is_catch_all()
    {
        let inside = parent.conditions.and(&RuleConditions::default().with_regex(regex));
        match inside {
            _ if regex.starts_with(&format!("^{}", parent.text)) => {}
            Some(both) => conditions = both,
            None => is_exact = false,
        }
    }
    let text = text.to_owned();
    Some(Location {
        directive,
        kind,
        text,
        conditions,
        is_exact,
        regex,
        shapes: own,
        scope,
        parent: None,
        is_inner: false,
    })
}

/// The conditions of a location without an expression.
fn path_conditions(kind: LocationKind, text: &str) -> RuleConditions {
    let conditions = RuleConditions::default();
    let is_exact = kind == LocationKind::Exact;
    if kind == LocationKind::Named || text == "/" && !is_exact {
        conditions
    } else if text.contains('*') || text.starts_with('!') {
        conditions.with_regex(&format!("^{}{}", escaped(text), if is_exact { "$" } else { "" }))
    } else {
        conditions.with("path", vec![format!("{text}{}", if is_exact { "" } else { "**" })])
    }
}
