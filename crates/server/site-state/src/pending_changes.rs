//! Operations in flight that may announce a change. They are requests whose responses may report
//! changes, with a client or without (decision 0031), purges, control calls, and deletions over the
//! memcached port. Each has a [`PendingChange`]; nothing is acknowledged without one.
//!
//! | step | what happens |
//! |---|---|
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
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The flag that no operation may begin any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Counts the operations of a site in flight that may announce a change.
#[derive(Default)]
pub struct PendingChanges(AtomicUsize);

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
pub struct OperationGuard(Arc<PendingChanges>);

impl PendingChanges {
    /// Counts one more operation; `None` if none may begin any more.
    pub fn begin(self: &Arc<PendingChanges>) -> Option<OperationGuard> {
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        // If it may not begin, the drop of `counted` subtracts it again.
        let counted = OperationGuard(self.clone());
        (before & CLOSED == 0).then_some(counted)
    }

    /// The number of operations in flight.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire) & !CLOSED
    }

    /// Lets no further operation begin. Returns the number still in flight; 0: there will be no
    /// further change.
    pub fn close(&self) -> usize {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) & !CLOSED
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
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
}
