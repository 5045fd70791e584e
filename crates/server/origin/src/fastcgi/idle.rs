//! The idle connections to a responder, each with the slot of its PHP worker in the relay.
//!
//! A connection is closed when it has been idle for too long, so that php-fpm can end its worker. Locks: the
//! list is locked only to push or pop. Not here: whether a connection may be used again.

use crate::capture::relay::SlotLease;
use sockets::Socket;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection may be idle before it is closed, so that php-fpm can end its worker.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The idle connections; the most recently used is last. The one that has been idle longest is used
/// first. The reason: after `fastcgi_finish_request` php-fpm reports the end of the request, but its
/// worker continues with the script before it reads the next request.
pub struct Idle {
    /// Held only to push or pop.
    sockets: Mutex<VecDeque<IdleConnection>>,
    max: usize,
}

/// A connection without a request.
pub struct IdleConnection {
    /// The slot of its worker in the relay. Dropped before the socket.
    pub slot: Option<SlotLease>,
    /// The connection to the responder.
    pub socket: Socket,
    since: Instant,
}

impl Idle {
    /// Room for `max` idle connections.
    pub fn new(max: usize) -> Idle {
        Idle { sockets: Mutex::default(), max }
    }

    /// Whether connections are kept at all.
    pub fn has_room(&self) -> bool {
        self.max > 0
    }

    /// Takes the connection that has been idle longest.
    pub fn take(&self) -> Option<IdleConnection> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(idle) = sockets.pop_front() {
            if idle.since.elapsed() < IDLE_MAX && !idle.socket.is_spent() {
                return Some(idle);
            }
        }
        None
    }

    /// Keeps a connection that can be used again.
    pub fn put(&self, socket: Socket, slot: Option<SlotLease>) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if sockets.len() < self.max {
            sockets.push_back(IdleConnection { slot, socket, since: Instant::now() });
        }
    }

    /// Closes the connections that have been idle for too long.
    pub fn close_old(&self) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|idle| idle.since.elapsed() < IDLE_MAX);
    }
}
