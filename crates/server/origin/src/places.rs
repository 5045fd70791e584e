//! Limits the concurrent requests at an origin, and the length and duration of the queue for them.
//! Each request holds a permit (a "place"), which is released when it is dropped. Which waiter gets the
//! next place, and which is deferred, is decided by [`MissQueue`]; here is the waiting.
//!
//! The queue is behind one lock, which is held for a pick and never across an `await`. A permit is given
//! to a waiter by moving it through the waiter's channel, after the lock was released:
//!
//! | interleaving | what happens |
//! |---|---|
//! | the client disconnects while its request waits | [`QueuePosition`] is dropped, and leaves the queue: it is never selected |
//! | … after it was selected, before the permit is in the channel | the channel returns the permit to its sender, who drops it: the next is selected |
//! | … when the permit is in the channel | the receiver is dropped with the permit in it: the next is selected |
//! | the longest wait ends when the waiter was just selected | the queue does not have it any more ([`Deferral::Gone`]): it takes the permit from the channel |
//! | … a place that was reserved is free for it, and no request has come since | it is selected instead ([`QueuePosition::defer`]); between that lock and the next, others may select, defer or raise it: as above |
//! | it gives way to another waiter of a full queue | its sender is dropped: it is deferred, or if its kind never is, refused |
//! | a follower raises its leader before the leader waits | the leader enters with the raised level: the level and the position are behind one lock |
//! | … while it waits | its position changes, and it is selected if a reserved place is free for it now |
//! | … after it was selected, deferred, or has left | the queue does not know its number any more: nothing happens |
//! | overload begins or ends under the lock | it is logged after the lock was released, and that of the level, too ([`OverloadLog`]) |
//! | a request enters while the permit of another is on its way | the place is counted since the selection, so it cannot be taken |
//! | several fragments of a page are its first | one after the other under the lock: one that is deferred defers the page, even if the next begins it |
//!
//! A lease is taken before its request waits here, and kept while it waits, for at most
//! `limits.origin_queue_timeout`.

mod figures;

pub use figures::PlacesFigures;

use crate::admission::{Admission, OriginPermit};
use crate::upload::Room;
use config::{Config, Limits, MissesMode};
use event_log::Seldom;
use http_cache::Failure;
use miss_control::{
    BusiestGroup, ClientLevel, Deferral, HeldPlace, Miss, MissKind, MissOrder, MissOutlook,
    MissQueue, MissReport, OverloadChange, QueueEntry, QueueLimits, WaitCounts, WaiterId,
};
use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::limit_hits::{Limit, LimitHits};
use tokio::sync::Notify;
use tokio::sync::oneshot::{self, Receiver, Sender, error::RecvError};
use tokio::time::{Instant, timeout};

/// The fraction (1/`ROOM_SHARE`) of the page budget that content of waiting requests may use.
const ROOM_SHARE: usize = 16;

/// How long a request waits before a response that only waits for its client has to release its permit.
/// Most pages take less time, and clients wait longer.
const NEEDED_AFTER: Duration = Duration::from_secs(1);

/// The interval at which the notification is repeated.
const NEEDED_AGAIN: Duration = Duration::from_millis(100);

/// The concurrent requests at one origin, and the queue for them.
pub struct Places {
    /// The number of concurrent requests that are allowed.
    pub count: usize,
    line: Arc<OriginLine>,
    timeout: Duration,
    /// The number of requests that have waited for more than [`NEEDED_AFTER`].
    impatient: AtomicUsize,
    /// Notified repeatedly for each of them, because at first no response may wait in [`Places::needed`].
    needed: Notify,
    /// The limits that were reached at this origin.
    pub limit_hits: Arc<LimitHits>,
    /// The memory for content that is collected before its request is sent.
    pub room: Arc<Room>,
    /// Limits how often it is logged that the origin cannot be reached: once a minute.
    refusals: Seldom,
    begun: Instant,
}

impl Places {
    /// Allows `count` concurrent requests, and a queue as in the configuration. Under overload, unknown
    /// clients get at most `unknown` of them.
    pub fn new(count: usize, unknown: usize, config: &Config) -> Places {
        let queue = QueueLimits::new(count, config.limits.origin_queue, unknown);
        Places::with(queue, &config.limits, (config.misses.mode, config.memory_bytes))
    }

    fn with(queue: QueueLimits, limits: &Limits, (mode, memory): (MissesMode, usize)) -> Places {
        Places {
            count: queue.places,
            line: Arc::new(OriginLine::new(queue, mode)),
            timeout: limits.origin_queue_timeout,
            impatient: AtomicUsize::new(0),
            needed: Notify::new(),
            limit_hits: Arc::default(),
            room: Arc::new(Room::new(limits.body_ahead, memory / ROOM_SHARE)),
            refusals: Seldom::once_in(Duration::from_secs(60)),
            begun: Instant::now(),
        }
    }

    /// Whether it is to be logged that the origin cannot be reached.
    pub(crate) fn is_refusal_due(&self) -> bool {
        self.refusals.is_due(self.begun.elapsed())
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// [`Failure::Overloaded`] if the queue is full or the wait was too long, [`Failure::Deferred`] if
    /// other requests come first.
    pub(crate) async fn enter(&self, admission: &Admission) -> Result<OriginPermit, Failure> {
        let (position, mut receiver, longest) = match self.line.enter(admission) {
            Arrival::Permit(permit) => return Ok(permit),
            Arrival::Full => {
                self.limit_hits.note(Limit::OriginConnections);
                self.limit_hits.note(Limit::OriginQueue);
                return Err(Failure::Overloaded);
            }
            Arrival::Deferred => {
                self.limit_hits.note(Limit::OriginConnections);
                return Err(self.line.deferred(admission));
            }
            Arrival::Waits { position, receiver, longest } => (position, receiver, longest),
        };
        self.limit_hits.note(Limit::OriginConnections);
        let mut waiting = pin!(self.wait(&mut receiver));
        let longest = longest.filter(|longest| *longest < self.timeout);
        if let Some(longest) = longest {
            if let Ok(given) = timeout(longest, &mut waiting).await {
                return given.map_err(|_| self.gave_way(admission));
            }
            match position.defer() {
                Deferral::Deferred(_) => return Err(self.line.deferred(admission)),
                Deferral::Gone => {
                    return waiting.await.map_err(|_| self.gave_way(admission));
                }
                Deferral::Stays => {}
            }
        }
        let waited = longest.unwrap_or_default();
        let given = self.until_timeout(waiting, position, waited).await?;
        given.map_err(|_| self.gave_way(admission))
    }

    /// The failure of a request that gave way to another one of a full queue. If its kind is never deferred, the queue
    /// is full for it.
    fn gave_way(&self, admission: &Admission) -> Failure {
        if admission.group.kind.may_be_deferred() {
            return self.line.deferred(admission);
        }
        self.limit_hits.note(Limit::OriginQueue);
        Failure::Overloaded
    }

    /// Waits until no request may wait any longer. `waited` is how long it has waited already.
    async fn until_timeout(
        &self,
        mut waiting: Pin<&mut impl Future<Output = Result<OriginPermit, RecvError>>>,
        position: QueuePosition,
        waited: Duration,
    ) -> Result<Result<OriginPermit, RecvError>, Failure> {
        match timeout(self.timeout.saturating_sub(waited), &mut waiting).await {
            Ok(given) => Ok(given),
            Err(_) if position.leave_late() => {
                self.limit_hits.note(Limit::OriginQueueTimeout);
                Err(Failure::Overloaded)
            }
            // It was selected just now.
            Err(_) => Ok(waiting.await),
        }
    }

    /// Gives a permit if two are free and no request waits; never waits. Afterwards one is still free for a client.
    ///
    /// | interleaving | what happens |
    /// |---|---|
    /// | two such requests while two permits are free | the second sees one free, and gets none: check and permit are one step under the lock |
    /// | a client enters between check and permit | it cannot: it needs the same lock, and gets the other permit afterwards |
    /// | a client waits whose permit is on its way | the permit is counted since the selection: it is not free |
    /// | the permit is dropped, also by a cancelled task | it is released like any other, and the next waiter is selected |
    pub(crate) fn enter_if_two_are_free(&self, admission: &Admission) -> Option<OriginPermit> {
        let place = self.line.lock().enter_if_free(admission.group, 2)?;
        Some(OriginPermit::of_comparison(self.line.clone(), place))
    }

    async fn wait(&self, receiver: &mut Receiver<OriginPermit>) -> Result<OriginPermit, RecvError> {
        if let Ok(given) = timeout(NEEDED_AFTER, &mut *receiver).await {
            return given;
        }
        let _impatient = CountGuard::enter(&self.impatient);
        loop {
            // Without new requests, this is what notices that overload has begun, or has ended: then places are
            // free that were reserved.
            let queue = self.line.lock();
            drop(self.line.hand_over(queue));
            self.needed.notify_one();
            if let Ok(given) = timeout(NEEDED_AGAIN, &mut *receiver).await {
                return given;
            }
        }
    }

    /// Completes when a request has waited for a permit for more than `NEEDED_AFTER`. Called by
    /// responses that hold a permit only because their client is slow; the one that has waited here
    /// longest is notified.
    pub async fn needed(&self) {
        loop {
            self.needed.notified().await;
            // The notification may be obsolete: its request may no longer wait.
            if self.impatient.load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }

    /// Uses another order from now on, because the configuration was read again.
    pub fn set_mode(&self, mode: MissesMode) {
        self.line.is_off.store(mode == MissesMode::Off, Ordering::Relaxed);
        let mut queue = self.line.lock();
        queue.set_order(order_of(mode), mode != MissesMode::Off);
        drop(self.line.hand_over(queue));
    }

    /// The number of requests at the origin now.
    pub fn taken(&self) -> usize {
        self.line.lock().busy()
    }

    /// Whether a permit is free for background work: no request waits for one, and requests are not rationed. The
    /// result is a snapshot.
    pub fn is_one_to_spare(&self) -> bool {
        self.line.lock().has_one_to_spare()
    }

    /// The result for a request that would enter now.
    pub fn outlook(&self, miss: &Miss) -> MissOutlook {
        self.line.lock().outlook(miss)
    }

    /// The number of requests that wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.line.lock().waiting()
    }

    /// The load of the origin by groups, networks and user agents.
    pub fn report(&self) -> MissReport {
        self.line.report().clone()
    }

    /// The group with the most requests, with advice; none before the first request.
    pub fn busiest(&self) -> Option<BusiestGroup> {
        self.line.busiest()
    }
}

fn order_of(mode: MissesMode) -> MissOrder {
    match mode {
        MissesMode::Off | MissesMode::Observe => MissOrder::Arrival,
        MissesMode::Protect => MissOrder::Rationed,
    }
}

/// The result of entering.
enum Arrival {
    Permit(OriginPermit),
    Waits { position: QueuePosition, receiver: Receiver<OriginPermit>, longest: Option<Duration> },
    Full,
    Deferred,
}

/// The queue of one origin, as its permits and waiters share it.
#[derive(Debug)]
pub(crate) struct OriginLine {
    queue: Mutex<MissQueue<Sender<OriginPermit>>>,
    /// Whether overload is neither noticed nor reported (`misses.mode = "off"`).
    is_off: AtomicBool,
    started: Instant,
    report: Mutex<MissReport>,
    waited: AtomicU64,
    deferred: AtomicU64,
    /// How long the overloads took that have ended, in milliseconds.
    overload_ms: AtomicU64,
    busy_us: [AtomicU64; ClientLevel::ALL.len()],
    comparison_us: AtomicU64,
}

impl OriginLine {
    fn new(limits: QueueLimits, mode: MissesMode) -> OriginLine {
        OriginLine {
            queue: Mutex::new(MissQueue::new(limits, order_of(mode))),
            is_off: AtomicBool::new(mode == MissesMode::Off),
            started: Instant::now(),
            report: Mutex::default(),
            waited: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            overload_ms: AtomicU64::new(0),
            busy_us: Default::default(),
            comparison_us: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Locks the queue, and brings its overload up to date.
    fn lock(self: &Arc<OriginLine>) -> LockedQueue<'_> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = LockedQueue { queue, line: self, log: OverloadLog(None) };
        locked.note_time();
        locked
    }

    fn deferred(&self, admission: &Admission) -> Failure {
        if admission.page.as_ref().is_none_or(|page| page.defer()) {
            self.deferred.fetch_add(1, Ordering::Relaxed);
            self.report().note_deferred(admission.group);
        }
        Failure::Deferred
    }

    /// See [`Places::busiest`]. No other lock is held: the order is read before the report.
    fn busiest(self: &Arc<OriginLine>) -> Option<BusiestGroup> {
        let queue = self.lock();
        let (order, is_overloaded) = (queue.order(), queue.is_overloaded());
        drop(queue);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let waits = WaitCounts {
            waited: count(&self.waited),
            deferred: count(&self.deferred),
            was_overloaded: is_overloaded || count(&self.overload_ms) > 0,
        };
        self.report().busiest(order, waits)
    }

    fn report(&self) -> MutexGuard<'_, MissReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<OriginLine>, admission: &Admission) -> Arrival {
        if !self.is_off.load(Ordering::Relaxed) {
            let (group, agent) = (admission.group, admission.agent.as_deref());
            self.report().note_request(group, admission.network, agent, self.now());
        }
        // Under the lock of the level, so that a follower raises either it or the waiter.
        let (arrival, _log) = admission.level.enter(|(level, credit), waits| {
            let miss = Miss { level, credit, group: admission.group, address: admission.address };
            let (mut channel, mut gives_way) = (None, None);
            let handle = || {
                let (sender, receiver) = oneshot::channel();
                channel = Some(receiver);
                sender
            };
            let mut queue = self.lock();
            if let Some(page) = admission.page.as_ref().filter(|page| !page.has_begun()) {
                let mut of_page = miss;
                of_page.group.kind = MissKind::Page;
                if queue.outlook(&of_page) == MissOutlook::Deferred {
                    return (Arrival::Deferred, self.hand_over(queue));
                }
                page.begin();
            }
            let entry = queue.enter(miss, handle, &mut gives_way);
            // This notes that a request waits from now on. The waiter that gave way is notified by
            // the end of its channel.
            queue.note_time();
            let log = self.hand_over(queue);
            drop(gives_way);
            let arrival = match entry {
                QueueEntry::Place(place) => Arrival::Permit(OriginPermit::new(self.clone(), place)),
                QueueEntry::Full => Arrival::Full,
                QueueEntry::Deferred => Arrival::Deferred,
                QueueEntry::Waits(id, longest) => {
                    self.waited.fetch_add(1, Ordering::Relaxed);
                    *waits = Some((self.clone(), id));
                    let receiver = channel.expect("made for each waiter");
                    let position = QueuePosition { line: self.clone(), id };
                    Arrival::Waits { position, receiver, longest }
                }
            };
            (arrival, log)
        });
        arrival
    }

    /// Gives all places that are free to waiters. The lock is released before they are notified. Returns the
    /// message for the log, because the caller may hold another lock.
    fn hand_over(self: &Arc<OriginLine>, mut queue: LockedQueue<'_>) -> OverloadLog {
        let mut given = Vec::new();
        while let Some((waiter, place)) = queue.give() {
            given.push((waiter, OriginPermit::new(self.clone(), place)));
        }
        if !given.is_empty() {
            queue.note_time();
        }
        let log = OverloadLog(queue.log.0.take());
        drop(queue);
        for (waiter, permit) in given {
            // A waiter that is gone returns the permit, whose end selects the next one.
            drop(waiter.send(permit));
        }
        log
    }

    /// Takes back the place of a permit that has ended (`is_own`: of a comparison), and gives it to the next waiter.
    pub(crate) fn release(self: &Arc<OriginLine>, place: HeldPlace, took: Duration, is_own: bool) {
        if !self.is_off.load(Ordering::Relaxed) {
            self.report().note_busy(place.group, took);
        }
        let busy = if is_own { &self.comparison_us } else { &self.busy_us[place.level as usize] };
        busy.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
        let mut queue = self.lock();
        queue.release(place, took);
        drop(self.hand_over(queue));
    }

    /// Raises a waiter to a level and credit. Returns whether it was raised. The result is dropped when no lock is held.
    #[must_use]
    pub(crate) fn raise(
        self: &Arc<OriginLine>,
        id: WaiterId,
        rank: (ClientLevel, u8),
    ) -> (bool, OverloadLog) {
        let mut queue = self.lock();
        let is_raised = queue.raise(id, rank);
        (is_raised, self.hand_over(queue))
    }
}

/// The locked queue. Its fields are dropped in their order: the lock is released before anything is logged.
struct LockedQueue<'a> {
    queue: MutexGuard<'a, MissQueue<Sender<OriginPermit>>>,
    line: &'a Arc<OriginLine>,
    log: OverloadLog,
}

impl LockedQueue<'_> {
    /// Brings overload up to date.
    fn note_time(&mut self) {
        if self.line.is_off.load(Ordering::Relaxed) {
            return;
        }
        let Some(change) = self.queue.note_time(self.line.now()) else { return };
        if let OverloadChange::Ended(lasted) = change {
            self.line.overload_ms.fetch_add(lasted.as_millis() as u64, Ordering::Relaxed);
        }
        let (line, waiting) = (self.line.clone(), self.queue.waiting());
        self.log = OverloadLog(Some(OverloadEvent { change, waiting, line }));
    }
}

impl Deref for LockedQueue<'_> {
    type Target = MissQueue<Sender<OriginPermit>>;

    fn deref(&self) -> &Self::Target {
        &self.queue
    }
}

impl DerefMut for LockedQueue<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.queue
    }
}

/// An overload that has begun or ended, which is logged when this is dropped.
#[derive(Debug)]
pub(crate) struct OverloadLog(Option<OverloadEvent>);

#[derive(Debug)]
struct OverloadEvent {
    change: OverloadChange,
    waiting: usize,
    line: Arc<OriginLine>,
}

impl Drop for OverloadLog {
    fn drop(&mut self) {
        let Some(event) = self.0.take() else { return };
        if let OverloadChange::Ended(lasted) = event.change {
            tracing::info!(event = "misses-overload-ended", seconds = lasted.as_secs());
            return;
        }
        let busiest = event.line.busiest().unwrap_or_default();
        let BusiestGroup { group, share, time_share, seconds, networks, agents, advice } = busiest;
        let waiting = event.waiting;
        tracing::warn!(
            event = "misses-overload-began",
            group,
            share,
            time_share,
            seconds,
            networks,
            agents,
            waiting,
            hint = advice
        );
    }
}

/// The position of a waiter in the queue, which it leaves when this is dropped.
struct QueuePosition {
    line: Arc<OriginLine>,
    id: WaiterId,
}

impl QueuePosition {
    /// Defers the waiter, unless it gets a place now: places that were reserved may have become free since the last
    /// request.
    fn defer(&self) -> Deferral<Sender<OriginPermit>> {
        self.hand_over();
        self.line.lock().defer(self.id)
    }

    /// Leaves the queue at the end of its time, unless it gets a place now. `false` if it was selected or deferred before.
    fn leave_late(&self) -> bool {
        self.hand_over();
        self.leave()
    }

    fn hand_over(&self) {
        let queue = self.line.lock();
        drop(self.line.hand_over(queue));
    }

    /// Leaves the queue. `false` if it was selected or deferred before.
    fn leave(&self) -> bool {
        self.line.lock().leave(self.id).is_some()
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Increments a counter until it is dropped.
struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    fn enter(count: &'a AtomicUsize) -> CountGuard<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        CountGuard(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
