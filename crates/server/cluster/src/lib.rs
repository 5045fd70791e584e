//! The other nodes of a cluster, reached through a stream of Valkey or Redis: publishes the changes of
//! this node, reads the invalidations of the others and entries that were added by hand. Start reading
//! at `peers` (publishing) and `stream` (reading).
//!
//! | file | contents |
//! |---|---|
//! | `connection` | login, commands, replies |
//! | `stream` | connects, reads, returns one entry after the other |
//! | `entry_format` | converts a change to the fields of an entry, and back |
//! | `nodes` | the other nodes of the cluster, for operators |
//! | `peer_positions` | the positions up to which each node has applied the stream |
//! | `unpublished` | which nodes cannot publish their changes |
//! | `peers` | publishes this node's changes, and tracks when all nodes have applied them |
//!
//! An entry is added after the data behind it was committed, so there is nothing to settle. Not
//! here: bytes, entries, and stream positions (`valkey`); who applies an entry (`change-sources`).

pub mod connection;
mod entry_format;
mod nodes;
mod peer_positions;
mod peers;
mod stream;
mod unpublished;

pub use entry_format::PeerInvalidation;
pub use entry_format::own as own_name;
pub use nodes::{ClusterNode, HostName, NodeState};
pub use peers::Peers;
pub use stream::{EntryRead, Session, Stream, StreamConnection, connect};
pub use unpublished::{NodeReports, PeerReports, UnpublishedChanges};
