//! The other nodes of a cluster, for operators: name, host name, state, lag, last contact.
//!
//! The task that publishes changes updates the list at most once in [`UPDATE_EVERY`], and at least
//! every 5 seconds while the stream can be reached. While it cannot, all states are unknown. The
//! list has at most [`NODES_MAX`] nodes. Lock: one, around the list; no other lock is taken under
//! it. Not here: the decision for which nodes a write waits (`peer_positions`).

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
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
    /// The name of its machine; `None` if the node announces none.
    pub host_name: Option<HostName>,
    /// Whether it applies changes.
    pub state: NodeState,
    /// The age of the oldest change that this node has published and that node has not applied;
    /// zero if there is none, `None` unless that node is connected.
    pub lag: Option<Duration>,
    /// When it has last reported a position.
    pub reported: Instant,
    /// When this process has last read the positions from the stream.
    pub read: Instant,
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
    /// This process cannot reach the stream, so it does not know.
    Unknown,
}

/// The host name of a node: 1 to [`HOST_NAME_MAX`] ASCII letters, digits, dots, hyphens and
/// underscores. It is shown to operators, and decides nothing: nodes may have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(Box<str>);

/// The longest host name in bytes. Linux allows no longer one.
const HOST_NAME_MAX: usize = 64;

impl HostName {
    /// Checks a host name that a node has announced; `None` if it is too long or has other
    /// characters.
    pub fn checked(text: &str) -> Option<HostName> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = (1..=HOST_NAME_MAX).contains(&text.len()) && text.bytes().all(is_valid);
        is_name.then(|| HostName(text.into()))
    }

    /// Returns the host name of this machine; `None` if it cannot be announced.
    pub fn own() -> Option<&'static HostName> {
        static OWN: LazyLock<Option<HostName>> =
            LazyLock::new(|| HostName::checked(rustix::system::uname().nodename().to_str().ok()?));
        OWN.as_ref()
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The list of the other nodes.
#[derive(Default)]
pub struct NodeList(Mutex<UpdatedNodes>);

#[derive(Default)]
struct UpdatedNodes {
    updated: Option<Instant>,
    /// Whether the last attempt to read the positions has failed.
    is_away: bool,
    /// In the order of their names.
    nodes: Vec<ClusterNode>,
}

impl NodeList {
    /// Returns the nodes in the order of their names. While the stream cannot be reached, their
    /// state is unknown.
    pub fn nodes(&self) -> Vec<ClusterNode> {
        let list = self.lock();
        let mut nodes = list.nodes.clone();
        if list.is_away {
            for node in &mut nodes {
                (node.state, node.lag) = (NodeState::Unknown, None);
            }
        }
        nodes
    }

    /// Returns the host name of the node whose process has this name, if it is known.
    pub fn host_name(&self, process: &str) -> Option<Box<str>> {
        let list = self.lock();
        let at = list.nodes.binary_search_by(|node| node.name.as_str().cmp(process)).ok()?;
        list.nodes[at].host_name.as_ref().map(|name| name.0.clone())
    }

    /// Records that the positions were read, and replaces the list by `nodes` if it is old enough.
    pub fn update(&self, now: Instant, nodes: impl FnOnce() -> Vec<ClusterNode>) {
        let mut list = self.lock();
        let is_due = list.updated.is_none_or(|updated| now.duration_since(updated) >= UPDATE_EVERY);
        if !is_due && !list.is_away {
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
        *list = UpdatedNodes { updated: Some(now), is_away: false, nodes };
    }

    /// Records that the positions cannot be read.
    pub fn lost_contact(&self) {
        self.lock().is_away = true;
    }

    fn lock(&self) -> MutexGuard<'_, UpdatedNodes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(name: String, now: Instant) -> ClusterNode {
        let (state, lag) = (NodeState::Connected, Some(Duration::ZERO));
        ClusterNode { name, host_name: None, state, lag, reported: now, read: now }
    }

    #[test]
    fn the_list_is_bounded_and_updated_once_a_second() {
        let (list, now) = (NodeList::default(), Instant::now());
        list.update(now, || (0..200).rev().map(|n| node(format!("{n:04}"), now)).collect());
        let names: Vec<_> = list.nodes().into_iter().map(|node| node.name).collect();
        assert_eq!((names.len(), &*names[0], &*names[1]), (NODES_MAX, "0000", "0001"));
        list.update(now + UPDATE_EVERY / 2, || panic!("too early"));
        list.update(now + UPDATE_EVERY, Vec::new);
        assert_eq!(list.nodes(), []);
    }

    #[test]
    fn without_contact_the_state_is_unknown() {
        let (list, now) = (NodeList::default(), Instant::now());
        list.update(now, || vec![node("a".into(), now)]);
        list.lost_contact();
        let unknown = ClusterNode { state: NodeState::Unknown, lag: None, ..node("a".into(), now) };
        assert_eq!(list.nodes(), [unknown]);
        // The first contact updates the list, however young it is.
        let then = now + UPDATE_EVERY / 2;
        list.update(then, || vec![node("a".into(), then)]);
        assert_eq!(list.nodes(), [node("a".into(), then)]);
        assert_eq!(list.host_name("a"), None);
    }

    #[test]
    fn a_process_has_its_host_name() {
        let (list, now) = (NodeList::default(), Instant::now());
        let named = |n: u32| ClusterNode {
            host_name: HostName::checked(&format!("web-{n}")),
            ..node(n.to_string(), now)
        };
        list.update(now, || [3, 1, 2].map(named).into());
        assert_eq!(list.host_name("2").as_deref(), Some("web-2"));
        assert_eq!(list.host_name("4"), None);
    }

    #[test]
    fn host_names_are_checked() {
        let longest = "x".repeat(HOST_NAME_MAX);
        for name in ["a", "web-1.example_net", &longest] {
            assert_eq!(HostName::checked(name).as_ref().map(HostName::as_str), Some(name));
        }
        for wrong in ["", "a b", "a\n", "é", "<b>", &format!("{longest}x")] {
            assert_eq!(HostName::checked(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_host_name_is_one_harmless_word(text in any::<String>()) {
            if let Some(name) = HostName::checked(&text) {
                prop_assert_eq!(name.as_str(), &text);
                prop_assert!(text.len() <= HOST_NAME_MAX && text.chars().all(|c| c.is_ascii_graphic()));
            }
        }
    }
}
