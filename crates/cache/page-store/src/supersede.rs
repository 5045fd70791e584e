//! Rule 9: a final answer of the origin that is not stored ends the older pages that it answers for.
//!
//! The answer gets a number of the clock, like a change, which is remembered for the *place* of the page: its
//! key and variant, or its key alone where the answer names no fields by which it differs. The older pages
//! leave in the same hold of the index lock. From then on no render with an older lease is stored at that
//! place ([`Refused::Superseded`]) or shared with a later request, and no page of an earlier process is
//! restored under the key, whatever its variant. A render is either stored before (then the caller finds its page), or its
//! check sees the number. Rule 4 forgets the number, as for any name.
//!
//! Which of the stored pages are older is the caller's decision: several renders may have one lease, and only
//! the caller knows when each of them asked the origin.

use crate::hash::Id;
use crate::index::Index;
use crate::lease::{Lease, Number};
use crate::page::{Key, Page, Payload};
use crate::places::Leaving;
use crate::refused::Refused;
use crate::shards::Shards;
use crate::store::{Shared, Store};

/// What [`Store::supersede`] did.
#[derive(Debug)]
pub struct Superseded<P> {
    /// The number of the answer.
    pub number: Number,
    /// The pages that were stored and are not any more.
    pub removed: Vec<Page<P>>,
}

impl<P: Payload> Store<P> {
    /// Takes in that the origin has given a final answer, which is not stored, to a render with this `lease`
    /// for the page under `key`: removes those of `older` that are stored under the key, and refuses what
    /// began before under `variants`.
    ///
    /// Between the caller's look and this call an older page may have come in, or got another form
    /// ([`Store::replace_payload`]): look again afterwards, and call this again while there is an older one.
    /// Nothing older comes in any more, so that this ends.
    ///
    /// # Panics
    /// Where the lease is another store's: its number would mean nothing here.
    pub fn supersede(
        &self,
        key: Key<'_>,
        variants: &[u32],
        lease: &Lease,
        older: &[Page<P>],
    ) -> Superseded<P> {
        let places: Vec<_> = variants.iter().map(|variant| Some(*variant)).collect();
        self.supersede_at(key, &places, lease, older)
    }

    /// The same for an answer that stands for every variant under the key.
    ///
    /// # Panics
    /// As [`supersede`](Self::supersede).
    pub fn supersede_key(&self, key: Key<'_>, lease: &Lease, older: &[Page<P>]) -> Superseded<P> {
        self.supersede_at(key, &[None], lease, older)
    }

    fn supersede_at(
        &self,
        key: Key<'_>,
        places: &[Option<u32>],
        lease: &Lease,
        older: &[Page<P>],
    ) -> Superseded<P> {
        assert!(lease.is_of(&*self.shared), "a lease of another store");
        let shared = &self.shared;
        let mut index = shared.lock();
        let number = shared.next_number(&mut index);
        for variant in places {
            index.remember(shared.seeds.place(key.hash, *variant));
        }
        // The answer may not name the fields by which variants of an earlier process differ.
        if index.restored.is_some() && !places.contains(&None) {
            index.remember(shared.seeds.place(key.hash, None));
        }
        let mut removed = Leaving::new();
        for page in older.iter().filter(|page| page.key() == key && page.lease() <= lease.number())
        {
            index.remove_superseded(page, &shared.shards, &mut removed);
        }
        shared.finish(index, None, Leaving::new());
        Superseded { number, removed }
    }
}

impl<P: Payload> Shared<P> {
    /// Whether a later answer of the origin stands against a page that is about to be stored.
    pub(crate) fn check_place(&self, index: &Index<P>, page: &Page<P>) -> Result<(), Refused> {
        let places = [Some(page.variant()), None].map(|at| self.seeds.place(page.hash(), at));
        match places.iter().any(|place| index.last_answer(*place) > page.lease().0) {
            true => Err(Refused::Superseded),
            false => Ok(()),
        }
    }

    /// The same for a page of an earlier process, which any later answer under its key stands against.
    pub(crate) fn check_key(&self, index: &Index<P>, page: &Page<P>) -> Result<(), Refused> {
        match index.last_answer(self.seeds.place(page.hash(), None)) > page.lease().0 {
            true => Err(Refused::Superseded),
            false => Ok(()),
        }
    }
}

impl<P> Index<P> {
    /// The number of the last answer that is remembered for a place; 0 where none speaks against a lease that
    /// is let through.
    pub(crate) fn last_answer(&self, place: Id) -> u64 {
        self.tags.find(place).map_or(0, |at| self.tags.changed(at).last_change)
    }

    fn remove_superseded(&mut self, page: &Page<P>, shards: &Shards<P>, removed: &mut Leaving<P>)
    where
        P: Payload,
    {
        let place = self.pages.find(page.slot());
        let stored = place.and_then(|place| place.page.as_ref());
        if stored.is_some_and(|stored| stored.is(page)) {
            self.let_die(page.slot(), shards, removed);
            self.counters.superseded += 1;
        }
    }
}
