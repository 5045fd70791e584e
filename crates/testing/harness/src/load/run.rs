//! One run of the load generator: its connections, and the epoll instance that drives them.
//!
//! A connection is either connecting or sending (`sent` is less than the request's length), or reading. When
//! its response ends, the next request begins at once, on the same connection or on a new one. When it fails, a
//! new connection replaces it. Sockets are edge-triggered in both directions: epoll reports once that a socket
//! is writable, and each time that bytes arrive.

use super::scan::{Scan, ScanResult};
use super::{Load, LoadEnd, LoadReport};
use crate::Request;
use crate::clock::{Deadline, Stopwatch};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The time without any event after which a run is aborted.
const SILENCE: Duration = Duration::from_secs(60);
/// The number of connections to open before events are processed. A client sends as soon as it is connected,
/// and does not wait for the others.
const OPENED_AT_ONCE: usize = 256;
/// The number of bytes per read.
const READ_BYTES: usize = 64 * 1024;

/// A connection, or an attempt to connect.
struct Connection {
    socket: OwnedFd,
    /// The number of request bytes sent. The connect is done once the first byte is sent.
    sent: usize,
    target: usize,
    scan: Scan,
    since: Stopwatch,
}

/// The result of one step of a connection.
enum Step {
    /// The connection waits for an event.
    Waits,
    /// The response is complete.
    Answered { status: u16, reusable: bool },
    /// There will be no complete response.
    Failed,
}

/// A run in progress.
pub(super) struct Run<'a> {
    load: &'a Load,
    requests: Vec<Vec<u8>>,
    next_target: usize,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
    report: LoadReport,
}

impl<'a> Run<'a> {
    /// Encodes the requests. No connection is opened yet.
    pub(super) fn new(load: &'a Load) -> io::Result<Run<'a>> {
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

    /// Runs until the end.
    pub(super) fn until_end(mut self) -> io::Result<LoadReport> {
        if self.requests.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a load without targets"));
        }
        let clock = Stopwatch::start();
        let mut events = Vec::with_capacity(self.load.connections.max(1));
        for index in 0..self.load.connections.max(1) {
            self.connections.push(None);
            self.open(index)?;
            if index % OPENED_AT_ONCE == OPENED_AT_ONCE - 1 {
                self.wait(&mut events, Duration::ZERO)?;
            }
        }
        let end = match self.load.until {
            LoadEnd::Elapsed(time) => Some(Deadline::after(time)),
            LoadEnd::Requests(_) => None,
        };
        while !self.is_done(end) {
            let within = end.map_or(SILENCE, |end| end.remaining().min(SILENCE));
            let is_silent = self.wait(&mut events, within)? == 0;
            if is_silent && end.is_none_or(|end| !end.passed()) {
                self.report.failures += self.connections.len() as u64;
                break;
            }
        }
        self.report.seconds = clock.elapsed().as_secs_f64();
        Ok(self.report)
    }

    /// Waits for events, and advances each connection that has one. Returns the number of these connections.
    fn wait(&mut self, events: &mut Vec<epoll::Event>, within: Duration) -> io::Result<usize> {
        events.clear();
        let within = Timespec::try_from(within).ok();
        match epoll::wait(&self.epoll, spare_capacity(events), within.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.iter() {
            let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            self.advance(index)?;
        }
        Ok(events.len())
    }

    fn is_done(&self, end: Option<Deadline>) -> bool {
        let ended = self.report.requests + self.report.unexpected + self.report.failures;
        match self.load.until {
            LoadEnd::Requests(wanted) => ended >= wanted,
            LoadEnd::Elapsed(_) => end.is_none_or(|end| end.passed()),
        }
    }

    /// Advances one connection as far as possible, and begins the next request when a response ends.
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

    /// Begins the next request on the same connection.
    fn again(&mut self, index: usize) -> io::Result<()> {
        let target = self.take_target();
        if let Some(connection) = self.connections[index].as_mut() {
            connection.sent = 0;
            connection.target = target;
            connection.scan = Scan::default();
            connection.since = Stopwatch::start();
        }
        // The socket is already writable, so there would be no event.
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

    /// Opens a new connection with this index.
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
        // An error of the connect is reported when the request is written.
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
            ScanResult::More => {}
            ScanResult::End { status, reusable } => return Step::Answered { status, reusable },
            ScanResult::Nonsense => return Step::Failed,
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
