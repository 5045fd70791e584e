//! The scripted origin: an HTTP/1.1 server on a loopback port. It answers by the scenario's rules, delays
//! answers at holds, and records the requests.
//!
//! One thread accepts, and one thread serves each connection. They share [`script::Script`], protected by one
//! mutex with one condition variable. No thread holds the mutex while it reads or writes a socket. While the
//! origin is down, a socket that is bound but does not listen reserves the port. Connections are then refused,
//! and no other process gets the port.

mod answer;
mod script;

use crate::blanks::Blanks;
use crate::failure::Mismatch;
use crate::story::{BodyTest, FieldTest, RequestPattern, Rule};
use crate::transcript::Transcript;
use harness::wire::HttpConnection;
use harness::{ClientError, Deadline};
use script::{Script, ScriptState};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The maximum number of concurrent connections; further ones are closed.
const CONNECTIONS_MAX: usize = 256;

/// A running origin.
pub(crate) struct Origin {
    address: SocketAddr,
    shared: Arc<ScriptState>,
    /// Bound, but never listening: reserves the port.
    _keeps_port: Socket,
    accepting: Option<Acceptor>,
}

/// The accepting thread, and a second handle of its listening socket.
struct Acceptor {
    thread: JoinHandle<()>,
    socket: Socket,
}

impl Origin {
    /// Starts an origin on a free port of the loopback address.
    pub(crate) fn start(transcript: Transcript) -> io::Result<Origin> {
        let keeps_port = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = keeps_port.local_addr()?.as_socket();
        let address = address.ok_or_else(|| io::Error::other("the port has no address"))?;
        let blanks = Blanks { now_ms: 0, origin: address, kept: Default::default() };
        let shared = Arc::new(ScriptState::new(Script::new(blanks), transcript));
        let mut origin = Origin { address, shared, _keeps_port: keeps_port, accepting: None };
        origin.up()?;
        Ok(origin)
    }

    /// The address of the origin.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Appends rules.
    pub(crate) fn add_rules(&self, rules: &[Rule]) {
        self.shared.lock().add_rules(rules);
    }

    /// Reads or changes the placeholder values for answers.
    pub(crate) fn with_blanks<T>(&self, use_blanks: impl FnOnce(&mut Blanks) -> T) -> T {
        use_blanks(&mut self.shared.lock().blanks)
    }

    /// Starts to listen (again).
    pub(crate) fn up(&mut self) -> io::Result<()> {
        if self.accepting.is_some() {
            return Ok(());
        }
        let listening = bound(self.address)?;
        listening.listen(128)?;
        let socket = listening.try_clone()?;
        let listener = TcpListener::from(listening);
        let shared = Arc::clone(&self.shared);
        let epoch = shared.lock().begin_epoch();
        let accept = move || accept(&listener, &shared, epoch);
        let thread = std::thread::Builder::new().name("origin".into()).spawn(accept)?;
        self.accepting = Some(Acceptor { thread, socket });
        Ok(())
    }

    /// Refuses connections and closes the open ones. All holds and hanging requests end.
    pub(crate) fn down(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        // Closing is not enough: a process that is being started at this moment has a copy of the socket until
        // its exec. `shutdown` stops the listening for all copies.
        let _ = accepting.socket.shutdown(Shutdown::Both);
        for stream in self.shared.lock().end_epoch() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
        // Wakes the accepting thread if `shutdown` did not. Its epoch is over.
        let _ = TcpStream::connect(self.address);
        let _ = accepting.thread.join();
    }

    /// Releases a hold permanently.
    pub(crate) fn release(&self, gate: &str) {
        self.shared.lock().open_gate(gate);
        self.shared.changed.notify_all();
    }

    /// Waits until `count` requests are held.
    pub(crate) fn await_hold(
        &self,
        gate: &str,
        count: usize,
        until: Deadline,
    ) -> Result<(), Mismatch> {
        self.shared.wait_until(until, |script| {
            let held = script.held(gate);
            let wrong = Mismatch::new(
                format!("{count} waiting at the hold {gate}"),
                format!("{held} waiting there; {}", script.describe_seen()),
            );
            if held >= count { Ok(()) } else { Err(wrong) }
        })
    }

    /// Waits until this number of requests has been received.
    pub(crate) fn saw(
        &self,
        count: usize,
        only: Option<&RequestPattern>,
        until: Deadline,
    ) -> Result<(), Mismatch> {
        let judge = |script: &Script| {
            let seen = script.count(only);
            let what = only.map_or("requests".into(), script::describe_which);
            let got = format!("{seen}; {}", script.describe_seen());
            let wrong = Mismatch::new(format!("the origin saw {count} {what}"), got);
            if seen == count { Ok(()) } else { Err(wrong) }
        };
        self.shared.wait_until(until, judge)
    }

    /// Checks the last request received.
    pub(crate) fn last(
        &self,
        only: Option<&RequestPattern>,
        fields: &[FieldTest],
        body: Option<&BodyTest>,
    ) -> Vec<Mismatch> {
        self.shared.lock().judge_last(only, fields, body)
    }

    /// The requests without a rule since the last call.
    pub(crate) fn take_unexpected(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unexpected)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.down();
    }
}

/// A socket bound to `address`. Several may be bound, as long as only one listens.
fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Accepts until the epoch ends, then waits for the connection threads.
fn accept(listener: &TcpListener, shared: &Arc<ScriptState>, epoch: u64) {
    let mut serving: Vec<JoinHandle<()>> = Vec::new();
    for stream in listener.incoming() {
        serving.retain(|thread| !thread.is_finished());
        let Ok(stream) = stream else { break };
        let Ok(handle) = stream.try_clone() else { break };
        if !shared.lock().add_stream(epoch, handle) {
            break;
        }
        if serving.len() >= CONNECTIONS_MAX {
            continue;
        }
        let shared = Arc::clone(shared);
        let serve = move || serve(HttpConnection::of(stream), &shared, epoch);
        let spawned = std::thread::Builder::new().name("origin connection".into()).spawn(serve);
        serving.extend(spawned.ok());
    }
    for thread in serving {
        // A thread that panicked has closed its connection, which fails the scenario.
        let _ = thread.join();
    }
}

/// Serves one connection until its end.
fn serve(mut connection: HttpConnection, shared: &ScriptState, epoch: u64) {
    loop {
        let (head, body) = match connection.read_request() {
            Ok(request) => request,
            Err(error) if error.is_end() => break,
            Err(ClientError::TimedOut | ClientError::Io(_)) => break,
            Err(ClientError::Closed { .. }) => {
                shared.transcript.add("  origin: a request that was given up half-way".into());
                break;
            }
            Err(error) => {
                shared.lock().unexpected.push(error.to_string());
                break;
            }
        };
        if !answer::answer(&mut connection, shared, epoch, head, body) {
            break;
        }
    }
    connection.close();
}
