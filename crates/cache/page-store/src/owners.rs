//! Private pages: at most so many of one owner.
//!
//! That a page is its owner's is a dependency like any other (`names.rs`); here is only the bound. A visitor
//! who asks for thousands of pages must not push out everybody's: a page over the bound displaces that of the
//! same owner which was rendered first. Guarded by the index lock. Cost: a look at the owner's pages, once
//! there are as many as there may be.

use crate::hash::Id;
use crate::index::Index;
use crate::page::Payload;
use crate::places::Leaving;
use crate::store::Shared;

impl<P: Payload> Shared<P> {
    /// Takes pages of `owner` out until there is room for one more.
    pub(crate) fn make_room_for_owner(
        &self,
        index: &mut Index<P>,
        owner: Id,
        leaving: &mut Leaving<P>,
    ) {
        while let Some(at) = oldest_over(index, owner) {
            let page = index.take_out(at);
            self.shards.take(&page);
            leaving.push(page);
            index.counters.owner_displaced += 1;
        }
    }
}

/// The place of the owner's page with the oldest lease, where it has as many pages as it may.
fn oldest_over<P>(index: &Index<P>, owner: Id) -> Option<u32> {
    let max = index.limits.owner_pages_max;
    let pages = index.pages_of(owner);
    if pages.len() < max {
        return None;
    }
    let leases = pages.iter().filter_map(|at| {
        let page = index.pages.get(*at).page.as_ref()?;
        Some((page.lease(), *at))
    });
    // The dead still have their edges: those that live are counted.
    let (count, oldest) = leases.fold((0, None), |(count, oldest), page| {
        (count + 1, Some(oldest.map_or(page, |other| page.min(other))))
    });
    (count >= max).then_some(oldest?.1)
}
