//! A closed-loop load generator: a number of connections, each with one request at a time.
//!
//! It uses one thread and one epoll instance, optionally bound to a CPU core of its own so that it does not
//! disturb the measurement. The time of a request runs from before its first byte is sent until after the last
//! byte of its response is read; for the first request on a connection it includes the connect. A connection
//! sends as soon as it is open, even if others are still to be opened. In a closed loop a slow server receives
//! fewer requests: the times show how long requests took, not how long an arriving client would have waited.
//! The parser only finds the end of a response (`scan`). Incomplete responses count as failures, a status other
//! than 200 as unexpected.

mod run;
mod scan;

use crate::cpu;
use crate::histogram::Histogram;
use run::Run;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The condition that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadEnd {
    /// After this number of requests, answered or failed.
    Requests(u64),
    /// After this time; requests that are then in flight do not count.
    Elapsed(Duration),
}

/// The requests to send, their target, and their number.
#[derive(Debug, Clone)]
pub struct Load {
    /// The address of the server.
    pub address: SocketAddr,
    /// The number of connections, each with one request in flight.
    pub connections: usize,
    /// The condition that ends the run.
    pub until: LoadEnd,
    /// Whether connections are reused; otherwise each request opens its own.
    pub keep_alive: bool,
    /// The field lines of every request, in addition to `Host`.
    pub headers: Vec<(String, String)>,
    /// The request targets, used in turn.
    pub targets: Vec<String>,
    /// The CPU core to run on.
    pub core: Option<usize>,
}

impl Load {
    /// GET requests for one target over persistent connections.
    #[must_use]
    pub fn new(address: SocketAddr, target: &str, connections: usize, until: LoadEnd) -> Load {
        Load {
            address,
            connections,
            until,
            keep_alive: true,
            headers: Vec::new(),
            targets: vec![target.to_owned()],
            core: None,
        }
    }

    /// Runs the load until its end.
    ///
    /// # Errors
    /// Errors of the system: no file descriptors left, no such core. A server that refuses or closes a
    /// connection is not an error but counted in the report.
    pub fn run(&self) -> io::Result<LoadReport> {
        std::thread::scope(|scope| {
            let run = || match self.core {
                Some(core) => cpu::on_core(core, || Run::new(self)?.until_end())?,
                None => Run::new(self)?.until_end(),
            };
            let thread =
                std::thread::Builder::new().name("load".into()).spawn_scoped(scope, run)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the load generator panicked")))
        })
    }
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct LoadReport {
    /// The number of complete responses with status 200.
    pub requests: u64,
    /// The number of requests without a complete response.
    pub failures: u64,
    /// The number of complete responses with another status.
    pub unexpected: u64,
    /// The number of bytes received.
    pub bytes: u64,
    /// The duration of the run in seconds.
    pub seconds: f64,
    /// The times of complete responses.
    pub times: Histogram,
}

impl LoadReport {
    /// Complete responses per second, of any status.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "requests stay below 2^52")]
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 {
            (self.requests + self.unexpected) as f64 / self.seconds
        } else {
            0.0
        }
    }
}
