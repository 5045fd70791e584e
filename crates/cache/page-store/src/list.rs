//! Listing the pages that depend on something, a few at a time, for explanations and dashboards.
//!
//! Each call holds the index lock for as long as it takes to clone its few pages. The list is not a
//! snapshot: pages that come and go between two calls may be missing from it or be in it twice.

use crate::names::{Site, Target};
use crate::page::{Page, Payload};
use crate::store::Store;
use std::fmt;

/// The most pages one call returns.
const PAGES_MAX: usize = 1_000;

/// Part of a list of pages.
pub struct Listing<P> {
    /// The pages.
    pub pages: Vec<Page<P>>,
    /// How many pages there are in all, at the moment; dropped ones that are not tidied up yet count.
    pub total: usize,
    /// Where to go on, if there are more.
    pub next: Option<usize>,
}

impl<P: Payload> Store<P> {
    /// The pages that a change of `target` would touch, from the position `from` (0, then
    /// [`Listing::next`]), at most `count` of them and never more than 1,000.
    /// A part may be empty and yet not be the last.
    pub fn pages(&self, site: Site, target: &Target<'_>, from: usize, count: usize) -> Listing<P> {
        let mut ids = Vec::new();
        target.ids(site, &self.shared.seeds, &mut ids);
        let index = self.shared.lock();
        let lists: Vec<_> = ids.iter().map(|id| index.pages_of(*id)).collect();
        let total = lists.iter().map(|list| list.len()).sum();
        let mut skip = from;
        let (mut pages, mut looked_at) = (Vec::new(), 0);
        for list in lists {
            let rest = list.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(list.len());
            let room = count.min(PAGES_MAX) - looked_at;
            let part = rest.iter().take(room);
            looked_at += part.len();
            pages.extend(part.filter_map(|at| index.pages.get(*at).page.clone()));
        }
        drop(index);
        let end = from + looked_at;
        let next = (end < total && looked_at > 0).then_some(end);
        Listing { pages, total, next }
    }
}

impl<P> fmt::Debug for Listing<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Listing");
        out.field("pages", &self.pages)
            .field("total", &self.total)
            .field("next", &self.next)
            .finish()
    }
}
