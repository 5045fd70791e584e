//! Collapse: concurrent requests for one page share one render (rule 2).
//!
//! A request that found nothing takes a [`Turn`]: it leads, follows the render in progress, or is alone.
//! A follower that is refused when the render's dependencies are known takes its turn *again*, and then
//! joins only a render that began after the request arrived: what that sees is what the request would have
//! seen itself, so it may be shared whatever changes. Nobody waits for more than two renders, at any rate
//! of changes and while a change is unsettled as well.
//!
//! Locks: 16 stripes by key hash guard the table. Order: a stripe, then the store's (a leader's lease is
//! taken while its stripe is held), never the reverse. Waiting itself is the caller's: `F`.

use crate::alone::AloneKeys;
use crate::lease::{Lease, Number};
use crate::names::Dependencies;
use crate::page::{Key, KeyBuf, Payload};
use crate::refused::Refused;
use crate::store::Store;
use crate::sync::{Mutex, lock, lock_to_release};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[cfg(not(loom))]
const STRIPES: usize = 16;
#[cfg(loom)]
const STRIPES: usize = 2;

/// The bounds of collapsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLimits {
    /// Requests that may wait for one render; more render alone.
    pub followers_max: usize,
    /// Keys remembered as not shareable (16 bytes each).
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
    /// The number of the last render that entered.
    last: AtomicU64,
}

struct Stripe<F> {
    /// By key hash. A key with the same hash displaces the other, whose followers keep what they follow.
    newest: HashMap<u64, Arc<Fill<F>>>,
    alone: AloneKeys,
    stats: FillStats,
}

struct Fill<F> {
    key: KeyBuf,
    number: u64,
    lease: Lease,
    followers: AtomicUsize,
    waiter: F,
}

/// What a request that found no page does.
#[derive(Debug)]
pub enum Turn<F> {
    /// It renders for others, too.
    Lead(Leader<F>),
    /// It waits for a render in progress.
    Follow(Follower<F>),
    /// It renders for itself alone.
    Alone(Alone),
}

/// The right to render alone. The render may be stored with its lease, but nobody waits for it.
#[derive(Debug)]
pub struct Alone {
    /// The render's lease.
    pub lease: Lease,
    /// Why it is alone.
    pub why: Why,
}

/// Why a request renders alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The page was not shareable lately.
    NotShareable,
    /// As many as may follow the render in progress do so already.
    TooManyFollowers,
}

impl Why {
    /// The reason's name as logs and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotShareable => "not-shareable",
            Self::TooManyFollowers => "too-many-followers",
        }
    }
}

/// When a follower's request arrived, as against the render it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Perhaps while the render was running, with this stamp.
    Perhaps(Number),
    /// Certainly before the render began.
    Before,
}

/// How often requests took which turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillStats {
    /// Renders in progress that can be joined.
    pub in_progress: usize,
    /// Requests that led.
    pub led: u64,
    /// Requests that followed.
    pub followed: u64,
    /// Requests that rendered alone because the page was not shareable lately.
    pub alone_not_shareable: u64,
    /// Requests that rendered alone because too many followed.
    pub alone_too_many_followers: u64,
}

impl<F> Fills<F> {
    /// A table without renders.
    pub fn new(limits: FillLimits) -> Self {
        let stripe = || Stripe {
            newest: HashMap::new(),
            alone: AloneKeys::new(limits.alone_max / STRIPES),
            stats: FillStats::default(),
        };
        let stripes = (0..STRIPES).map(|_| Mutex::new(stripe())).collect();
        Self { table: Arc::new(Table { limits, stripes, last: AtomicU64::new(0) }) }
    }

    /// The turn of a request for `key` that arrived at `arrival` and found nothing to use. `now_ms` is the
    /// caller's clock. `waiter` makes what the followers will wait on, if the request leads; it is called
    /// with a stripe locked and must not come back here or to the store.
    ///
    /// Whoever leads looks the page up once more before rendering: it may have been stored since.
    pub fn turn<P: Payload>(
        &self,
        store: &Store<P>,
        key: Key<'_>,
        arrival: Number,
        now_ms: u64,
        waiter: impl FnOnce() -> F,
    ) -> Turn<F> {
        let entering = Entering { key, newer_than: 0, arrived: Arrived::Perhaps(arrival), now_ms };
        self.enter(store, &entering, waiter)
    }

    /// Joins the render of `key` that is in progress, for a request that could not be answered by what it
    /// renders itself for others: it never leads. `None` where there is none to be joined; take a
    /// [`turn`](Fills::turn) under another key.
    pub fn join(&self, key: Key<'_>, arrival: Number, now_ms: u64) -> Option<Follower<F>> {
        let entering = Entering { key, newer_than: 0, arrived: Arrived::Perhaps(arrival), now_ms };
        let mut stripe = lock(self.table.stripe(key.hash));
        if stripe.alone.contains(key.hash, now_ms) {
            return None;
        }
        stripe.follow(&entering, self.table.limits.followers_max)?.ok()
    }

    /// The next turn of a request whose follower was refused, or whose leader went without an answer. It
    /// never joins the same or an older render.
    pub fn again<P: Payload>(
        &self,
        store: &Store<P>,
        refused: Follower<F>,
        now_ms: u64,
        waiter: impl FnOnce() -> F,
    ) -> Turn<F> {
        let key = refused.fill.key.as_key();
        let newer_than = refused.fill.number;
        let entering = Entering { key, newer_than, arrived: Arrived::Before, now_ms };
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
            return Turn::Alone(Alone { lease: store.lease(), why: Why::NotShareable });
        }
        match stripe.follow(entering, self.table.limits.followers_max) {
            Some(Ok(follower)) => return Turn::Follow(follower),
            Some(Err(why)) => {
                stripe.stats.alone_too_many_followers += 1;
                drop(stripe);
                return Turn::Alone(Alone { lease: store.lease(), why });
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

    /// How many requests follow the render of `key` that is in progress; `None` where none is. For people to
    /// read: it may have ended a moment later.
    pub fn followers(&self, key: Key<'_>) -> Option<usize> {
        let stripe = lock(self.table.stripe(key.hash));
        let fill = stripe.newest.get(&key.hash).filter(|fill| fill.key.as_key() == key)?;
        Some(fill.followers.load(Ordering::Relaxed))
    }

    /// Forgets that the page was not shareable: a render of it was stored.
    pub fn shareable(&self, key: Key<'_>) {
        lock(self.table.stripe(key.hash)).alone.remove(key.hash);
    }

    /// How often requests took which turn, and how many renders are in progress.
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

/// A request at the table.
struct Entering<'k> {
    key: Key<'k>,
    newer_than: u64,
    arrived: Arrived,
    now_ms: u64,
}

impl Entering<'_> {
    fn may_follow<F>(&self, fill: &Fill<F>) -> bool {
        fill.number > self.newer_than && fill.key.as_key() == self.key
    }
}

impl<F> Stripe<F> {
    /// Follows the render in progress; `None` where there is none that may be followed.
    fn follow(
        &mut self,
        entering: &Entering<'_>,
        followers_max: usize,
    ) -> Option<Result<Follower<F>, Why>> {
        let fill = self.newest.get(&entering.key.hash).filter(|fill| entering.may_follow(fill))?;
        if fill.followers.load(Ordering::Relaxed) >= followers_max {
            return Some(Err(Why::TooManyFollowers));
        }
        fill.followers.fetch_add(1, Ordering::Relaxed);
        self.stats.followed += 1;
        Some(Ok(Follower { fill: Arc::clone(fill), arrived: entering.arrived }))
    }
}

/// The right and the duty to render for others. Dropping it (also by a panic or a cancelled task) takes the
/// render from the table: store the page first. Followers learn of the end through `F`.
pub struct Leader<F> {
    fill: Arc<Fill<F>>,
    table: Arc<Table<F>>,
}

impl<F> Leader<F> {
    /// The render's lease. It is out until the leader and all followers are gone.
    pub fn lease(&self) -> &Lease {
        &self.fill.lease
    }

    /// What the followers wait on.
    pub fn waiter(&self) -> &F {
        &self.fill.waiter
    }

    /// The page's key.
    pub fn key(&self) -> Key<'_> {
        self.fill.key.as_key()
    }

    /// How many follow at the moment.
    pub fn followers(&self) -> usize {
        self.fill.followers.load(Ordering::Relaxed)
    }

    /// Remembers that the page cannot be shared, until `until_ms` on the caller's clock. To be called before
    /// the followers are told, so that they do not queue behind one another.
    pub fn not_shareable(&self, until_ms: u64) {
        let hash = self.key().hash;
        lock(self.table.stripe(hash)).alone.add(hash, until_ms);
    }
}

impl<F> Drop for Leader<F> {
    fn drop(&mut self) {
        let hash = self.key().hash;
        let Some(mut stripe) = lock_to_release(self.table.stripe(hash)) else { return };
        // A refused follower may have put a newer render in its place.
        if stripe.newest.get(&hash).is_some_and(|fill| Arc::ptr_eq(fill, &self.fill)) {
            stripe.newest.remove(&hash);
        }
    }
}

/// The right to wait for a render. Dropping it gives the place up.
pub struct Follower<F> {
    fill: Arc<Fill<F>>,
    arrived: Arrived,
}

impl<F> Follower<F> {
    /// What to wait on, until the leader's answer.
    pub fn waiter(&self) -> &F {
        &self.fill.waiter
    }

    /// The lease of the render.
    pub fn lease(&self) -> Number {
        self.fill.lease.number()
    }

    /// When the request arrived, as against the render.
    pub fn arrived(&self) -> Arrived {
        self.arrived
    }

    /// Rule 2: whether the render, now that its dependencies are known, may answer this request.
    ///
    /// # Errors
    /// The reason why not; take a turn [`again`](Fills::again).
    pub fn may_share<P: Payload>(
        &self,
        store: &Store<P>,
        dependencies: &Dependencies,
    ) -> Result<(), Refused> {
        match self.arrived {
            Arrived::Before => Ok(()),
            Arrived::Perhaps(arrival) => store.may_share(self.lease(), arrival, dependencies),
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
