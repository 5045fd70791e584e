//! The other nodes of a cluster, for operators: name, state, lag, last contact.
//!
//! The task that publishes changes updates the list at most once in [`UPDATE_EVERY`], and at least
//! every 5 seconds while the stream can be reached. The list has at most [`NODES_MAX`] nodes. Lock:
//! one, around the list; no other lock is taken under it. Not here: the decision for which nodes a
//! write waits (`peer_positions`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two updates of the list.
const UPDATE_EVERY: Duration = Duration::from_secs(1);
/// The most nodes in the list.
const NODES_MAX: usize = 64;

/// Another node of the cluster, as this node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// The identifier of its process.
    pub name: String,
    /// Whether it applies changes.
    pub state: NodeState,
    /// The age of the oldest change that this node has published and that node has not applied;
    /// zero if there is none.
    pub lag: Duration,
    /// When it has last reported a position.
    pub reported: Instant,
}

/// Whether a node of the cluster applies changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It reports its position.
    Connected,
    /// It has not reported its position for so long that it no longer answers from its cache.
    Silent,
    /// It has stopped in an orderly way.
    Stopped,
}

/// The list of the other nodes.
#[derive(Default)]
pub struct NodeList(Mutex<UpdatedNodes>);

#[derive(Default)]
struct UpdatedNodes {
    updated: Option<Instant>,
    nodes: Vec<ClusterNode>,
}

impl NodeList {
    /// Returns the nodes in the order of their names.
    pub fn nodes(&self) -> Vec<ClusterNode> {
        self.lock().nodes.clone()
    }

    /// Replaces the list by `nodes`, if it is old enough.
    pub fn update(&self, now: Instant, nodes: impl FnOnce() -> Vec<ClusterNode>) {
        let mut list = self.lock();
        if list.updated.is_some_and(|updated| now.duration_since(updated) < UPDATE_EVERY) {
            return;
        }
        let mut nodes = nodes();
        // If there are too many, nodes that have stopped are left out first.
        nodes.sort_unstable_by(|one, other| {
            let rank = |node: &ClusterNode| node.state == NodeState::Stopped;
            (rank(one), &one.name).cmp(&(rank(other), &other.name))
        });
        nodes.truncate(NODES_MAX);
        nodes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        *list = UpdatedNodes { updated: Some(now), nodes };
    }

    fn lock(&self) -> MutexGuard<'_, UpdatedNodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_updated_once_a_second() {
        let (list, now) = (NodeList::default(), Instant::now());
        let (state, lag) = (NodeState::Connected, Duration::ZERO);
        let named = |n: usize| ClusterNode { name: format!("{n:04}"), state, lag, reported: now };
        list.update(now, || (0..200).rev().map(named).collect());
        let names: Vec<_> = list.nodes().into_iter().map(|node| node.name).collect();
        assert_eq!((names.len(), &*names[0], &*names[1]), (NODES_MAX, "0000", "0001"));
        list.update(now + UPDATE_EVERY / 2, || panic!("too early"));
        list.update(now + UPDATE_EVERY, Vec::new);
        assert_eq!(list.nodes(), []);
    }
}
