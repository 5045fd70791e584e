//! Private pages: the limit on the pages of one owner.
//!
//! The owner of a page is a dependency like any other (`names.rs`); this file only enforces the limit. A
//! client that requests thousands of pages must not displace the pages of others. A page over the limit
//! displaces the owner's page with the oldest lease. Guarded by the index lock. Cost: a scan of the owner's
//! pages, once there are as many as the limit.

use crate::hash::Id;
use crate::index::Index;
use crate::page::Payload;
use crate::places::RemovedPages;
use crate::store::StoreInner;

impl<P: Payload> StoreInner<P> {
    /// Removes pages of `owner` until there is room for one more.
    pub(crate) fn make_room_for_owner(
        &self,
        index: &mut Index<P>,
        owner: Id,
        leaving: &mut RemovedPages<P>,
    ) {
        while let Some(at) = oldest_over(index, owner) {
            let page = index.take_out(at);
            self.shards.take(&page);
            leaving.push(page);
            index.counters.owner_displaced += 1;
        }
    }
}

/// The place of the owner's page with the oldest lease, if the owner has as many pages as the limit.
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
    // Dead pages still have their edges, so only the living ones are counted.
    let (count, oldest) = leases.fold((0, None), |(count, oldest), page| {
        (count + 1, Some(oldest.map_or(page, |other| page.min(other))))
    });
    (count >= max).then_some(oldest?.1)
}
