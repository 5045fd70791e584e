//! Lists the pages that depend on a name, in parts, for explanations and dashboards.
//!
//! Each call holds the index lock while it clones its part. The list is not a snapshot: pages that enter or
//! leave between two calls may be missing or appear twice.

use crate::hash::Site;
use crate::names::ChangeTarget;
use crate::page::{Page, Payload};
use crate::store::Store;
use std::fmt;

/// The maximum number of pages that one call returns.
const PAGES_MAX: usize = 1_000;

/// One part of a list of pages.
pub struct Listing<P> {
    /// The pages of this part.
    pub pages: Vec<Page<P>>,
    /// The number of all pages at the moment. It includes dropped pages that are not tidied up yet.
    pub total: usize,
    /// The position of the next part, if there is one.
    pub next: Option<usize>,
}

impl<P: Payload> Store<P> {
    /// The pages that a change of `target` would affect, at most `count` and never more than 1,000. `from`
    /// is a position: 0 for the first part, then [`Listing::next`]. An empty part is not necessarily the
    /// last.
    pub fn pages(
        &self,
        site: Site,
        target: &ChangeTarget<'_>,
        from: usize,
        count: usize,
    ) -> Listing<P> {
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
