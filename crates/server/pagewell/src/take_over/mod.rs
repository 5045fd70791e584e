//! Taking over: a new process gets the listening sockets of the one that runs, and its place with snapshots
//! and databases; the old one finishes what it has in hand, and ends. Nobody is refused, no request is lost,
//! and nothing is answered from before a change. Why so: docs/decisions/0048-take-over.md.
//!
//! | | the old process (`leaving`) | the new one (`arriving`) |
//! |---|---|---|
//! | 1 | | asks, by a socket that has the control interface's address for its name |
//! | 2 | sees who asks (`socket`), sends its listening sockets | reads certificates, starts php-fpm, says that it is ready |
//! | 3 | writes a snapshot, while visitors are served | waits |
//! | 4 | accepts nobody any more; answers nothing from memory from now on; tells every change to the new one as well | waits |
//! | 5 | databases are not followed any more, the journal is closed, the directory let go of; says so | waits |
//! | 6 | changes wait for the new one | reads snapshot and journal, follows the databases, takes changes in, says that it is ready, and serves when it is told that it may |
//! | 7 | finishes what it has in hand, says that this was all | takes changes in until then |
//!
//! Visitors who come between 4 and 6 wait in the kernel's queue. Invariant: nobody answers from memory
//! unless every change that was acknowledged before has been applied to that memory; so never both at once.
//! If the new one fails before 6 is done, the old one accepts again, and passes everything on: never from
//! memory, for it has let go of the databases. If the old one ends before it has said that this was all (it
//! may only with nothing in hand: `in_hand`), the new one drops every page. If the new one is gone after it was
//! told that it may serve, the old one acknowledges no change any more.

mod arriving;
mod frame;
mod leaving;
mod socket;
mod successor;

pub use arriving::{Following, Placed, Predecessor};
pub use leaving::{Doorway, Left, Open};
pub use socket::Socket;
pub use successor::Successor;

/// In `Cache-Status`: another process has the pages now.
pub const HANDED_OVER: &str = "handed-over";
/// What `Cache-Status` says of a response where the server stops, and other machines do not wait for it.
pub const STOPPING: &str = "stopping";

/// What both sides say first: another version is not understood.
const GREETING: &str = "pagewell take-over 2";
/// The new process is ready to serve.
const PREPARED: &str = "prepared";
/// The old one has let go of everything.
const FREE: &str = "free";
