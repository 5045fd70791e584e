//! Collapse: concurrent requests for one page share one render (rule 2).
//!
//! A request that found no page takes a [`Turn`]: it leads a render, follows the one in progress, or
//! renders alone. When the dependencies of the render are known, a follower may be refused. It then takes
//! its turn *again* and joins only a render that began after the request arrived. Such a render sees what
//! the request would have seen itself, so it may be shared whatever changes. Each request therefore waits
//! for at most two renders, at any rate of changes, even while a change is unsettled.
//!
//! Locks: 16 stripes by key hash guard the table. Order: a stripe, then the store's locks, never the
//! reverse, because a leader takes its lease while it holds the stripe. The caller implements the waiting:
//! the type `F`.

use crate::expiring::ExpiringKeys;
use crate::lease::{Lease, Number};
use crate::names::Dependencies;
use crate::page::{Key, KeyBuf, Payload};
use crate::refused::StoreRefusal;
use crate::store::Store;
use crate::sync::{Mutex, lock, lock_to_release};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(not(feature = "loom"))]
const STRIPES: usize = 16;
#[cfg(feature = "loom")]
const STRIPES: usize = 2;

/// The limits of collapsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLimits {
    /// The maximum number of requests that wait for one render; further requests render alone.
    pub followers_max: usize,
    /// The number of keys remembered as not shareable (16 bytes each).
    pub alone_max: usize,
}

impl Default for FillLimits {
    fn default() -> Self {
        Self { followers_max: 10_000, alone_max: 16_384 }
    }
}

/// The renders in progress. A handle: clones share one table.
pub struct Fills<F> {
    table: Arc<Table<F>>,
}

struct Table<F> {
    limits: FillLimits,
    stripes: Box<[Mutex<Stripe<F>>]>,
    /// The number of the last render that was entered.
    last: AtomicU64,
}

struct Stripe<F> {
    /// By key hash. A key with the same hash replaces the entry; the followers of the old entry keep their
    /// render.
    newest: HashMap<u64, Arc<Fill<F>>>,
    alone: ExpiringKeys,
    stats: FillStats,
}

struct Fill<F> {
    key: KeyBuf,
    number: u64,
    lease: Lease,
    followers: AtomicUsize,
    waiter: F,
}

/// The role of a request that found no page.
#[derive(Debug)]
pub enum Turn<F> {
    /// The request renders for itself and for its followers.
    Lead(Leader<F>),
    /// The request waits for a render in progress.
    Follow(Follower<F>),
    /// The request renders for itself alone.
    Alone(SoloRender),
}

/// The right to render alone. The render may be stored with its lease, but no request waits for it.
#[derive(Debug)]
pub struct SoloRender {
    /// The lease of the render.
    pub lease: Lease,
    /// The reason why the request renders alone.
    pub why: SoloReason,
}

/// The reason why a request renders alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoloReason {
    /// The last render of the page could not be shared (hit-for-miss).
    NotShareable,
    /// The render in progress has the maximum number of followers.
    TooManyFollowers,
}

impl SoloReason {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotShareable => "not-shareable",
            Self::TooManyFollowers => "too-many-followers",
        }
    }
}

/// The arrival of a follower's request, relative to the render that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The request may have arrived during the render; its arrival stamp decides.
    Perhaps(Number),
    /// The request arrived before the render began.
    Before,
}

/// Counts of the roles of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillStats {
    /// The number of renders in progress that can be joined.
    pub in_progress: usize,
    /// Requests that led a render.
    pub led: u64,
    /// Requests that followed a render.
    pub followed: u64,
    /// Requests that rendered alone because the page was not shareable (hit-for-miss).
    pub alone_not_shareable: u64,
    /// Requests that rendered alone because the render had too many followers.
    pub alone_too_many_followers: u64,
}

impl<F> Fills<F> {
    /// Creates an empty table with these limits.
    pub fn new(limits: FillLimits) -> Self {
        let stripe = || Stripe {
            newest: HashMap::new(),
            alone: ExpiringKeys::new(limits.alone_max / STRIPES),
            stats: FillStats::default(),
        };
        let stripes = (0..STRIPES).map(|_| Mutex::new(stripe())).collect();
        Self { table: Arc::new(Table { limits, stripes, last: AtomicU64::new(0) }) }
    }

    /// The turn of a request for `key` that arrived at `arrival` and found no usable page.
    ///
    /// `now_ms` is the time of the caller's clock in milliseconds. If the request leads, `waiter` creates
    /// the object on which its followers wait. `waiter` runs with a stripe locked and must not call this
    /// table or the store. A leader must look the page up once more before it renders, because the page may
    /// have been stored in between.
    pub fn turn<P: Payload>(
        &self,
        store: &Store<P>,
        key: Key<'_>,
        arrival: Number,
        now_ms: u64,
        waiter: impl FnOnce() -> F,
    ) -> Turn<F> {
        let entering = Entering { key, newer_than: 0, arrived: Arrival::Perhaps(arrival), now_ms };
        self.enter(store, &entering, waiter)
    }

    /// Joins the render of `key` in progress, for a request that cannot lead because others could not use
    /// its render. Returns `None` if there is no render to join; then take a [`turn`](Fills::turn) under
    /// another key. `now_ms` is the time of the caller's clock in milliseconds.
    pub fn join(&self, key: Key<'_>, arrival: Number, now_ms: u64) -> Option<Follower<F>> {
        let entering = Entering { key, newer_than: 0, arrived: Arrival::Perhaps(arrival), now_ms };
        let mut stripe = lock(self.table.stripe(key.hash));
        if stripe.alone.contains(key.hash, now_ms) {
            return None;
        }
        stripe.follow(&entering, self.table.limits.followers_max)?.ok()
    }

    /// The next turn of a request whose follower was refused, or whose leader ended without a response. It
    /// never joins the same render or an older one.
    pub fn again<P: Payload>(
        &self,
        store: &Store<P>,
        refused: Follower<F>,
        now_ms: u64,
        waiter: impl FnOnce() -> F,
    ) -> Turn<F> {
        let key = refused.fill.key.as_key();
        let newer_than = refused.fill.number;
        let entering = Entering { key, newer_than, arrived: Arrival::Before, now_ms };
        self.enter(store, &entering, waiter)
    }

    fn enter<P: Payload>(
        &self,
        store: &Store<P>,
        entering: &Entering<'_>,
        waiter: impl FnOnce() -> F,
    ) -> Turn<F> {
        let key = entering.key;
        let mut stripe = lock(self.table.stripe(key.hash));
        if stripe.alone.contains(key.hash, entering.now_ms) {
            stripe.stats.alone_not_shareable += 1;
            drop(stripe);
            return Turn::Alone(SoloRender { lease: store.lease(), why: SoloReason::NotShareable });
        }
        match stripe.follow(entering, self.table.limits.followers_max) {
            Some(Ok(follower)) => return Turn::Follow(follower),
            Some(Err(why)) => {
                stripe.stats.alone_too_many_followers += 1;
                drop(stripe);
                return Turn::Alone(SoloRender { lease: store.lease(), why });
            }
            None => {}
        }
        let number = self.table.last.fetch_add(1, Ordering::Relaxed) + 1;
        let followers = AtomicUsize::new(0);
        let lease = store.lease();
        let fill = Fill { key: key.to_buf(), number, lease, followers, waiter: waiter() };
        let fill = Arc::new(fill);
        let displaced = stripe.newest.insert(key.hash, Arc::clone(&fill));
        stripe.stats.led += 1;
        drop(stripe);
        drop(displaced);
        Turn::Lead(Leader { fill, table: Arc::clone(&self.table) })
    }

    /// The number of followers of the render of `key` in progress; `None` if there is no such render. For
    /// display only: the render may end at any moment.
    pub fn followers(&self, key: Key<'_>) -> Option<usize> {
        let stripe = lock(self.table.stripe(key.hash));
        let fill = stripe.newest.get(&key.hash).filter(|fill| fill.key.as_key() == key)?;
        Some(fill.followers.load(Ordering::Relaxed))
    }

    /// Marks the page as not shareable (hit-for-miss) until `until_ms` on the caller's clock, as
    /// [`Leader::not_shareable`] does. For a follower that has waited in vain.
    pub fn not_shareable(&self, key: Key<'_>, until_ms: u64) {
        lock(self.table.stripe(key.hash)).alone.add(key.hash, until_ms);
    }

    /// Removes the hit-for-miss mark of the page, because a render of it was stored.
    pub fn shareable(&self, key: Key<'_>) {
        lock(self.table.stripe(key.hash)).alone.remove(key.hash);
    }

    /// Counts of the roles of requests, and the number of renders in progress.
    pub fn stats(&self) -> FillStats {
        let mut all = FillStats::default();
        for stripe in &self.table.stripes {
            let stripe = lock(stripe);
            all.in_progress += stripe.newest.len();
            all.led += stripe.stats.led;
            all.followed += stripe.stats.followed;
            all.alone_not_shareable += stripe.stats.alone_not_shareable;
            all.alone_too_many_followers += stripe.stats.alone_too_many_followers;
        }
        all
    }
}

/// A request that takes its turn.
struct Entering<'k> {
    key: Key<'k>,
    newer_than: u64,
    arrived: Arrival,
    now_ms: u64,
}

impl Entering<'_> {
    fn may_follow<F>(&self, fill: &Fill<F>) -> bool {
        fill.number > self.newer_than && fill.key.as_key() == self.key
    }
}

impl<F> Stripe<F> {
    /// Follows the render in progress; `None` if there is no render that the request may follow.
    fn follow(
        &mut self,
        entering: &Entering<'_>,
        followers_max: usize,
    ) -> Option<Result<Follower<F>, SoloReason>> {
        let fill = self.newest.get(&entering.key.hash).filter(|fill| entering.may_follow(fill))?;
        if fill.followers.load(Ordering::Relaxed) >= followers_max {
            return Some(Err(SoloReason::TooManyFollowers));
        }
        fill.followers.fetch_add(1, Ordering::Relaxed);
        self.stats.followed += 1;
        Some(Ok(Follower { fill: Arc::clone(fill), arrived: entering.arrived }))
    }
}

/// The right and the duty to render for others. Dropping it removes the render from the table, also after a
/// panic or a cancelled task. Store the page before that. Followers are notified of the end through `F`.
pub struct Leader<F> {
    fill: Arc<Fill<F>>,
    table: Arc<Table<F>>,
}

impl<F> Leader<F> {
    /// The lease of the render. It is released when the leader and all followers are dropped.
    pub fn lease(&self) -> &Lease {
        &self.fill.lease
    }

    /// The object on which the followers wait.
    pub fn waiter(&self) -> &F {
        &self.fill.waiter
    }

    /// The key of the page.
    pub fn key(&self) -> Key<'_> {
        self.fill.key.as_key()
    }

    /// The current number of followers.
    pub fn followers(&self) -> usize {
        self.fill.followers.load(Ordering::Relaxed)
    }

    /// Marks the page as not shareable (hit-for-miss) until `until_ms` on the caller's clock. Call it
    /// before the followers are notified, so that they do not queue behind one another.
    pub fn not_shareable(&self, until_ms: u64) {
        let hash = self.key().hash;
        lock(self.table.stripe(hash)).alone.add(hash, until_ms);
    }
}

impl<F> Drop for Leader<F> {
    fn drop(&mut self) {
        let hash = self.key().hash;
        let Some(mut stripe) = lock_to_release(self.table.stripe(hash)) else { return };
        // A refused follower may have entered a newer render in its place.
        if stripe.newest.get(&hash).is_some_and(|fill| Arc::ptr_eq(fill, &self.fill)) {
            stripe.newest.remove(&hash);
        }
    }
}

/// The right to wait for a render. Dropping it ends the wait.
pub struct Follower<F> {
    fill: Arc<Fill<F>>,
    arrived: Arrival,
}

impl<F> Follower<F> {
    /// The key of the render that it waits for.
    pub fn key(&self) -> Key<'_> {
        self.fill.key.as_key()
    }

    /// The object on which to wait for the leader's result.
    pub fn waiter(&self) -> &F {
        &self.fill.waiter
    }

    /// The lease of the render.
    pub fn lease(&self) -> Number {
        self.fill.lease.number()
    }

    /// The arrival of the request, relative to the render.
    pub fn arrived(&self) -> Arrival {
        self.arrived
    }

    /// Rule 2: whether the render may answer this request. Call it once the dependencies of the render are
    /// known.
    ///
    /// # Errors
    /// The reason why it may not; take a turn [`again`](Fills::again).
    pub fn may_share<P: Payload>(
        &self,
        store: &Store<P>,
        dependencies: &Dependencies,
    ) -> Result<(), StoreRefusal> {
        match self.arrived {
            Arrival::Before => Ok(()),
            Arrival::Perhaps(arrival) => store.may_share(self.lease(), arrival, dependencies),
        }
    }
}

impl<F> Drop for Follower<F> {
    fn drop(&mut self) {
        self.fill.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<F> Table<F> {
    fn stripe(&self, hash: u64) -> &Mutex<Stripe<F>> {
        &self.stripes[(hash >> 48) as usize % STRIPES]
    }
}

impl<F> Clone for Fills<F> {
    fn clone(&self) -> Self {
        Self { table: Arc::clone(&self.table) }
    }
}

impl<F> fmt::Debug for Fills<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fills").field("limits", &self.table.limits).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Leader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader").field("lease", &self.fill.lease).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Follower<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Follower");
        out.field("lease", &self.lease()).field("arrived", &self.arrived).finish_non_exhaustive()
    }
}
