//! Connections to the servers that report changes: databases, and the Valkey or Redis server of a
//! cluster.
//!
//! | file | contents |
//! |---|---|
//! | `link` | the transport of a connection: TCP, Unix socket, TLS |
//! | `fault` | why a connection or a stream failed, and how a follower recovers |
//! | `proof_times` | how often a source must prove that its changes are applied |
//!
//! Invariant: every wait of a connection has a timeout, which its user sets. Not here: the protocols
//! (`change-sources`, `cluster`).

pub mod fault;
pub mod link;
pub mod proof_times;
