//! Pages that nobody has asked for lately: taken out round by round, where the caller wants that.
//!
//! A page's age stands above its uses, in the byte that a lookup counts its use in (`page.rs`): how many rounds
//! ago it was asked for last. A lookup sets it to 0, in the store that it does anyway, and where that byte would
//! stay as it is, it is left alone. A round makes each page older by one; a page of [`UNUSED`] leaves. So where a
//! round is made every eighth of a time, a page is in the store for that time after it was asked for last, and
//! for an eighth longer at most. No clock is read here: the caller makes the rounds.
//!
//! A round goes through the places a part at a time, under the index lock; what is to leave is handed out, and
//! taken out in a step of its own if it is unused still: dead, as by a change (`places.rs`), to be buried later.
//! Leases, names and the memory of changes are untouched by it.

use crate::page::{Page, Payload};
use crate::places::Leaving;
use crate::store::Store;

/// The age at which a page leaves: asked for before the last eight rounds and the one before them.
pub(crate) const UNUSED: u8 = 9;

/// By how much a round makes pages older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// By so many rounds, for which this one stands; by one those that were asked for since the last.
    By(u8),
    /// As if this were the first round: what came before was of another length, or none was made for long.
    Anew,
}

/// How far a round has come.
#[derive(Debug)]
pub struct Round {
    older: Older,
    next: Option<u32>,
}

impl Round {
    /// A round from the beginning.
    pub fn new(older: Older) -> Self {
        Self { older, next: Some(0) }
    }

    /// Whether it has been everywhere.
    pub fn is_over(&self) -> bool {
        self.next.is_none()
    }
}

impl<P: Payload> Store<P> {
    /// The next part of a round: makes its pages older, and returns those that nobody has asked for in eight
    /// rounds. Which of them leave is the caller's choice: see [`Store::drop_unused`].
    pub fn grow_older(&self, round: &mut Round) -> Vec<Page<P>> {
        let Some(from) = round.next else { return Vec::new() };
        let index = self.shared.lock_as_sweeper();
        let (part, next) = index.pages.part(from, self.shared.limits.round_pages());
        let pages = part.filter_map(|place| place.page.as_ref());
        let unused = pages.filter(|page| page.grow_older(round.older) >= UNUSED).cloned().collect();
        drop(index);
        round.next = next;
        unused
    }

    /// Drops those of `unused` that are stored still and that nobody has asked for meanwhile; how many.
    /// What they leave behind is for [`Store::tidy`].
    pub fn drop_unused(&self, unused: &[Page<P>]) -> u64 {
        let mut dropped = 0;
        for part in unused.chunks(self.shared.limits.round_pages()) {
            let mut leaving = Leaving::new();
            let mut index = self.shared.lock_as_sweeper();
            for page in part.iter().filter(|page| page.age() >= UNUSED) {
                let place = index.pages.find(page.slot());
                let stored = place.and_then(|place| place.page.as_ref());
                if stored.is_some_and(|stored| stored.is(page)) {
                    index.let_die(page.slot(), &self.shared.shards, &mut leaving);
                    index.counters.unused += 1;
                    dropped += 1;
                }
            }
            self.shared.finish(index, None, leaving);
        }
        dropped
    }
}
