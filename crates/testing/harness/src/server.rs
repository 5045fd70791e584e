//! A server of the tests: it accepts connections on a port of its own, and serves each in a thread.
//!
//! It can refuse connections for a while: its port is then closed, and [`AcceptedStream::is_refused`] tells the
//! threads to close theirs at the next request. It ends when it is dropped, with all its connections. Their
//! number and the time for which one may be silent are bounded.

use crate::reserved_port::Port;
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// More connections than Pagewell opens; further ones are closed at once.
const CONNECTIONS: usize = 512;
/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// The pause of a listener that refuses.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running server of a test.
pub struct TestServer {
    state: Arc<ServerState>,
    listening: Option<JoinHandle<()>>,
}

struct ServerState {
    port: Port,
    refusing: AtomicBool,
    stopping: AtomicBool,
    /// A second handle of each open connection, by its number.
    open: Mutex<HashMap<u64, TcpStream>>,
}

/// A connection that was accepted.
pub struct AcceptedStream {
    /// The connection, with timeouts and without Nagle's algorithm.
    pub stream: TcpStream,
    /// Its number, from 0 on.
    pub number: u64,
    state: Arc<ServerState>,
}

impl AcceptedStream {
    /// Whether the server refuses connections now.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.state.refusing.load(SeqCst)
    }
}

impl Drop for AcceptedStream {
    fn drop(&mut self) {
        self.state.open().remove(&self.number);
        // The handle in the table may have been taken by a server that ends.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl ServerState {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.stopping.load(SeqCst) || self.refusing.load(SeqCst)
    }
}

impl TestServer {
    /// Starts a server; `serve` serves a connection until its end.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn start(
        serve: impl Fn(&AcceptedStream) + Send + Sync + 'static,
    ) -> io::Result<TestServer> {
        let state = Arc::new(ServerState {
            port: Port::take()?,
            refusing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let listener = TcpListener::bind(state.port.address())?;
        let own = state.clone();
        let listening = thread::Builder::new()
            .name("server".into())
            .spawn(move || listen(&own, listener, &Arc::new(serve)))?;
        Ok(TestServer { state, listening: Some(listening) })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.state.port.address()
    }

    /// Refuses connections from now on, or accepts them again.
    pub fn set_refusing(&self, refusing: bool) {
        self.state.refusing.store(refusing, SeqCst);
        if refusing {
            self.wake();
        }
    }

    /// Refuses connections for this time.
    pub fn refuse_for(&self, time: Duration) {
        self.set_refusing(true);
        sleep(time);
        self.set_refusing(false);
    }

    /// The listener checks its state when a connection comes.
    fn wake(&self) {
        let _ = TcpStream::connect(self.address());
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.state.stopping.store(true, SeqCst);
        let Some(listening) = self.listening.take() else { return };
        // One connection may come between two listeners.
        while !listening.is_finished() {
            self.wake();
            sleep(LOOK_EVERY);
        }
        let _ = listening.join();
        for stream in self.state.open().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn listen<S>(state: &Arc<ServerState>, first: TcpListener, serve: &Arc<S>)
where
    S: Fn(&AcceptedStream) + Send + Sync + 'static,
{
    let (mut listener, mut accepted) = (Some(first), 0);
    while !state.stopping.load(SeqCst) {
        let again = || TcpListener::bind(state.port.address()).ok();
        if let Some(open) = listener.take().or_else(again) {
            accept(state, &open, &mut accepted, serve);
        }
        while state.refusing.load(SeqCst) && !state.stopping.load(SeqCst) {
            sleep(LOOK_EVERY);
        }
    }
}

/// Accepts until the server refuses or ends.
fn accept<S>(state: &Arc<ServerState>, listener: &TcpListener, accepted: &mut u64, serve: &Arc<S>)
where
    S: Fn(&AcceptedStream) + Send + Sync + 'static,
{
    for stream in listener.incoming() {
        if state.is_closed() {
            return;
        }
        let Ok(stream) = stream else { continue };
        if state.open().len() >= CONNECTIONS || bounded(&stream).is_err() {
            continue;
        }
        let Ok(handle) = stream.try_clone() else { continue };
        let number = *accepted;
        *accepted += 1;
        state.open().insert(number, handle);
        let accepted = AcceptedStream { stream, number, state: state.clone() };
        let serve = serve.clone();
        // Without a thread the connection is dropped, which closes it.
        let _ = thread::Builder::new().name("connection".into()).spawn(move || serve(&accepted));
    }
}

fn bounded(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Deadline;
    use crate::wire::HttpConnection;
    use crate::{Client, Request};

    #[test]
    fn serves_refuses_and_serves_again() {
        let server = TestServer::start(|accepted| {
            let Ok(stream) = accepted.stream.try_clone() else { return };
            let mut connection = HttpConnection::of(stream);
            while connection.read_request().is_ok() && !accepted.is_refused() {
                let _ = connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        });
        let server = server.expect("it starts");
        let mut client = Client::new(server.address());
        let post = Request::new("POST", "/").content(b"text");
        assert_eq!(client.send(&post).expect("an answer").text(), "ok");
        server.set_refusing(true);
        // The open connection is closed, and then there is no other.
        assert!(client.send(&post).is_err());
        server.set_refusing(false);
        let deadline = Deadline::after(SILENCE);
        let served = deadline.poll(LOOK_EVERY, || client.get("/").ok());
        assert_eq!(served.expect("it listens again").text(), "ok");
        drop(server);
        assert!(client.get("/").is_err(), "its connections end with it");
    }
}
