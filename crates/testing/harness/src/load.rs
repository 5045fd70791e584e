//! A closed-loop load generator: so many connections, each with one request at a time.
//!
//! One thread and one epoll, bound to a core of its own if asked, so that what it costs does not
//! disturb what is measured. A request's time runs from before its first byte is sent to after the
//! last byte of its response is read; the first one's on a connection, from before the connect. Who is
//! connected asks at once, whoever else is still to be opened.
//! Closed loop means that a slow server is asked less often: the times say how long requests took,
//! not how long an arriving visitor would have waited. It reads just enough HTTP to find the end of
//! a response (`scan`), and counts as failed what has no end, and as unexpected what is not 200.

mod run;
mod scan;

use crate::cpu;
use crate::histogram::Histogram;
use run::Run;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After so many requests, answered or failed.
    Requests(u64),
    /// After this time; requests that are then under way do not count.
    Elapsed(Duration),
}

/// What to ask, of whom, and how much.
#[derive(Debug, Clone)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// How many requests are under way at any moment.
    pub connections: usize,
    /// When to stop.
    pub until: Until,
    /// Whether a connection is used again (else each request opens its own).
    pub keep_alive: bool,
    /// Field lines of every request, besides `Host`.
    pub headers: Vec<(String, String)>,
    /// The targets, asked in turn.
    pub targets: Vec<String>,
    /// The core to run on.
    pub core: Option<usize>,
}

impl Load {
    /// GETs of one target over kept connections.
    #[must_use]
    pub fn new(address: SocketAddr, target: &str, connections: usize, until: Until) -> Load {
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

    /// Runs it to its end.
    ///
    /// # Errors
    /// Those of the system: no descriptors left, no such core. A server that refuses or hangs up is
    /// not an error but a count in the report.
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

/// What a run found.
#[derive(Debug, Clone, Default)]
pub struct LoadReport {
    /// Requests that were answered with a complete 200.
    pub requests: u64,
    /// Requests without a complete answer.
    pub failures: u64,
    /// Complete answers with another status.
    pub unexpected: u64,
    /// Bytes received.
    pub bytes: u64,
    /// How long the run took, in seconds.
    pub seconds: f64,
    /// The times of complete answers.
    pub times: Histogram,
}

impl LoadReport {
    /// Complete answers per second, of any status.
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
