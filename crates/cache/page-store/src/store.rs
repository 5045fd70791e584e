//! The store: lookup, insertion, sharing, removal (changes: `change.rs`). Its locks guard:
//! - the **index** mutex: the clock, leases, pages, queues and the dependency index (`index.rs`);
//! - the **gate** mutex: no state; a sweep holds it while it waits for the index;
//! - the **rewarm** mutex: keys for cache warming (`rewarm.rs`); no lock is taken under it;
//! - 256 **shard** read-write locks: the page map (`shards.rs`); only the holder of the index lock writes.
//!
//! Order: a stripe of [`Fills`](crate::Fills), the gate, the index, one shard; never the reverse. A lookup
//! takes one shard lock for reading only. Under the index lock no payload is freed and no code of the
//! caller runs. Rule 1: `insert` checks and inserts in one hold of the index lock, and a change takes its
//! number and is remembered in one hold. Either the check sees the change, or the change finds the page.

use crate::budget::Limits;
use crate::hash::{Id, Seeds, Site};
use crate::index::Index;
use crate::lease::{self, Lease, Number, Registry};
use crate::names::Dependencies;
use crate::page::{Candidates, Key, KeyBuf, NOWHERE, Page, PageInput, Payload};
use crate::places::{Queue, RemovedPages};
use crate::refused::{NotStored, StoreRefusal};
use crate::rewarm::{self, Rewarm};
use crate::shards::Shards;
use crate::stats::{Bytes, Stats};
use crate::sync::{AtomicU64, Mutex, MutexGuard, lock, lock_to_release, yield_now};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The page store in memory. A handle: clones share one store.
pub struct Store<P> {
    pub(crate) shared: Arc<StoreInner<P>>,
}

pub(crate) struct StoreInner<P> {
    pub(crate) seeds: Seeds,
    pub(crate) limits: Limits,
    /// A copy of the clock for arrival stamps; written under the index lock.
    pub(crate) number: AtomicU64,
    pub(crate) index: Mutex<Index<P>>,
    /// Held by a sweep while it waits for the index.
    gate: Mutex<()>,
    /// Whether a sweep waits. It only affects the order of lock holders.
    sweeper_waits: AtomicBool,
    pub(crate) shards: Shards<P>,
    pub(crate) rewarm: Rewarm,
}

impl<P: Payload> Store<P> {
    /// An empty store with random hash seeds.
    pub fn new(limits: Limits) -> Self {
        Self::with_seeds(limits, Seeds::random())
    }

    /// An empty store whose hashes depend only on `seed` and the process; for tests and model checkers.
    pub fn with_seed(limits: Limits, seed: u64) -> Self {
        Self::with_seeds(limits, Seeds::from_seed(seed))
    }

    fn with_seeds(mut limits: Limits, seeds: Seeds) -> Self {
        limits.page_bytes_max = limits.page_bytes_max.min(limits.budget_bytes / 2);
        limits.variants_max = limits.variants_max.max(1);
        limits.sweep_pages = limits.sweep_pages.max(1);
        limits.owner_pages_max = limits.owner_pages_max.max(1);
        // Reserved: the keys for cache warming grow and shrink independently of the index.
        let budget_bytes = limits.budget_bytes - rewarm::bytes_max(&limits);
        let index = Mutex::new(Index::new(Limits { budget_bytes, ..limits.clone() }));
        let rewarm = Rewarm::new(&limits);
        let (number, shards) = (AtomicU64::new(0), Shards::new());
        let (gate, sweeper_waits) = (Mutex::new(()), AtomicBool::new(false));
        let shared =
            StoreInner { seeds, limits, number, index, gate, sweeper_waits, shards, rewarm };
        Self { shared: Arc::new(shared) }
    }

    /// The key of these bytes in this store.
    pub fn key<'b>(&self, bytes: &'b [u8]) -> Key<'b> {
        Key { bytes, hash: self.shared.seeds.key(bytes) }
    }

    /// The implicit dependencies of a page of `site` at `path_and_query` (without scheme and host). The
    /// caller adds the page's tags.
    pub fn dependencies(&self, site: Site, path_and_query: &[u8]) -> Dependencies {
        let limits = &self.shared.limits;
        let (tags_max, tag_bytes_max) = (limits.tags_max, limits.tag_bytes_max);
        Dependencies::new(&self.shared.seeds, site, path_and_query, tags_max, tag_bytes_max)
    }

    /// The pages stored under `key`, each counted as used. It takes one shard lock for reading and
    /// allocates nothing.
    pub fn candidates(&self, key: Key<'_>) -> Candidates<P> {
        self.shared.shards.hit(key)
    }

    /// The pages stored under `key`, without counting a use; for inspection.
    pub fn peek(&self, key: Key<'_>) -> Candidates<P> {
        self.shared.shards.pages(key)
    }

    /// The clock's value, without a lock: the arrival stamp of a request. Read it when the request arrives,
    /// before any lookup. Once a change is acknowledged, the value is at least its number. All later leases
    /// and insertions know the changes up to the value.
    pub fn number(&self) -> Number {
        Number(self.shared.number.load(Ordering::Acquire))
    }

    /// Evicts up to `count` pages, `wanted` ones if there are any among the least used: for memory of the caller that
    /// those pages hold, beside the budget. Returns their number.
    pub fn evict_some(&self, count: usize, wanted: impl Fn(&P) -> bool) -> usize {
        let mut leaving = RemovedPages::new();
        let mut index = self.shared.lock();
        let evicted = index.evict_some(&self.shared.shards, count, wanted, &mut leaving);
        self.shared.finish(index, None, leaving);
        evicted
    }

    /// Takes a lease for a render that is about to begin.
    pub fn lease(&self) -> Lease {
        let mut index = self.shared.lock();
        let number = index.clock;
        index.leases.take(number);
        drop(index);
        Lease::new(number, Arc::clone(&self.shared) as Arc<dyn Registry>)
    }

    /// Stores a render (rule 1) and evicts pages until everything fits. It replaces the same variant of
    /// `key`, if there is one.
    ///
    /// `variant` is the caller's number of the variant. `lease` must have been taken before the render
    /// began.
    ///
    /// # Errors
    /// [`NotStored`] with the reason and the page, which may still answer the request that it was rendered
    /// for.
    ///
    /// # Panics
    /// Panics if the lease belongs to another store, where its number has another meaning.
    pub fn insert<'n>(
        &self,
        key: Key<'_>,
        variant: u32,
        dependencies: &Dependencies,
        lease: &Lease,
        new: impl Into<PageInput<'n, P>>,
    ) -> Result<Page<P>, NotStored<P>> {
        assert!(lease.is_of(&*self.shared), "a lease of another store");
        let page = Page::new(key, variant, lease.number(), new.into());
        let mut leaving = RemovedPages::new();
        let (mut index, asked) = self.shared.evaluate_predicates(&page, dependencies.site());
        let outcome =
            asked.and_then(|()| self.shared.admit(&mut index, &page, dependencies, &mut leaving));
        if let Err(reason) = outcome {
            index.counters.refuse(reason);
        }
        self.shared.finish(index, Some(&page), leaving);
        match outcome {
            Ok(()) => Ok(page),
            Err(reason) => Err(NotStored { reason, page }),
        }
    }

    /// Rule 2: whether a render with the lease `lease` and these dependencies may answer a request that
    /// arrived at `arrival`. Call it while the lease is outstanding; after that it may refuse renders that
    /// could be shared.
    ///
    /// # Errors
    /// The reason why not. The request then starts or joins a newer render.
    pub fn may_share(
        &self,
        lease: Number,
        arrival: Number,
        dependencies: &Dependencies,
    ) -> Result<(), StoreRefusal> {
        self.shared.lock().check_shared(dependencies, lease, arrival)
    }

    /// Removes `page`, if it is (still) stored. Returns whether it was.
    pub fn remove(&self, page: &Page<P>) -> bool {
        let mut index = self.shared.lock();
        let place = index.pages.find(page.slot());
        let stored = place.and_then(|place| place.page.as_ref());
        if !stored.is_some_and(|stored| stored.is(page)) {
            return false;
        }
        let taken = index.take_out(page.slot());
        self.shared.shards.take(&taken);
        index.counters.removed += 1;
        true
    }

    /// Replaces the payload of `page` by another form of the same response. Key, variant, lease,
    /// dependencies, use count and queue position stay the same, so later changes affect the new page in
    /// the same way. Then pages are evicted until everything fits; this may evict the page itself.
    ///
    /// # Errors
    /// [`NotReplaced`] if `page` is not stored any more, is marked, or would be too large. The page stays
    /// as it is.
    pub fn replace_payload<'n>(
        &self,
        page: &Page<P>,
        new: impl Into<PageInput<'n, P>>,
    ) -> Result<Page<P>, NotReplaced> {
        let new = Page::new(page.key(), page.variant(), page.lease(), new.into());
        let mut index = self.shared.lock();
        let outcome = self.shared.swap(&mut index, page, &new);
        let leaving = if outcome.is_ok() { vec![page.clone()] } else { RemovedPages::new() };
        self.shared.finish(index, None, leaving);
        outcome.map(|()| new)
    }

    /// Removes the edges of a batch of dead pages, which a large change has left behind and which still
    /// take memory. Every other step also removes a few. Call it in the background after a large change
    /// until it returns false: there is nothing more to do.
    pub fn tidy(&self) -> bool {
        let mut index = self.shared.lock_as_sweeper();
        index.prune();
        index.bury(self.shared.limits.bury_pages())
    }

    /// The statistics of the store.
    pub fn stats(&self) -> Stats {
        let index = self.shared.lock();
        let eviction = index.pages.heap_bytes() + index.queues.heap_bytes();
        let dependencies = index.heap_bytes() - eviction - index.page_bytes;
        let eviction = eviction + self.shared.rewarm.heap_bytes();
        let map = self.shared.shards.heap_bytes();
        Stats {
            number: index.clock,
            floor: index.floor,
            pages: index.pages.len() - index.dead.len(),
            dead: index.dead.len(),
            names: index.tags.len() + index.urls.len(),
            edges: index.tags.edges() + index.urls.len(),
            changes_remembered: index.tags.remembered() + index.predicates.len(),
            to_rewarm: self.shared.rewarm.len(),
            opens: index.opens,
            leases: index.leases.out(),
            oldest_lease: index.leases.oldest(),
            bytes: Bytes {
                pages: index.page_bytes,
                dependencies,
                map,
                eviction,
                untouched: index.queues.untouched_bytes(),
            },
            counters: index.counters,
        }
    }

    /// The key of the most used page that a change has dropped or marked, for cache warming. Each key is
    /// returned once. The page may have been rendered in between, so look it up first. `None` if no key
    /// waits, or if [`Limits::rewarm_pages_max`] is 0.
    pub fn next_to_rewarm(&self) -> Option<KeyBuf> {
        self.shared.rewarm.next()
    }

    /// The number of keys that wait for [`next_to_rewarm`](Self::next_to_rewarm).
    pub fn to_rewarm(&self) -> usize {
        self.shared.rewarm.len()
    }

    /// The limits of the store.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }
}

/// The reason why [`Store::replace_payload`] left a page as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReplaced {
    /// The page was not stored, or not any more.
    NotStored,
    /// A soft invalidation had marked it, so it will be refreshed soon.
    Marked,
    /// With the new payload it would exceed the maximum size of a page.
    TooLarge,
}

impl NotReplaced {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStored => "not-stored",
            Self::Marked => "marked",
            Self::TooLarge => "too-large",
        }
    }
}

impl<P: Payload> StoreInner<P> {
    /// Puts `new` in the place of `old`, under the index lock. The edges belong to the place and stay.
    fn swap(&self, index: &mut Index<P>, old: &Page<P>, new: &Page<P>) -> Result<(), NotReplaced> {
        let place = index.pages.find(old.slot());
        let stored = place.and_then(|place| place.page.as_ref());
        if !stored.is_some_and(|stored| stored.is(old)) {
            return Err(NotReplaced::NotStored);
        }
        // Marks are set under this lock, so none is lost between this check and the swap.
        if old.is_marked() {
            return Err(NotReplaced::Marked);
        }
        if new.heap_bytes() > self.limits.page_bytes_max {
            return Err(NotReplaced::TooLarge);
        }
        new.take_uses_of(old);
        new.set_served(old.served());
        index.swap(old, new);
        self.shards.swap(old, new);
        Ok(())
    }

    /// Checks `page` and adds it, under the index lock.
    fn admit(
        &self,
        index: &mut Index<P>,
        page: &Page<P>,
        dependencies: &Dependencies,
        leaving: &mut RemovedPages<P>,
    ) -> Result<(), StoreRefusal> {
        if let Some(reason) = dependencies.refused() {
            return Err(reason);
        }
        if page.heap_bytes() > self.limits.page_bytes_max {
            return Err(StoreRefusal::TooLarge);
        }
        if lease::is_lease_checked() {
            index.check(dependencies, page.lease())?;
            self.check_place(index, page)?;
        }
        let (replaced, queue) = self.make_room_under_key(index, page)?;
        for old in &replaced {
            index.take_out(old.slot());
        }
        if let Some(owner) = dependencies.owner_id() {
            self.make_room_for_owner(index, owner, leaving);
        }
        index.add(page, dependencies, queue);
        self.shards.put(page, &replaced);
        leaving.extend(replaced);
        index.counters.stored += 1;
        Ok(())
    }

    /// The pages that `page` displaces under its key, and the queue that it enters.
    fn make_room_under_key(
        &self,
        index: &mut Index<P>,
        page: &Page<P>,
    ) -> Result<(RemovedPages<P>, Queue), StoreRefusal> {
        let key = page.key();
        let stored = self.shards.same_hash(key.hash);
        let pages = stored.as_slice();
        if pages.first().is_some_and(|other| other.key() != key) {
            return Ok((pages.to_vec(), Queue::Small));
        }
        if let Some(same) = pages.iter().find(|other| other.variant() == page.variant()) {
            if same.lease() > page.lease() {
                return Err(StoreRefusal::Superseded);
            }
            index.counters.replaced += 1;
            page.set_uses(same.uses());
            return Ok((vec![same.clone()], index.pages.get(same.slot()).queue));
        }
        let queue = index.queues.enter(key.hash);
        if pages.len() >= self.limits.variants_max {
            index.counters.variants_displaced += 1;
            return Ok((vec![pages[0].clone()], queue));
        }
        Ok((Vec::new(), queue))
    }

    /// The end of every step that may have increased memory use. It forgets changes that are no longer
    /// needed, evicts pages until everything fits (`newcomer` last), releases the lock, and frees the pages
    /// that left. If a large page displaces thousands of small ones, the lock is released between batches;
    /// until the end the store exceeds its budget.
    pub(crate) fn finish<'s>(
        &'s self,
        mut index: MutexGuard<'s, Index<P>>,
        newcomer: Option<&Page<P>>,
        mut leaving: RemovedPages<P>,
    ) {
        index.prune();
        index.bury_some();
        loop {
            let keep = newcomer.map_or(NOWHERE, |page| page.slot());
            let has_more = index.evict(&self.shards, keep, &mut leaving);
            drop(index);
            leaving.clear();
            if !has_more {
                return;
            }
            yield_now();
            index = self.lock_as_sweeper();
        }
    }

    /// Locks the index. A sweep that waits for its next batch goes first; otherwise it could take minutes
    /// when many threads compete for the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Index<P>> {
        if self.sweeper_waits.load(Ordering::Relaxed) {
            drop(lock(&self.gate));
        }
        lock(&self.index)
    }

    /// Locks the index for the next batch of a sweep. Threads that arrive now wait at the gate.
    pub(crate) fn lock_as_sweeper(&self) -> MutexGuard<'_, Index<P>> {
        let gate = lock(&self.gate);
        self.sweeper_waits.store(true, Ordering::Relaxed);
        let index = lock(&self.index);
        self.sweeper_waits.store(false, Ordering::Relaxed);
        drop(gate);
        index
    }

    /// Advances the clock and returns the number of a change or a settlement. Under the index lock.
    pub(crate) fn next_number(&self, index: &mut Index<P>) -> Number {
        index.clock = Number(index.clock.0 + 1);
        self.number.store(index.clock.0, Ordering::Release);
        index.clock
    }
}

impl<P: Payload> Registry for StoreInner<P> {
    fn release(&self, lease: Number) {
        let Some(mut index) = lock_to_release(&self.index) else { return };
        index.leases.give_back(lease);
        index.prune();
        index.bury_some();
    }

    fn abandon(&self, ids: Vec<Id>) {
        let Some(mut index) = lock_to_release(&self.index) else { return };
        index.counters.abandoned += 1;
        for id in ids {
            *index.abandoned.entry(id).or_insert(0) += 1;
        }
    }

    fn settle(&self, ids: &[Id]) -> Number {
        let mut index = self.lock();
        let number = self.next_number(&mut index);
        for id in ids {
            index.settle(*id, 1);
        }
        index.counters.settled += 1;
        self.finish(index, None, RemovedPages::new());
        number
    }
}

impl<P> Clone for Store<P> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<P> fmt::Debug for Store<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
