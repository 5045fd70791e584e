//! Operations in flight that may announce a change. They are requests whose responses may report
//! changes, with a client or without (decision 0031), purges, control calls, and deletions over the
//! memcached port. Each has a [`PendingChange`]; nothing is acknowledged without one.
//!
//! | step | what happens |
//! |---|---|
//! | a request has content | it arrives as slowly as the client sends it; nothing is in flight, because the origin has nothing |
//! | [`PendingChange::begin`] | the journal records that an operation is in flight |
//! | the operation | its changes are applied ([`Changes`](crate::changes::Changes)) |
//! | [`PendingChange::acknowledge`] | waits for the cluster, bounded; never returns if a successor missed a change |
//!
//! A process that ends waits until none is left and none can begin. Only then may it tell its
//! successor or the snapshot that no further change will follow (decision 0062). Invariant: a
//! change is acknowledged while its `PendingChange` exists, or by the call that consumes it. So
//! after [`PendingChanges::close`] has found none, no change is acknowledged.

use crate::SiteState;
use crate::journal::{Snapshots, WriteInFlight};
use crate::propagation::Propagation;
use std::collections::BTreeSet;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The operations of a site in flight that may announce a change. Each has a number, in the order of their begins.
///
/// Lock: held for a few instructions, and no other lock is taken under it.
#[derive(Default)]
pub struct PendingChanges {
    state: Mutex<InFlightOperations>,
    /// Notified when the oldest operation has ended.
    oldest_ended: Notify,
}

#[derive(Default)]
struct InFlightOperations {
    /// The number of the operation that began last.
    last: u64,
    /// The numbers of those in flight: as many as there are connections and background tasks.
    numbers: BTreeSet<u64>,
    /// Whether no operation may begin any more.
    is_closed: bool,
}

/// A moment between two begins of operations: all up to it have begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationMark(u64);

/// One such operation, in flight until this is dropped. If there are snapshots, their journal
/// records it. After a process was killed with one in flight, the journal may lack changes.
pub struct PendingChange {
    site: Arc<SiteState>,
    _counted: OperationGuard,
    recorded: Option<WriteInFlight>,
    /// The number of changes published to the other nodes when it began.
    published: u64,
}

/// One of the operations that [`PendingChanges`] counts.
pub struct OperationGuard {
    all: Arc<PendingChanges>,
    number: u64,
}

impl PendingChanges {
    /// Counts one more operation; `None` if none may begin any more.
    pub fn begin(self: &Arc<PendingChanges>) -> Option<OperationGuard> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.numbers.insert(number);
        Some(OperationGuard { all: self.clone(), number })
    }

    /// The number of operations in flight.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().numbers.len()
    }

    /// Lets no further operation begin. Returns the number still in flight; 0: there will be no
    /// further change.
    pub fn close(&self) -> usize {
        let mut state = self.lock();
        state.is_closed = true;
        state.numbers.len()
    }

    /// The moment now: every operation that has begun is before it, and every later one after it.
    #[must_use]
    pub fn mark(&self) -> OperationMark {
        OperationMark(self.lock().last)
    }

    /// Waits until all operations before the mark have ended, with no bound. Later ones do not count, so that this
    /// ends under any load.
    ///
    /// | interleaving | what happens |
    /// |---|---|
    /// | the last of them ends between the look and the wait | the wait was enabled before the look, so it is woken |
    /// | one begins after the mark, and ends last | its number is greater: it is not waited for |
    /// | one ends that is not the oldest | nobody is woken; the oldest will wake |
    /// | the task of one is cancelled or panics | its guard is dropped, which ends it |
    pub async fn ended_before(&self, mark: OperationMark) {
        loop {
            let mut ended = pin!(self.oldest_ended.notified());
            ended.as_mut().enable();
            if self.lock().numbers.first().is_none_or(|oldest| *oldest > mark.0) {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, InFlightOperations> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        let was_oldest = state.numbers.first() == Some(&self.number);
        state.numbers.remove(&self.number);
        drop(state);
        if was_oldest {
            self.all.oldest_ended.notify_waiters();
        }
    }
}

impl Drop for PendingChange {
    fn drop(&mut self) {
        // Before it is no longer counted: once none is in flight, the journal is closed.
        drop(self.recorded.take());
    }
}

impl PendingChange {
    /// Begins an operation that may announce a change of this site. If none may begin any more,
    /// this never returns. The connection ends with the process, and nothing was done.
    pub async fn begin(site: &Arc<SiteState>) -> PendingChange {
        match PendingChange::recorded(site, site.snapshots.as_ref()) {
            Some(pending) => pending,
            None => pending().await,
        }
    }

    /// Begins an operation that is executed at once; `None` if none may begin any more. If the
    /// process is killed in between, the change is in this node's journal, or the operation was not
    /// executed. Only other nodes may lack it, so it is recorded only if there are any.
    pub fn begin_at_once(site: &Arc<SiteState>) -> Option<PendingChange> {
        PendingChange::recorded(site, site.snapshots.as_ref().filter(|_| site.cluster.is_some()))
    }

    fn recorded(site: &Arc<SiteState>, journal: Option<&Arc<Snapshots>>) -> Option<PendingChange> {
        let counted = site.pending.begin()?;
        let recorded = journal.map(Snapshots::begin_in_flight);
        let published = site.cluster.as_ref().map_or(0, |cluster| cluster.published());
        Some(PendingChange { site: site.clone(), _counted: counted, recorded, published })
    }

    /// Ends the operation, which may then be acknowledged: the other nodes have applied its
    /// changes, or the time limit has passed. Never returns if the process that has taken over has
    /// missed a change, because then nothing may be acknowledged.
    pub async fn acknowledge(self) -> Propagation {
        self.propagated().await
    }

    /// The same after waiting for the site's databases, with `committed` as the result.
    pub async fn acknowledge_after(self, committed: Propagation) -> Propagation {
        if committed == Propagation::TimedOut {
            self.site.counters.database_late.add();
        }
        committed.and(self.propagated().await)
    }

    async fn propagated(&self) -> Propagation {
        let applied = self.applied_by_cluster().await;
        if self.site.has_lost_change() {
            pending::<()>().await;
        }
        applied
    }

    async fn applied_by_cluster(&self) -> Propagation {
        let Some(cluster) = &self.site.cluster else { return Propagation::NotNeeded };
        let applied = cluster.applied(self.published, self.site.snapshots.as_deref()).await;
        if applied == Propagation::TimedOut {
            self.site.counters.cluster_late.add();
        }
        applied
    }
}

/// One operation over several sites.
pub struct PendingBatch(Vec<PendingChange>);

impl PendingBatch {
    /// Begins an operation that may announce changes of all these sites, as [`PendingChange::begin`].
    pub async fn begin(sites: impl Iterator<Item = &Arc<SiteState>>) -> PendingBatch {
        let mut all = Vec::new();
        for site in sites {
            all.push(PendingChange::begin(site).await);
        }
        PendingBatch(all)
    }

    /// As [`PendingChange::acknowledge`], for all of them.
    pub async fn acknowledge(self) -> Propagation {
        let mut applied = Propagation::NotNeeded;
        for pending in &self.0 {
            applied = applied.and(pending.propagated().await);
        }
        applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[test]
    fn nothing_begins_after_closing() {
        let pending = Arc::new(PendingChanges::default());
        let one = pending.begin().expect("it is open");
        let other = pending.begin().expect("it is open");
        drop(one);
        assert_eq!((pending.count(), pending.close()), (1, 1));
        assert!(pending.begin().is_none());
        drop(other);
        assert_eq!((pending.count(), pending.close()), (0, 0));
        assert!(pending.begin().is_none());
        assert_eq!(pending.count(), 0);
    }

    #[tokio::test]
    async fn only_operations_before_a_mark_are_waited_for() {
        let pending = Arc::new(PendingChanges::default());
        let begin = || pending.begin().expect("it is open");
        pending.ended_before(pending.mark()).await;
        let (first, second) = (begin(), begin());
        let mark = pending.mark();
        let later = begin();
        let mut waits = pin!(pending.ended_before(mark));
        assert!(timeout(Duration::ZERO, waits.as_mut()).await.is_err());
        drop(second);
        let is_over = timeout(Duration::ZERO, waits.as_mut()).await.is_ok();
        assert!(!is_over, "the first is still in flight");
        drop(first);
        waits.await;
        assert_eq!(pending.count(), 1);
        pending.ended_before(mark).await;
        drop(later);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_wait_under_constant_load_ends() {
        let pending = Arc::new(PendingChanges::default());
        let load = {
            let pending = pending.clone();
            tokio::spawn(async move {
                let mut open = std::collections::VecDeque::new();
                loop {
                    open.extend(pending.begin());
                    if open.len() > 3 {
                        open.pop_front();
                    }
                    tokio::task::yield_now().await;
                }
            })
        };
        for _ in 0..200 {
            pending.ended_before(pending.mark()).await;
        }
        load.abort();
        assert!(load.await.is_err_and(|ended| ended.is_cancelled()));
        assert_eq!(pending.count(), 0);
    }
}
