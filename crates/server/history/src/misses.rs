//! The top causes of misses across a site.
//!
//! | list | counts |
//! |---|---|
//! | not stored | renders that were not stored, by reason; and by the application's code, if it gave one |
//! | bypassed | bypassed requests, by reason |
//! | cookies | responses that set one, requests bypassed because of one, variants by the values of one, renders for one client because of one that is on no list |
//! | parameters | renders of URLs without a stored page, by the names in their query |
//! | dropped | pages that changes purged or marked, by URL |
//! | unchanged | those of them whose next render had the same content |
//! | unchanged columns | the same, by the table and the columns whose change purged them |
//! | slowest | the slowest renders, each URL once |
//!
//! The counts use bounded memory (Metwally et al., "space-saving"). In a full list, a new name
//! takes over the place and the count of the least frequent one. A count is never too low, and too
//! high by at most `over`.

use super::cause::ChangeSource;
use super::memory::Comparison;
use super::{RenderRecord, StoreOutcome, shown};
use reasons::Reason;
use std::sync::Arc;

/// The most names in a list.
const HELD_MAX: usize = 64;
/// The most names of a list that are shown.
pub const SHOWN_MAX: usize = 20;
/// The most parameters of one URL that are counted.
const PARAMETERS_MAX: usize = 8;

/// The kind of a name in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// The list has names of one kind.
    Plain,
    /// A cookie that responses set, so they are not stored.
    CookieSet,
    /// A cookie that causes a bypass.
    CookieBypasses,
    /// A cookie that is part of the key: each value has its own copies.
    CookieSplits,
    /// A cookie that is on no list, so that a response was for its client only.
    CookieUnknown,
    /// The name of this reason.
    Reason(Reason),
    /// The application's code, with the reason that the response had beside it.
    CodeWith(Reason),
}

/// The effects of cookies: their responses are not stored, their requests bypass, each value has its own copies, the
/// response was for one client.
const EFFECTS: [&str; 4] = ["set", "bypass", "split", "own"];

impl NameKind {
    /// Returns the effect of a cookie as one word; empty for other names.
    pub fn effect(self) -> &'static str {
        match self {
            NameKind::CookieSet => EFFECTS[0],
            NameKind::CookieBypasses => EFFECTS[1],
            NameKind::CookieSplits => EFFECTS[2],
            NameKind::CookieUnknown => EFFECTS[3],
            NameKind::Plain | NameKind::Reason(_) | NameKind::CodeWith(_) => "",
        }
    }
}

/// The top causes of misses.
#[derive(Clone, Debug, Default)]
pub struct MissCauses {
    /// Renders that were not stored, by reason. If the application gave a code, that is the name.
    pub not_stored: Top,
    /// Bypassed requests, by reason.
    pub bypassed: Top,
    /// Cookies, by effect and name.
    pub cookies: Top,
    /// Query parameters, by name.
    pub parameters: Top,
    /// Purged or marked pages.
    pub dropped: Top,
    /// Unnecessarily purged or marked pages.
    pub unchanged: Top,
    /// The same, by the table and the columns whose change purged them.
    pub unchanged_columns: Top,
    /// Renders, the slowest first.
    pub slowest: Vec<Slow>,
    /// How many purges were compared with the next render.
    pub compared: u64,
    /// How many of these were unnecessary.
    pub compared_unchanged: u64,
}

/// A render among the slowest ones.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Its URL, without the values in its query.
    pub url: Box<str>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// The status code; `None` if there was no response.
    pub status: Option<u16>,
    /// Whether it was stored.
    pub stored: bool,
}

impl MissCauses {
    pub(super) fn rendered(&mut self, rendered: &RenderRecord<'_>, url: &str) {
        let stored = match rendered.outcome {
            StoreOutcome::Stored(_) => true,
            StoreOutcome::NotStored(reason) => {
                match rendered.refusal.as_deref() {
                    Some(code) => self.not_stored.add(NameKind::CodeWith(reason), code, url, None),
                    None => self.not_stored.add_reason(reason, url),
                }
                if reason == Reason::UnknownCookie {
                    for name in &rendered.visitor_cookies {
                        self.cookies.add(NameKind::CookieUnknown, name, url, None);
                    }
                }
                false
            }
        };
        for name in &rendered.cookies {
            self.cookies.add(NameKind::CookieSet, name, url, None);
        }
        if rendered.is_new {
            for name in shown::cookies_in(rendered.key) {
                self.cookies.add(NameKind::CookieSplits, &name, url, None);
            }
            let names = shown::names_in_query(rendered.target.page());
            for name in names.take(PARAMETERS_MAX) {
                self.parameters.add(NameKind::Plain, &shown::cut(name), url, None);
            }
        }
        let (began_ms, at_ms) = rendered.times;
        let took_ms = at_ms.saturating_sub(began_ms);
        let is_slow = |least: &Slow| took_ms > least.took_ms;
        if self.slowest.len() == SHOWN_MAX && !self.slowest.last().is_some_and(is_slow) {
            return;
        }
        self.slow(Slow { url: url.into(), took_ms, at_ms, status: rendered.status, stored });
    }

    fn slow(&mut self, slow: Slow) {
        match self.slowest.iter().position(|known| known.url == slow.url) {
            Some(at) if self.slowest[at].took_ms >= slow.took_ms => return,
            Some(at) => drop(self.slowest.remove(at)),
            None => {}
        }
        let at = self.slowest.partition_point(|known| known.took_ms >= slow.took_ms);
        if at < SHOWN_MAX {
            self.slowest.insert(at, slow);
            self.slowest.truncate(SHOWN_MAX);
        }
    }

    pub(super) fn bypassed(&mut self, reason: Reason, cookies: &[Box<str>], url: &str) {
        self.bypassed.add_reason(reason, url);
        for name in cookies {
            self.cookies.add(NameKind::CookieBypasses, name, url, None);
        }
    }

    pub(super) fn dropped(&mut self, url: &str, by: &Arc<ChangeSource>) {
        self.dropped.add(NameKind::Plain, url, url, Some(by));
    }

    pub(super) fn compared(&mut self, compared: &Comparison, url: &str) {
        self.compared += 1;
        if let Comparison::Unchanged(by) = compared {
            self.compared_unchanged += 1;
            self.unchanged.add(NameKind::Plain, url, url, None);
            if let Some(columns) = by.columns() {
                self.unchanged_columns.add(NameKind::Plain, columns, url, Some(by));
            }
        }
    }
}

/// The most frequent of many names.
#[derive(Clone, Debug, Default)]
pub struct Top {
    held: Vec<TopEntry>,
}

/// A name with its count.
#[derive(Clone, Debug)]
pub struct TopEntry {
    /// The kind of the name.
    pub kind: NameKind,
    /// The name that is counted.
    pub name: Box<str>,
    /// The number of occurrences; never too low.
    pub count: u64,
    /// By how much the count may be too high.
    pub over: u64,
    /// The URL of the last occurrence.
    pub url: Box<str>,
    /// The cause of the last change, in lists of changes.
    pub by: Option<Arc<ChangeSource>>,
}

impl Top {
    fn add(&mut self, kind: NameKind, name: &str, url: &str, by: Option<&Arc<ChangeSource>>) {
        let known = self.held.iter_mut().find(|one| one.kind == kind && *one.name == *name);
        if let Some(known) = known {
            known.count += 1;
            if *known.url != *url {
                known.url = url.into();
            }
            known.by = by.cloned();
            return;
        }
        let over = if self.held.len() < HELD_MAX { 0 } else { self.make_room() };
        let (name, url, by) = (name.into(), url.into(), by.cloned());
        self.held.push(TopEntry { kind, name, count: over + 1, over, url, by });
    }

    fn add_reason(&mut self, reason: Reason, url: &str) {
        self.add(NameKind::Reason(reason), reason.as_str(), url, None);
    }

    /// Removes the least frequent name, and returns its count.
    fn make_room(&mut self) -> u64 {
        let least = self.held.iter().enumerate().min_by_key(|(_, one)| one.count);
        least.map(|(at, _)| at).map_or(0, |at| self.held.swap_remove(at).count)
    }

    /// Returns the most frequent names in descending order.
    pub fn worst(&self) -> Vec<&TopEntry> {
        let mut all: Vec<_> = self.held.iter().collect();
        all.sort_by(|one, other| other.count.cmp(&one.count).then(one.name.cmp(&other.name)));
        all.truncate(SHOWN_MAX);
        all
    }

    /// Adds the counts of another site's list.
    pub fn merge(&mut self, other: &Top) {
        for one in &other.held {
            let known =
                self.held.iter_mut().find(|known| known.kind == one.kind && known.name == one.name);
            match known {
                Some(known) => {
                    known.count += one.count;
                    known.over += one.over;
                }
                None => self.held.push(one.clone()),
            }
        }
    }
}

impl MissCauses {
    /// Adds the counts of another site.
    pub fn merge(&mut self, other: MissCauses) {
        self.not_stored.merge(&other.not_stored);
        self.bypassed.merge(&other.bypassed);
        self.cookies.merge(&other.cookies);
        self.parameters.merge(&other.parameters);
        self.dropped.merge(&other.dropped);
        self.unchanged.merge(&other.unchanged);
        self.unchanged_columns.merge(&other.unchanged_columns);
        other.slowest.into_iter().for_each(|slow| self.slow(slow));
        self.compared += other.compared;
        self.compared_unchanged += other.compared_unchanged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frequent_stay_and_no_count_is_too_low() {
        let mut top = Top::default();
        for at in 0..1_000 {
            top.add(NameKind::Plain, "often", "/a", None);
            top.add(NameKind::Plain, &format!("once-{at}"), "/b", None);
        }
        let worst = top.worst();
        assert_eq!((&*worst[0].name, worst[0].count, worst[0].over), ("often", 1_000, 0));
        assert!(worst[1..].iter().all(|one| one.count - one.over <= 1 && one.count >= 1));
        assert!(top.held.len() <= HELD_MAX && worst.len() == SHOWN_MAX);
    }

    #[test]
    fn the_slowest_are_each_address_once() {
        let mut causes = MissCauses::default();
        for at in 0..100_u64 {
            let url = format!("/{}", at % 30).into();
            let (took_ms, at_ms, status) = (at, 0, Some(200));
            causes.slow(Slow { url, took_ms, at_ms, status, stored: true });
        }
        let told: Vec<u64> = causes.slowest.iter().map(|slow| slow.took_ms).collect();
        assert_eq!(told, (80..100).rev().collect::<Vec<_>>());
    }

    #[test]
    fn several_sites_are_counted_together() {
        let (mut one, mut other) = (Top::default(), Top::default());
        one.add(NameKind::Plain, "a", "/", None);
        other.add(NameKind::Plain, "a", "/", None);
        other.add(NameKind::CookieSet, "a", "/", None);
        one.merge(&other);
        let worst = one.worst();
        assert_eq!((worst.len(), worst[0].count, worst[1].count), (2, 2, 1));
    }
}
