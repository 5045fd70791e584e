//! Rule 9: a final response of the origin that is not stored removes the older pages that it replaces.
//!
//! Like a change, the response gets a number of the clock. The number is remembered for the *place* of the
//! page: its key and variant, or its key alone if the response does not name the fields by which it varies.
//! The older pages are removed in the same hold of the index lock. From then on, no render with an older
//! lease is stored at that place ([`StoreRefusal::Superseded`]) or shared with a later request. No variant
//! of the key is restored from an earlier process. A concurrent render is either stored before, so that the
//! caller finds its page, or its check sees the number. Rule 4 forgets the number as for any name.
//!
//! The caller decides which stored pages are older. Several renders may have one lease, and only the caller
//! knows when each of them sent its request.

use crate::hash::Id;
use crate::index::Index;
use crate::lease::{Lease, Number};
use crate::page::{Key, Page, Payload};
use crate::places::RemovedPages;
use crate::refused::StoreRefusal;
use crate::shards::Shards;
use crate::store::{Store, StoreInner};

/// The result of [`Store::supersede`].
#[derive(Debug)]
pub struct SupersedeOutcome<P> {
    /// The number of the response.
    pub number: Number,
    /// The pages that were removed.
    pub removed: Vec<Page<P>>,
}

impl<P: Payload> Store<P> {
    /// Records a final response of the origin that is not stored. The response belongs to a render with
    /// this `lease` for the page under `key`. Removes those of `older` that are stored under the key, and
    /// refuses older renders of `variants`.
    ///
    /// Between the caller's lookup and this call, an older page may have been stored or got another payload
    /// ([`Store::replace_payload`]). Look up again afterwards and repeat the call while there is an older
    /// page. No older page can be stored after the first call, so this ends.
    ///
    /// # Panics
    /// Panics if the lease belongs to another store, where its number has another meaning.
    pub fn supersede(
        &self,
        key: Key<'_>,
        variants: &[u32],
        lease: &Lease,
        older: &[Page<P>],
    ) -> SupersedeOutcome<P> {
        let places: Vec<_> = variants.iter().map(|variant| Some(*variant)).collect();
        self.supersede_at(key, &places, lease, older)
    }

    /// [`supersede`](Self::supersede) for a response that applies to every variant of the key.
    ///
    /// # Panics
    /// As [`supersede`](Self::supersede).
    pub fn supersede_key(
        &self,
        key: Key<'_>,
        lease: &Lease,
        older: &[Page<P>],
    ) -> SupersedeOutcome<P> {
        self.supersede_at(key, &[None], lease, older)
    }

    fn supersede_at(
        &self,
        key: Key<'_>,
        places: &[Option<u32>],
        lease: &Lease,
        older: &[Page<P>],
    ) -> SupersedeOutcome<P> {
        assert!(lease.is_of(&*self.shared), "a lease of another store");
        let shared = &self.shared;
        let mut index = shared.lock();
        let number = shared.next_number(&mut index);
        for variant in places {
            index.remember(shared.seeds.place(key.hash, *variant));
        }
        // The response may not name the fields by which variants of an earlier process differ.
        if index.restored.is_some() && !places.contains(&None) {
            index.remember(shared.seeds.place(key.hash, None));
        }
        let mut removed = RemovedPages::new();
        for page in older.iter().filter(|page| page.key() == key && page.lease() <= lease.number())
        {
            index.remove_superseded(page, &shared.shards, &mut removed);
        }
        shared.finish(index, None, RemovedPages::new());
        SupersedeOutcome { number, removed }
    }
}

impl<P: Payload> StoreInner<P> {
    /// Checks that no later response of the origin forbids to store the page.
    pub(crate) fn check_place(&self, index: &Index<P>, page: &Page<P>) -> Result<(), StoreRefusal> {
        let places = [Some(page.variant()), None].map(|at| self.seeds.place(page.hash(), at));
        if places.iter().any(|place| index.last_answer(*place) > page.lease().0) {
            Err(StoreRefusal::Superseded)
        } else {
            Ok(())
        }
    }

    /// The same check for a page of an earlier process, which any later response under its key forbids.
    pub(crate) fn check_key(&self, index: &Index<P>, page: &Page<P>) -> Result<(), StoreRefusal> {
        if index.last_answer(self.seeds.place(page.hash(), None)) > page.lease().0 {
            Err(StoreRefusal::Superseded)
        } else {
            Ok(())
        }
    }
}

impl<P> Index<P> {
    /// The number of the last response remembered for a place; 0 if there is none that is newer than an
    /// accepted lease.
    pub(crate) fn last_answer(&self, place: Id) -> u64 {
        self.tags.find(place).map_or(0, |at| self.tags.changed(at).last_change)
    }

    fn remove_superseded(
        &mut self,
        page: &Page<P>,
        shards: &Shards<P>,
        removed: &mut RemovedPages<P>,
    ) where
        P: Payload,
    {
        let place = self.pages.find(page.slot());
        let stored = place.and_then(|place| place.page.as_ref());
        if stored.is_some_and(|stored| stored.is(page)) {
            self.retire(page.slot(), shards, removed);
            self.counters.superseded += 1;
        }
    }
}
