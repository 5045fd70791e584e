//! The choice among the servers of an origin.
//!
//! A request goes to the server with the fewest requests in flight; among equal ones, to each in turn. A server that
//! refuses a connection, is too slow to accept it, or breaks TLS is **left out** for [`LEFT_OUT`]; one that fails its
//! checks, until it has passed two. Backups are chosen only while no other server can be. If all are out,
//! they are tried all the same: the origin may be there again, and nothing is lost. A single server is therefore
//! always used.

use config::{OriginServer, OriginServers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a server that could not be reached gets no requests.
pub const LEFT_OUT: Duration = Duration::from_secs(10);

/// The servers of an origin, with what is known of them.
#[derive(Debug)]
pub struct Servers {
    all: Vec<Arc<Server>>,
    /// How many of them are no backups; these come first.
    first: usize,
    /// Where the search begins, so that equal servers get requests in turn.
    turn: AtomicUsize,
    started: Instant,
}

/// A server.
#[derive(Debug)]
struct Server {
    server: OriginServer,
    in_flight: AtomicUsize,
    /// Until when it is left out, in milliseconds since the start; 0: it is not.
    out_until: AtomicU64,
    /// Whether it fails its checks.
    is_down: AtomicBool,
}

/// The servers that a request has been sent to, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriedServers(u64);

impl TriedServers {
    /// Remembers that this server was tried.
    pub fn note(&mut self, chosen: &ServerUse) {
        self.0 |= 1 << chosen.number;
    }

    fn has(self, number: usize) -> bool {
        self.0 & (1 << number) != 0
    }
}

/// A server that was chosen for a request, which is in flight until this is dropped.
#[derive(Debug)]
pub struct ServerUse {
    number: usize,
    server: Arc<Server>,
}

impl ServerUse {
    /// The server that was chosen, as it is configured.
    pub fn server(&self) -> &OriginServer {
        &self.server.server
    }
}

impl Drop for ServerUse {
    fn drop(&mut self) {
        self.server.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Servers {
    /// Takes the servers of the configuration; at most 64, which it has checked.
    pub fn new(config: &OriginServers) -> Servers {
        let server = |server: &OriginServer| Server {
            server: server.clone(),
            in_flight: AtomicUsize::new(0),
            out_until: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
        };
        Servers {
            all: config.all().map(|one| Arc::new(server(one))).collect(),
            first: config.servers.len(),
            turn: AtomicUsize::new(0),
            started: Instant::now(),
        }
    }

    /// Chooses a server that was not tried; `None` if no other can be used.
    pub fn choose(&self, tried: TriedServers) -> Option<ServerUse> {
        let now = self.now();
        let can = |number: &usize| !tried.has(*number) && self.all[*number].is_usable(now);
        let (first, all) = (self.first, self.all.len());
        let number = self
            .least(0..first, can)
            .or_else(|| self.least(first..all, can))
            // All are out: any may be back.
            .or_else(|| self.least(0..all, |number| !tried.has(*number)))?;
        let server = self.all[number].clone();
        server.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(ServerUse { number, server })
    }

    /// Leaves a server out after it could not be reached. Returns whether it got requests before.
    pub fn leave_out(&self, chosen: &ServerUse) -> bool {
        let now = self.now();
        let until = now + u64::try_from(LEFT_OUT.as_millis()).unwrap_or(u64::MAX);
        chosen.server.out_until.swap(until, Ordering::Relaxed) <= now
    }

    /// The number of servers that get no requests now.
    pub fn out(&self) -> usize {
        let now = self.now();
        self.all.iter().filter(|server| !server.is_usable(now)).count()
    }

    /// The servers, by number.
    pub fn list(&self) -> impl ExactSizeIterator<Item = &OriginServer> {
        self.all.iter().map(|server| &server.server)
    }

    /// Notes that a server fails its checks, or no longer does. Returns whether that is new.
    pub(crate) fn set_down(&self, number: usize, is_down: bool) -> bool {
        let was_down = self.all[number].is_down.swap(is_down, Ordering::Relaxed);
        was_down != is_down
    }

    /// Of the servers with these numbers that can be used, the one with the fewest requests in flight.
    fn least(&self, range: std::ops::Range<usize>, can: impl Fn(&usize) -> bool) -> Option<usize> {
        let (start, length) = (range.start, range.len());
        let turn = if length > 1 { self.turn.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let in_turn = (0..length).map(|at| start + (turn.wrapping_add(at)) % length);
        in_turn.filter(can).min_by_key(|number| self.all[*number].in_flight.load(Ordering::Relaxed))
    }

    /// The time since the start, in milliseconds, and 1.
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

impl Server {
    fn is_usable(&self, now: u64) -> bool {
        !self.is_down.load(Ordering::Relaxed) && self.out_until.load(Ordering::Relaxed) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(first: usize, backups: usize) -> Servers {
        let some = |range: std::ops::Range<usize>| {
            let server = |at| OriginServer { is_tls: false, authority: format!("{at}.test") };
            range.map(server).collect()
        };
        let (servers, backups) = (some(0..first), some(first..first + backups));
        Servers::new(&OriginServers { servers, backups, ..OriginServers::default() })
    }

    fn number(chosen: Option<ServerUse>) -> Option<usize> {
        chosen.map(|chosen| chosen.number)
    }

    #[test]
    fn the_server_with_the_fewest_requests_gets_the_next() {
        let servers = servers(3, 0);
        let mut held: Vec<ServerUse> =
            (0..6).map(|_| servers.choose(TriedServers::default()).expect("one")).collect();
        let mut numbers: Vec<usize> = held.iter().map(|chosen| chosen.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 0, 1, 1, 2, 2]);
        held.retain(|chosen| chosen.number != 1);
        for _ in 0..2 {
            let chosen = servers.choose(TriedServers::default()).expect("one");
            assert_eq!(chosen.number, 1);
            held.push(chosen);
        }
    }

    #[test]
    fn equal_servers_get_requests_in_turn() {
        let servers = servers(2, 0);
        let chosen: Vec<_> =
            (0..4).map(|_| number(servers.choose(TriedServers::default()))).collect();
        assert_ne!(chosen[0], chosen[1]);
        assert_eq!((chosen[0], chosen[1]), (chosen[2], chosen[3]));
    }

    #[test]
    fn a_server_that_was_tried_or_is_out_is_not_chosen() {
        let servers = servers(2, 1);
        let mut tried = TriedServers::default();
        let first = servers.choose(tried).expect("one");
        assert!(servers.leave_out(&first), "it got requests before");
        assert!(!servers.leave_out(&first), "it is out already");
        tried.note(&first);
        let second = servers.choose(tried).expect("the other");
        assert!(second.number != first.number && second.number < 2, "no backup");
        servers.leave_out(&second);
        tried.note(&second);
        let third = servers.choose(tried).expect("the backup");
        assert_eq!(third.number, 2);
        servers.leave_out(&third);
        tried.note(&third);
        assert!(servers.choose(tried).is_none(), "each was tried");
        assert_eq!(servers.out(), 3);
        assert!(servers.choose(TriedServers::default()).is_some(), "all are out, and tried again");
    }

    #[test]
    fn a_single_server_is_always_used() {
        let servers = servers(1, 0);
        for _ in 0..3 {
            let chosen = servers.choose(TriedServers::default()).expect("it");
            servers.leave_out(&chosen);
        }
    }

    #[test]
    fn a_server_that_fails_its_checks_gets_nothing_until_it_passes() {
        let servers = servers(2, 0);
        assert!(servers.set_down(0, true) && !servers.set_down(0, true));
        for _ in 0..4 {
            assert_eq!(number(servers.choose(TriedServers::default())), Some(1));
        }
        assert!(servers.set_down(0, false));
        let both = [(); 2].map(|()| number(servers.choose(TriedServers::default())));
        assert_ne!(both[0], both[1]);
    }
}
