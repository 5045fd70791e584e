//! Certificates from a certificate authority (ACME, RFC 8555).
//!
//! | file | contents |
//! |---|---|
//! | `hosts` | the hosts in memory, the looks at the storage, the tasks of hosts that are due |
//! | `round` | one round for a host, under its lock |
//! | `order` | one order at one authority; `account`: the account there; `client`: HTTP |
//! | `schedule` | when the next step of a host is due: pure functions |
//! | `storage` | what all nodes share, in a directory or in Valkey |
//! | `copies` | this node's copy of the certificates in use |
//! | `tickets` | the keys of session tickets that nodes share |
//! | `answers` | the answers to pending challenges |
//! | `leaf`, `record`, `failure` | certificates, records of hosts, causes of failures |
//!
//! Start reading at [`AcmeHosts::run`]. Invariants: each host has a certificate of its own, so that no host waits
//! for another; a certificate stays in use until a usable one replaces it; one node at a time orders for a host.
//!
//! Not here: listeners, and the choice of a certificate (`certificates`).

mod account;
mod answers;
mod client;
mod copies;
mod failure;
mod hosts;
mod leaf;
mod order;
mod randomness;
mod record;
mod round;
mod schedule;
mod storage;
mod tickets;

pub use client::AuthorityTrust;
pub use failure::{OrderFailure, TEXT_CHARACTERS};
pub use hosts::{AcmeHosts, AcmeParts, AcmeTimes, Authority, ManagedSource};
pub use leaf::Bundle;
pub use record::ChallengeKind;
pub use storage::LockTimes;

#[cfg(test)]
mod tests;
