//! Whether the conditions of one rule hold for every request for which those of another hold: then the other one, if it
//! comes later, is never reached (`SiteRules::unreached_rules`).
//!
//! Invariant: only what is certain counts. Each kind of condition is compared alone, and each of several patterns with
//! one pattern of the other rule. So a rule that only several rules together cover is not found.

use crate::alternatives::lists_cover;
use crate::conditions::{RequestConditions, ResponseConditions};
use crate::glob::{Case, Glob, Star};
use crate::named_condition::NamedCondition;
use http::Method;
use std::slice;

/// How a kind of rules compares requests with conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonKind {
    /// As written; every path begins with a slash.
    Pages,
    /// As access rules do: HEAD counts as GET, unless a condition names it.
    Access,
    /// HEAD as GET.
    AsGet,
}

impl ComparisonKind {
    fn fits_method(self, conditions: &RequestConditions, method: &Method) -> bool {
        match self {
            ComparisonKind::Pages => conditions.fit_method(method),
            ComparisonKind::Access => conditions.fit_method_or_get(method),
            ComparisonKind::AsGet if *method == Method::HEAD => conditions.fit_method(&Method::GET),
            ComparisonKind::AsGet => conditions.fit_method(method),
        }
    }
}

impl RequestConditions {
    /// Whether these conditions certainly hold for each request for which `other` hold.
    pub fn cover(&self, other: &RequestConditions, comparison: ComparisonKind) -> bool {
        self.cover_methods(other, comparison)
            && self.cover_clients(other)
            && named_cover(&self.query, &other.query, NamedCondition::covers)
            && self.regex.cover(&other.regex)
            && lists_cover(
                (&self.host.any, &self.host.none),
                (&other.host.any, &other.host.none),
                Glob::covers,
            )
            && self.cover_paths(other, comparison)
    }

    /// Whether the conditions on the client certainly hold for each client for which those of `other` hold.
    pub fn cover_clients(&self, other: &RequestConditions) -> bool {
        lists_cover((&self.agents, &[]), (&other.agents, &[]), |one, other| one == other)
            && self.from.cover(&other.from)
            && named_cover(&self.cookie, &other.cookie, NamedCondition::covers)
            && named_cover(&self.header, &other.header, NamedCondition::covers_line)
    }

    fn cover_methods(&self, other: &RequestConditions, comparison: ComparisonKind) -> bool {
        let named = [self, other]
            .into_iter()
            .flat_map(|conditions| conditions.methods.iter().chain(&conditions.methods_excluded));
        let mut named = named.chain([&Method::GET, &Method::HEAD]);
        // A method that neither names fits without a list.
        let covers_unnamed = self.methods.is_empty() || !other.methods.is_empty();
        covers_unnamed
            && named.all(|method| {
                !comparison.fits_method(other, method) || comparison.fits_method(self, method)
            })
    }

    fn cover_paths(&self, other: &RequestConditions, comparison: ComparisonKind) -> bool {
        let every_path = Glob::read("/**", Star::Segment, Case::Kept).ok();
        let others = match &every_path {
            Some(every) if other.path.any.is_empty() && comparison == ComparisonKind::Pages => {
                slice::from_ref(every)
            }
            _ => &other.path.any[..],
        };
        let own = (&*self.path.any, &*self.path.none);
        lists_cover(own, (others, &other.path.none), Glob::covers)
    }
}

impl ResponseConditions {
    /// Whether these conditions certainly hold for each response for which `other` hold.
    pub fn cover(&self, other: &ResponseConditions) -> bool {
        lists_cover((&self.statuses, &[]), (&other.statuses, &[]), |one, other| {
            one.has(other.first) && one.has(other.last)
        }) && named_cover(&self.header, &other.header, NamedCondition::covers_line)
    }
}

impl NamedCondition {
    fn covers(&self, other: &NamedCondition) -> bool {
        self.name.covers(&other.name) && self.covers_value(other)
    }

    /// The same for header lines, whose names have no wildcards.
    fn covers_line(&self, other: &NamedCondition) -> bool {
        self.name.as_str() == other.name.as_str() && self.covers_value(other)
    }

    fn covers_value(&self, other: &NamedCondition) -> bool {
        match (&self.value, &other.value) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own.covers(other),
        }
    }
}

fn named_cover(
    own: &[NamedCondition],
    other: &[NamedCondition],
    covers: fn(&NamedCondition, &NamedCondition) -> bool,
) -> bool {
    let of = |all: &[NamedCondition], absent: bool| -> Vec<NamedCondition> {
        all.iter().filter(|named| named.absent == absent).cloned().collect()
    };
    let own = (of(own, false), of(own, true));
    let other = (of(other, false), of(other, true));
    lists_cover((&own.0, &own.1), (&other.0, &other.1), covers)
}
