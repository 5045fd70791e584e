//! A TCP proxy with the faults of a network: one direction stalls, or both; connections are cut, reset or
//! refused.
//!
//! A stalled direction holds what was sent, and delivers it when the fault ends. Each connection has two
//! threads, which end with it. Dropping the proxy closes every connection.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

const PIECE_BYTES: usize = 16 << 10;

/// A lasting fault of the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkFault {
    /// Everything is delivered.
    #[default]
    None,
    /// Nothing reaches the client.
    StalledToClient,
    /// Nothing reaches the server.
    StalledToServer,
    /// Nothing is delivered.
    Stalled,
    /// New connections are closed at once. Open ones are not affected.
    Refused,
}

/// How open connections are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// In good order (FIN).
    Cut,
    /// By a reset (RST).
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToClient,
    ToServer,
}

#[derive(Debug, Default)]
struct State {
    fault: Mutex<NetworkFault>,
    changed: Condvar,
    /// Both sockets of each connection.
    open: Mutex<HashMap<u64, [TcpStream; 2]>>,
    numbers: AtomicU64,
    is_over: AtomicBool,
}

/// The proxy, in front of a server of this machine.
#[derive(Debug)]
pub struct FaultyNetwork {
    address: SocketAddr,
    state: Arc<State>,
}

impl FaultyNetwork {
    /// Starts a proxy for this port of the machine.
    ///
    /// # Errors
    /// No port is free.
    pub fn before(server: u16) -> io::Result<FaultyNetwork> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, state) = (listener.local_addr()?, Arc::new(State::default()));
        let own = state.clone();
        thread::spawn(move || own.accept(&listener, server));
        Ok(FaultyNetwork { address, state })
    }

    /// The port to connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Begins a fault, or ends it ([`NetworkFault::None`]).
    pub fn set(&self, fault: NetworkFault) {
        *self.state.fault() = fault;
        self.state.changed.notify_all();
    }

    /// Ends all open connections.
    pub fn end_all(&self, how: ConnectionEnd) {
        for (_, sockets) in self.state.open().drain() {
            for socket in sockets {
                match how {
                    ConnectionEnd::Cut => drop(socket.shutdown(Shutdown::Both)),
                    ConnectionEnd::Reset => {
                        // The reset is sent when the last copy of the socket is closed.
                        let _ = rustix::net::sockopt::set_socket_linger(
                            &socket,
                            Some(std::time::Duration::ZERO),
                        );
                        let _ = socket.shutdown(Shutdown::Read);
                    }
                }
            }
        }
        // Under the lock of `wait`, which looks at the list.
        let _fault = self.state.fault();
        self.state.changed.notify_all();
    }
}

impl Drop for FaultyNetwork {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        self.end_all(ConnectionEnd::Cut);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn fault(&self) -> MutexGuard<'_, NetworkFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, [TcpStream; 2]>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<State>, listener: &TcpListener, server: u16) {
        for client in listener.incoming().map_while(Result::ok) {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            if *self.fault() == NetworkFault::Refused {
                continue;
            }
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
            // As the two would have it without this between them.
            let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
            let number = self.numbers.fetch_add(1, Ordering::SeqCst);
            let copies =
                |socket: &TcpStream| Some([socket.try_clone().ok()?, socket.try_clone().ok()?]);
            let (Some([client_in, client_out]), Some([server_in, server_out])) =
                (copies(&client), copies(&server))
            else {
                continue;
            };
            self.open().insert(number, [client, server]);
            for (from, to, direction) in [
                (client_in, server_out, Direction::ToServer),
                (server_in, client_out, Direction::ToClient),
            ] {
                let state = self.clone();
                thread::spawn(move || state.pump(number, from, to, direction));
            }
        }
    }

    fn pump(&self, number: u64, mut from: TcpStream, mut to: TcpStream, direction: Direction) {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(len @ 1..) = from.read(&mut piece) {
            self.wait(number, direction);
            if to.write_all(&piece[..len]).is_err() {
                break;
            }
        }
        // A connection that `end_all` has ended is not in the list any more.
        if let Some(sockets) = self.open().remove(&number) {
            sockets.iter().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
        }
    }

    /// Waits while the direction is stalled, and the connection is open.
    fn wait(&self, number: u64, direction: Direction) {
        let mut fault = self.fault();
        loop {
            let is_stalled = match *fault {
                NetworkFault::Stalled => true,
                NetworkFault::StalledToClient => direction == Direction::ToClient,
                NetworkFault::StalledToServer => direction == Direction::ToServer,
                NetworkFault::None | NetworkFault::Refused => false,
            };
            if !is_stalled || !self.open().contains_key(&number) {
                return;
            }
            fault = self.changed.wait(fault).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A server that returns what it receives.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut piece = [0; 64];
                    while let Ok(len @ 1..) = client.read(&mut piece) {
                        if client.write_all(&piece[..len]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    fn connect(network: &FaultyNetwork) -> TcpStream {
        let socket =
            TcpStream::connect((Ipv4Addr::LOCALHOST, network.port())).expect("a connection");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        socket
    }

    fn says(socket: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
        socket.write_all(text)?;
        let mut answer = vec![0; text.len()];
        socket.read_exact(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn faults_begin_and_end() {
        let network = FaultyNetwork::before(echo()).expect("a proxy");
        let mut socket = connect(&network);
        assert_eq!(says(&mut socket, b"one").expect("an answer"), b"one");
        for stalled in
            [NetworkFault::Stalled, NetworkFault::StalledToClient, NetworkFault::StalledToServer]
        {
            network.set(stalled);
            socket.write_all(b"held").expect("it is sent");
            socket.set_nonblocking(true).expect("it can be");
            let nothing = socket.read(&mut [0; 1]).expect_err("nothing has arrived");
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
            socket.set_nonblocking(false).expect("it can be");
            network.set(NetworkFault::None);
            let mut answer = [0; 4];
            socket.read_exact(&mut answer).expect("it is delivered");
            assert_eq!(&answer, b"held");
        }
        network.set(NetworkFault::Refused);
        assert_eq!(says(&mut socket, b"two").expect("an open connection stays"), b"two");
        assert!(says(&mut connect(&network), b"three").is_err());
        network.set(NetworkFault::None);
        network.end_all(ConnectionEnd::Cut);
        assert!(matches!(socket.read(&mut [0; 1]), Ok(0) | Err(_)));
        let mut socket = connect(&network);
        assert_eq!(says(&mut socket, b"four").expect("an answer"), b"four");
        network.end_all(ConnectionEnd::Reset);
        let reset = socket.read(&mut [0; 1]).expect_err("a reset");
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
    }
}
