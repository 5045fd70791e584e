//! The evidence about clients by their addresses: one table for the process, written when a request needs
//! more than a plain hit, and when a connection is idle or ends.
//!
//! Credit belongs to the other end of a connection, or to the client that a PROXY header names. A client
//! that an HTTP proxy names gets none, because its hits cannot be distinguished; its misses are counted.

use crate::clock::Clock;
use crate::per_address::PerAddress;
use miss_control::{ClientLevel, ShownEvidence};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The least hits for which a connection that ends writes its credit.
const HITS_AT_END: u32 = 2;

/// The evidence about the clients of one connection.
#[derive(Clone)]
pub struct ClientEvidence {
    addresses: Arc<PerAddress>,
    clock: Clock,
    /// Whose hits the connection's hits are; `None` behind an HTTP proxy.
    credited: Option<IpAddr>,
}

impl fmt::Debug for ClientEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientEvidence").field("credited", &self.credited).finish_non_exhaustive()
    }
}

impl ClientEvidence {
    /// For a connection. `credited` is the client's address, unless the other end is a trusted HTTP proxy.
    pub fn new(
        addresses: Arc<PerAddress>,
        clock: Clock,
        credited: Option<IpAddr>,
    ) -> ClientEvidence {
        ClientEvidence { addresses, clock, credited }
    }

    /// Records hits and files of the connection.
    pub fn add_hits(&self, hits: u32) {
        if let Some(address) = self.credited.filter(|_| hits > 0) {
            self.addresses.clients.add(address, hits, self.clock.monotonic());
        }
    }

    /// Records the last hits of a connection that ends. One hit is not worth an entry.
    pub fn add_last_hits(&self, hits: u32) {
        if hits >= HITS_AT_END {
            self.add_hits(hits);
        }
    }

    /// The level of a client that shows this.
    pub fn level_of(&self, shown: &ShownEvidence) -> ClientLevel {
        self.addresses.clients.level(shown, self.clock.monotonic())
    }

    /// The credit of a client of this level that shows this.
    pub fn credit_of(&self, level: ClientLevel, shown: &ShownEvidence) -> u8 {
        self.addresses.clients.credit(level, shown, self.clock.monotonic())
    }

    /// Counts a request to the origin for a client that shows this. Returns its level and credit before.
    pub fn note_miss(&self, shown: &ShownEvidence) -> (ClientLevel, u8) {
        self.addresses.clients.note_miss_of(shown, self.clock.monotonic())
    }
}
