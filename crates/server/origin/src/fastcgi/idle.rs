//! The idle connections to a responder, each with the slot of its PHP worker in the relay.
//!
//! After `fastcgi_finish_request` php-fpm reports the end of the request, but its worker continues with the
//! script before it reads the next request. So the first record of the next request is sent as soon as one has
//! ended, and a connection is idle when its worker has read that ([`Socket::is_all_read`]). Over TCP this cannot
//! be seen; there, the connection that has been idle longest is used first.
//!
//! | connection | is |
//! |---|---|
//! | its worker has read the first record | ready: a request is sent over it |
//! | not yet, for less than [`SETTLING`] | waited for, if no other is ready |
//! | not yet | busy: closed when a request finds no other, so that its worker can accept another connection |
//!
//! A connection is closed when it has been idle for too long, so that php-fpm can end its worker. Locks: the
//! list is locked only to push, search or pop. A search asks the system about each connection; of the requests
//! that wait for a worker only one searches again and again ([`Idle::search`]).

use capture::relay::SlotLease;
use fastcgi::BEGIN_KEPT_OPEN;
use sockets::Socket;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a connection may be idle before it is closed, so that php-fpm can end its worker.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long a worker may take to clean up after an ordinary request.
const SETTLING: Duration = Duration::from_millis(5);

/// The idle connections; the most recently used is last.
pub struct Idle {
    sockets: Mutex<VecDeque<IdleConnection>>,
    max: usize,
    /// Whether a waiting request searches.
    is_searched: AtomicBool,
}

/// The right to search the list while a request waits; another request gets it afterwards.
pub struct IdleSearch<'a>(&'a Idle);

impl IdleSearch<'_> {
    /// Returns an idle connection whose worker waits for a request, as [`Idle::ready`] does.
    pub fn ready(&self) -> Option<IdleConnection> {
        self.0.ready()
    }
}

impl Drop for IdleSearch<'_> {
    fn drop(&mut self) {
        self.0.is_searched.store(false, Ordering::Release);
    }
}

/// A connection without a request.
pub struct IdleConnection {
    /// The slot of its worker in the relay. Dropped before the socket.
    pub slot: Option<SlotLease>,
    /// The connection to the responder.
    pub socket: Socket,
    /// Whether the first record of the next request has been sent.
    pub is_begun: bool,
    since: Instant,
}

/// The result of [`Idle::take`].
pub enum IdleChoice {
    /// A connection whose worker waits for a request.
    Ready(IdleConnection),
    /// No connection is idle.
    Nothing,
    /// The workers of all idle connections still run a script, and one of these connections was closed.
    Busy,
}

impl Idle {
    /// Room for `max` idle connections.
    pub fn new(max: usize) -> Idle {
        Idle { sockets: Mutex::default(), max, is_searched: AtomicBool::new(false) }
    }

    /// Whether connections are kept at all.
    pub fn has_room(&self) -> bool {
        self.max > 0
    }

    /// Takes a connection whose worker waits for a request.
    pub async fn take(&self) -> IdleChoice {
        loop {
            if let Some(ready) = self.ready() {
                return IdleChoice::Ready(ready);
            }
            // The last one is the likeliest to become ready at once.
            let Some(last) = self.sockets().pop_back() else { return IdleChoice::Nothing };
            if timeout(SETTLING, last.socket.all_read()).await.is_err() {
                return IdleChoice::Busy;
            }
            if last.is_usable() {
                return IdleChoice::Ready(last);
            }
        }
    }

    /// The right to search while a request waits; `None` if another one has it.
    pub fn search(&self) -> Option<IdleSearch<'_>> {
        let is_taken = self.is_searched.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| IdleSearch(self))
    }

    /// Takes the connection that has been ready longest, if there is one.
    fn ready(&self) -> Option<IdleConnection> {
        let mut sockets = self.sockets();
        sockets.retain(IdleConnection::is_usable);
        let first = sockets.iter().position(|idle| idle.socket.is_all_read())?;
        sockets.remove(first)
    }

    /// Keeps a connection that can be used again.
    pub fn put(&self, socket: Socket, slot: Option<SlotLease>) {
        let is_begun = socket.shows_reading();
        if is_begun && !socket.write_now(&BEGIN_KEPT_OPEN) {
            // The lease ends before the connection: see [`SlotLease`].
            return drop((slot, socket));
        }
        let mut sockets = self.sockets();
        if sockets.len() < self.max {
            sockets.push_back(IdleConnection { slot, socket, is_begun, since: Instant::now() });
        }
    }

    /// Closes the connections that have been idle for too long.
    pub fn close_old(&self) {
        self.sockets().retain(|idle| idle.since.elapsed() < IDLE_MAX);
    }

    fn sockets(&self) -> MutexGuard<'_, VecDeque<IdleConnection>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdleConnection {
    fn is_usable(&self) -> bool {
        self.since.elapsed() < IDLE_MAX && !self.socket.is_spent()
    }
}
