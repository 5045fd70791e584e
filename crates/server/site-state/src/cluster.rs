//! The interface to the other nodes of a cluster. Each change of this node is published to them. A
//! write is acknowledged when all of them have applied it, or the time limit has passed.
//!
//! Numbers count the changes that this node has published, from 1. The implementation is in
//! `cluster/src/peers.rs`.

use crate::journal::Snapshots;
use crate::propagation::Propagation;
use page_store::{ChangeTarget, Strength};
use std::pin::Pin;

/// The other nodes of the cluster.
pub trait Cluster: Send + Sync {
    /// Publishes a change that was applied here. Does not wait.
    fn publish(&self, targets: &[ChangeTarget<'_>], strength: Strength);

    /// The number of the last change that was published; 0: none.
    fn published(&self) -> u64;

    /// Waits until all nodes have applied the changes that were published after number `before`, at
    /// most for the configured time. A change that has not even been sent by then is recorded in
    /// the journal, if there is one.
    fn applied<'c>(
        &'c self,
        before: u64,
        journal: Option<&'c Snapshots>,
    ) -> Pin<Box<dyn Future<Output = Propagation> + Send + 'c>>;

    /// Returns the host name of the node that publishes as `process`, as last seen. `None`: the node
    /// is unknown, or announces none.
    fn host_name(&self, process: &str) -> Option<Box<str>>;

    /// Records in the journal that a change is not sent yet, if there is one.
    fn mark(&self, journal: Option<&Snapshots>);

    /// Returns whether writes have to be refused, because their changes could not be published
    /// (`cluster.unpublished = "refuse"`).
    fn refuses_writes(&self) -> bool;
}
