//! A closed-loop load generator: so many connections, each with one request at a time.
//!
//! One thread and one epoll, bound to a core of its own if asked, so that what it costs does not
//! disturb what is measured. A request's time runs from before its first byte is sent to after the
//! last byte of its response is read; on a connection that is not kept, from before the connect.
//! Closed loop means that a slow server is asked less often: the times say how long requests took,
//! not how long an arriving visitor would have waited. It reads just enough HTTP to find the end of
//! a response ([`scan`]), and counts as failed what has no end, and as unexpected what is not 200.

mod scan;

use crate::clock::{Deadline, Stopwatch};
use crate::histogram::Histogram;
use crate::{Request, cpu};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};
use scan::Scan;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long nothing at all may come before a run is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

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

/// One connection, or the attempt at one.
struct Connection {
    socket: OwnedFd,
    /// How much of the request has been sent; the connect is done once the first byte is.
    sent: usize,
    target: usize,
    scan: Scan,
    since: Stopwatch,
}

/// How one step of a connection ended.
enum Step {
    /// It waits for the system.
    Waits,
    /// Its response is complete.
    Answered { status: u16, reusable: bool },
    /// There will be no complete response.
    Failed,
}

struct Run<'a> {
    load: &'a Load,
    requests: Vec<Vec<u8>>,
    next_target: usize,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
    report: LoadReport,
}

impl<'a> Run<'a> {
    fn new(load: &'a Load) -> io::Result<Run<'a>> {
        let host = load.address.to_string();
        let encode = |target: &String| {
            let mut request = Request::get(target);
            for (name, value) in &load.headers {
                request = request.header(name, value);
            }
            if !load.keep_alive {
                request = request.header("Connection", "close");
            }
            request.to_bytes(&host)
        };
        Ok(Run {
            load,
            requests: load.targets.iter().map(encode).collect(),
            next_target: 0,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Vec::new(),
            buffer: Vec::with_capacity(READ_BYTES),
            report: LoadReport::default(),
        })
    }

    fn until_end(mut self) -> io::Result<LoadReport> {
        if self.requests.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a load without targets"));
        }
        let clock = Stopwatch::start();
        for index in 0..self.load.connections.max(1) {
            self.connections.push(None);
            self.open(index)?;
        }
        let mut events = Vec::with_capacity(self.connections.len());
        let end = match self.load.until {
            Until::Elapsed(time) => Some(Deadline::after(time)),
            Until::Requests(_) => None,
        };
        while !self.is_done(end) {
            events.clear();
            let within = end.map_or(SILENCE, |end| end.remaining().min(SILENCE));
            let within = Timespec::try_from(within).ok();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), within.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if events.is_empty() && end.is_none_or(|end| !end.passed()) {
                self.report.failures += self.connections.len() as u64;
                break;
            }
            for event in &events {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                self.advance(index)?;
            }
        }
        self.report.seconds = clock.elapsed().as_secs_f64();
        Ok(self.report)
    }

    fn is_done(&self, end: Option<Deadline>) -> bool {
        let ended = self.report.requests + self.report.unexpected + self.report.failures;
        match self.load.until {
            Until::Requests(wanted) => ended >= wanted,
            Until::Elapsed(_) => end.is_none_or(|end| end.passed()),
        }
    }

    /// Takes one connection as far as it goes, and begins its next request when one ends.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return Ok(());
        };
        let request = &self.requests[connection.target];
        match step(connection, request, &mut self.buffer, &mut self.report.bytes) {
            Step::Waits => Ok(()),
            Step::Answered { status, reusable } => {
                let time = connection.since.elapsed().as_nanos();
                self.report.times.record(u64::try_from(time).unwrap_or(u64::MAX));
                if status == 200 {
                    self.report.requests += 1;
                } else {
                    self.report.unexpected += 1;
                }
                if reusable && self.load.keep_alive { self.again(index) } else { self.open(index) }
            }
            Step::Failed => {
                self.report.failures += 1;
                self.open(index)
            }
        }
    }

    /// The next request on the same connection.
    fn again(&mut self, index: usize) -> io::Result<()> {
        let target = self.take_target();
        if let Some(connection) = self.connections[index].as_mut() {
            connection.sent = 0;
            connection.target = target;
            connection.scan = Scan::default();
            connection.since = Stopwatch::start();
        }
        // The socket is writable: nothing would wake it.
        self.advance_sending(index)
    }

    fn advance_sending(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = self.connections[index].as_mut() else { return Ok(()) };
        let request = &self.requests[connection.target];
        if send(connection, request).is_err() {
            self.report.failures += 1;
            return self.open(index);
        }
        Ok(())
    }

    /// A new connection in this place. Edge-triggered for both directions: it is told once that it
    /// can be written to, and each time that there is something to read.
    fn open(&mut self, index: usize) -> io::Result<()> {
        self.connections[index] = None;
        let since = Stopwatch::start();
        let family = match self.load.address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        // What goes wrong with the connect shows when the request is written.
        let _ = connect(&socket, &self.load.address);
        let wanted = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(index as u64), wanted)?;
        let target = self.take_target();
        self.connections[index] =
            Some(Connection { socket, sent: 0, target, scan: Scan::default(), since });
        Ok(())
    }

    fn take_target(&mut self) -> usize {
        let target = self.next_target;
        self.next_target = (target + 1) % self.requests.len();
        target
    }
}

fn step(at: &mut Connection, request: &[u8], buffer: &mut Vec<u8>, bytes: &mut u64) -> Step {
    if send(at, request).is_err() {
        return Step::Failed;
    }
    loop {
        buffer.clear();
        match rustix::io::read(&at.socket, spare_capacity(buffer)) {
            Ok(0) => return at.scan.closed().map_or(Step::Failed, answered_and_closed),
            Ok(length) => *bytes += length as u64,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return Step::Waits,
            Err(_) => return Step::Failed,
        }
        match at.scan.take(buffer) {
            scan::Found::More => {}
            scan::Found::End { status, reusable } => return Step::Answered { status, reusable },
            scan::Found::Nonsense => return Step::Failed,
        }
    }
}

fn answered_and_closed(status: u16) -> Step {
    Step::Answered { status, reusable: false }
}

fn send(at: &mut Connection, request: &[u8]) -> Result<(), Errno> {
    while at.sent < request.len() {
        match rustix::io::write(&at.socket, &request[at.sent..]) {
            Ok(length) => at.sent += length,
            Err(Errno::INTR) => {}
            // Not connected yet, or the send buffer is full.
            Err(Errno::AGAIN | Errno::NOTCONN) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
