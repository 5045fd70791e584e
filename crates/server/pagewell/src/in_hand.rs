//! What is in hand that may tell of a change: requests whose answers may say what has changed, with a visitor
//! or without (decision 0031), purges, calls of the control interface, deletions over the memcached port. A process
//! that ends waits for them; only when there are none, and none can begin any more, it may say that this was all: to
//! the process that has taken over, or to the next one by a snapshot (decision 0062).
//!
//! Invariant: who is told that a change has happened was told while his [`Hand`] was held, or before
//! [`end`] gave it back. So after [`InHand::close`] has found none, no change is acknowledged.

use crate::propagation::Waited;
use crate::site::Site;
use crate::snapshot::{self, Snapshots};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nothing is begun any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// How much there is.
#[derive(Default)]
pub struct InHand(AtomicUsize);

/// Something that is in hand until this is dropped. Where there are snapshots their journal says so: one of a
/// process that was killed meanwhile is no longer all that has changed.
pub struct Hand {
    all: Arc<InHand>,
    noted: Option<snapshot::InHand>,
    /// How many changes the other machines had been told of when it was begun.
    told: u64,
}

impl InHand {
    /// One more; none where nothing is begun any more.
    pub(crate) fn begin(
        self: &Arc<InHand>,
        snapshots: Option<&Arc<Snapshots>>,
        told: u64,
    ) -> Option<Hand> {
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        let is_open = before & CLOSED == 0;
        // Where it is refused it takes back what it has added.
        let noted = snapshots.filter(|_| is_open).map(Snapshots::in_hand);
        let hand = Hand { all: self.clone(), noted, told };
        is_open.then_some(hand)
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire) & !CLOSED
    }

    /// From now on nothing is begun. Returns how much is still in hand; nothing: there will be no change.
    pub fn close(&self) -> usize {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // First: whoever finds nothing in hand closes the journal.
        drop(self.noted.take());
        self.all.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Begins something that may tell of a change at this site. Where nothing is begun any more this never
/// returns: who asked is cut off with the end of the process, and nothing was done.
pub async fn begin(site: &Site) -> Hand {
    match site.in_hand.begin(site.snapshots.as_ref(), site.told_others()) {
        Some(hand) => hand,
        None => pending().await,
    }
}

/// Begins something that is done before anything else is; none where nothing is begun any more. Killed meanwhile this
/// machine has done it, which the journal says then, or was not asked; the others may not have heard of it.
pub fn begin_at_once(site: &Site) -> Option<Hand> {
    let noted = site.snapshots.as_ref().filter(|_| site.others.is_some());
    site.in_hand.begin(noted, site.told_others())
}

/// As `begin`, for several sites.
pub async fn begin_all(sites: impl Iterator<Item = &Arc<Site>>) -> Vec<Hand> {
    let mut hands = Vec::new();
    for site in sites {
        hands.push(begin(site).await);
    }
    hands
}

/// It has ended, and who asked may be told: the other machines have been, or it is not waited for any longer.
/// Where it has changed something that the process which has taken over was not told, this never returns: it
/// is not acknowledged.
pub async fn end(site: &Site, hand: Hand) -> Waited {
    let others = wait(site, &hand).await;
    drop(hand);
    others
}

/// The same for several sites, a hand for each, in their order.
pub async fn end_all(sites: impl Iterator<Item = &Arc<Site>>, hands: Vec<Hand>) -> Waited {
    let mut others = Waited::No;
    for (site, hand) in sites.zip(&hands) {
        others = others.and(wait(site, hand).await);
    }
    drop(hands);
    others
}

/// Waits until the other machines have heard what it has changed, or it is not waited for any longer.
pub async fn heard(site: &Site, hand: &Hand) -> Waited {
    site.heard_by_others(hand.told).await
}

async fn wait(site: &Site, hand: &Hand) -> Waited {
    let others = heard(site, hand).await;
    if site.is_unheard() {
        pending::<()>().await;
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_with_nothing_in_hand_stays_so() {
        let in_hand = Arc::new(InHand::default());
        let one = in_hand.begin(None, 0).expect("it is open");
        let other = in_hand.begin(None, 0).expect("it is open");
        drop(one);
        assert_eq!((in_hand.count(), in_hand.close()), (1, 1));
        assert!(in_hand.begin(None, 0).is_none());
        drop(other);
        assert_eq!((in_hand.count(), in_hand.close()), (0, 0));
        assert!(in_hand.begin(None, 0).is_none());
        assert_eq!(in_hand.count(), 0);
    }
}
