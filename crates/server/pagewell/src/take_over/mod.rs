//! Zero-downtime restart (binary upgrade): a new process receives the listening sockets of the
//! running one, then its snapshots and databases. The old process finishes its requests and ends.
//! No connection is refused, no request is lost, and no response is older than an acknowledged
//! change. See docs/decisions/zero-downtime-restart.md.
//!
//! | step | old process (`leaving`) | new process (`arriving`) |
//! |---|---|---|
//! | 1 | | has a connection from the process that has started it, or connects to a socket whose name is derived from the control interface's address |
//! | 2 | checks the peer (`permission`), sends its listening sockets | loads certificates, starts php-fpm, reports that it is prepared |
//! | 3 | writes a snapshot, and the records of trials and audits for the last time, while requests are served | waits |
//! | 4 | stops accepting and stops answering from its cache; forwards every change to the new process | waits |
//! | 5 | stops following databases, closes the journal, releases the directory; reports that its place is free | waits |
//! | 6 | changes wait for the new process | reads snapshot and journal, follows the databases, applies changes, reports that it is ready, serves once permitted |
//! | 7 | finishes its requests, reports the last change | applies changes until then |
//!
//! Connections between steps 4 and 6 wait in the kernel's queue. Invariant: a process answers from
//! its cache only if all acknowledged changes are applied to it. So the two never do at once. If
//! the new process fails before step 6 ends, the old one accepts again, but forwards every request.
//! The old process reports its last change only with nothing in flight (`pending_changes`); if it ends
//! without this report, the new one purges every page. If the new process is lost after it may
//! serve, the old one acknowledges no change any more.

mod arriving;
mod frame;
mod leaving;
mod permission;
mod socket;
mod successor;

pub use arriving::{Following, Predecessor, ReleasedPlace};
pub use leaving::{Doorway, Open, StartedProcess, SuccessorPid};
pub use permission::INHERITED;
pub use socket::Socket;
pub use successor::Successor;

/// The first line of both sides. A process with another protocol version is rejected.
const GREETING: &str = "pagewell take-over 3";
/// The new process is prepared: sent before step 3.
const PREPARED: &str = "prepared";
/// The old process has released its place: sent after step 5.
const FREE: &str = "free";
