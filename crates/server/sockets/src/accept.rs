//! Listening sockets: accepts connections until shutdown, up to a number at a time. Further connections wait in the
//! kernel's queue. If the system has no file descriptors left, accepting pauses for a moment.
//!
//! Binding, and sockets that a service manager or another process passes: `bound`. An accepted socket: `socket`. What
//! is done with a connection is the caller's.

mod bound;
mod deferred;
mod socket;

pub use bound::{Binder, BoundSocket, NotOpened, PassedSockets};
pub use deferred::defer;
pub use socket::Socket;

use crate::watched;
use config::Address;
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Semaphore;

/// The addresses of a connection: client, then local. `None` for a Unix socket.
pub type Ends = (Option<SocketAddr>, Option<SocketAddr>);

/// How long accepting pauses after the system had no file descriptors left.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// A socket that listens for connections.
pub enum Listener {
    /// A TCP socket.
    Tcp {
        /// The listening TCP socket, registered with the runtime.
        listener: AsyncFd<socket2::Socket>,
        /// Properties that all its connections share.
        inherited: InheritedOptions,
    },
    /// A Unix socket.
    Unix {
        /// The listening Unix socket, registered with the runtime.
        listener: AsyncFd<socket2::Socket>,
        /// Whether a Pagewell created its file, and removes it at the end.
        is_ours: bool,
    },
}

/// Properties that accepted connections inherit from the listening socket, so that they need not be set
/// or queried for each. If another program bound the socket, nothing is assumed. Connections may have
/// arrived before it was handed over, and their local addresses may differ (IP_TRANSPARENT).
#[derive(Clone, Copy, Debug, Default)]
pub struct InheritedOptions {
    /// Whether [`bound::set_client_options`] applies to all its connections.
    has_client_options: bool,
    /// The local address, if it is the same for all connections.
    local: Option<SocketAddr>,
}

/// An accepted connection, with its addresses.
pub enum AcceptedConnection {
    /// A TCP connection.
    Tcp(Socket<TcpStream>, Ends),
    /// A connection to a Unix socket.
    Unix(Socket<UnixStream>),
}

impl Listener {
    /// Registers a bound socket with the runtime. Must be called within a runtime.
    ///
    /// # Errors
    /// Registration failed: a sentence for the operator.
    pub fn on(bound: BoundSocket) -> Result<Listener, String> {
        let BoundSocket { socket, by } = bound;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket());
        let is_ours = matches!(by, Binder::Us | Binder::Predecessor { is_ours: true });
        let listener = watched(socket, Interest::READABLE)
            .map_err(|error| format!("a listening socket: {error}"))?;
        Ok(match address {
            Some(address) => {
                Listener::Tcp { listener, inherited: InheritedOptions::by(by, address) }
            }
            None => Listener::Unix { listener, is_ours },
        })
    }

    fn socket(&self) -> &socket2::Socket {
        match self {
            Listener::Tcp { listener, .. } | Listener::Unix { listener, .. } => listener.get_ref(),
        }
    }

    /// The address of the socket, with the actual port if port 0 was configured.
    pub fn address(&self) -> Address {
        let bound = self.socket().local_addr().expect("a bound socket has an address");
        match bound.as_socket() {
            Some(address) => Address::Tcp(address),
            None => Address::Unix(bound.as_pathname().map(Path::to_owned).unwrap_or_default()),
        }
    }

    /// Whether it is a Unix socket whose file a Pagewell created, and removes at the end.
    pub fn is_ours(&self) -> bool {
        matches!(self, Listener::Unix { is_ours: true, .. })
    }

    /// Duplicates the file descriptor, to pass it to another process.
    ///
    /// # Errors
    /// The system has no file descriptor left.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        self.socket().as_fd().try_clone_to_owned()
    }

    /// Removes the file of a Unix socket, after the last connection was accepted.
    pub fn remove(&self) {
        if let (true, Address::Unix(path)) = (self.is_ours(), self.address()) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Ends accepting. Removes the socket's file, unless another Pagewell accepts connections from the
    /// socket.
    pub fn close(self, ended: Accepting) {
        if ended == Accepting::Stopped {
            self.remove();
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The error from `accept`.
    pub async fn accept(&self) -> io::Result<AcceptedConnection> {
        match self {
            Listener::Tcp { listener, inherited } => {
                let (socket, peer) = next_of(listener).await?;
                let stream = TcpStream::from(socket);
                if !inherited.has_client_options {
                    bound::set_client_options(socket2::SockRef::from(&stream))?;
                }
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                // A connection with an unknown address is not treated as local.
                let peer = peer.ok_or(Errno::CONNABORTED)?;
                let local = inherited.local.or_else(|| stream.local_addr().ok());
                Ok(AcceptedConnection::Tcp(Socket::new(stream), (Some(peer), local)))
            }
            Listener::Unix { listener, .. } => {
                let (socket, _) = next_of(listener).await?;
                Ok(AcceptedConnection::Unix(Socket::new(UnixStream::from(socket))))
            }
        }
    }
}

/// Accepts the next connection of a listening socket. Returns its file descriptor, not yet registered
/// with the runtime, and the client's address.
async fn next_of(
    listener: &AsyncFd<socket2::Socket>,
) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let accept = |listener: &socket2::Socket| {
        rustix::io::retry_on_intr(|| acceptfrom_with(listener, flags)).map_err(io::Error::from)
    };
    listener.async_io(Interest::READABLE, accept).await
}

impl InheritedOptions {
    /// The properties of a socket that is bound to `address`.
    fn by(binder: Binder, address: SocketAddr) -> InheritedOptions {
        match binder {
            Binder::Us => {
                let local = (!address.ip().is_unspecified()).then_some(address);
                InheritedOptions { has_client_options: true, local }
            }
            Binder::Manager | Binder::Predecessor { .. } => InheritedOptions::default(),
        }
    }
}

/// Why accepting has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepting {
    /// Shutdown.
    Stopped,
    /// Another process accepts the connections.
    HandedOver,
}

/// Accepts connections until shutdown, and starts a task for each. At most as many run at once as
/// `places` has permits; `full` is called each time a connection has to wait for one. During the
/// handover of a zero-downtime restart nothing is accepted, and new connections wait in the kernel's
/// queue.
pub async fn accept_each<F>(
    listener: &Listener,
    places: Arc<Semaphore>,
    full: impl Fn(),
    mut stop: PhaseWatch,
    each: impl Fn(AcceptedConnection, tokio::sync::OwnedSemaphorePermit) -> F,
) -> Accepting
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let phase = *stop.borrow_and_update();
        let accepted = match phase {
            Phase::Stopping => return Accepting::Stopped,
            Phase::Left | Phase::Ended => return Accepting::HandedOver,
            Phase::Held => match stop.changed().await {
                Ok(()) => continue,
                Err(_) => return Accepting::HandedOver,
            },
            // Accepting has priority; the phase is read in each iteration anyway.
            Phase::Serving => tokio::select! {
                biased;
                accepted = accept_one(listener, &places, &full) => accepted,
                changed = stop.changed() => match changed {
                    Ok(()) => continue,
                    // The sender is gone, so the phase cannot change any more.
                    Err(_) => std::future::pending().await,
                },
            },
        };
        match accepted {
            Ok((accepted, place)) => drop(tokio::spawn(each(accepted, place))),
            Err(error) if is_of_one(&error) => {}
            Err(error) => {
                tracing::error!(event = "accept-failed", %error);
                tokio::time::sleep(AFTER_REFUSAL).await;
            }
        }
    }
}

/// Whether an error concerns only the connection that was being accepted (accept(2), "Error handling").
/// Other errors concern the listening socket or the whole process.
fn is_of_one(error: &io::Error) -> bool {
    let broken = [
        Errno::CONNABORTED,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::NONET,
        Errno::NOPROTOOPT,
        Errno::PROTO,
    ];
    Errno::from_io_error(error).is_some_and(|errno| broken.contains(&errno))
}

async fn accept_one(
    listener: &Listener,
    places: &Arc<Semaphore>,
    full: &impl Fn(),
) -> io::Result<(AcceptedConnection, tokio::sync::OwnedSemaphorePermit)> {
    if places.available_permits() == 0 {
        full();
    }
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::pin::Pin;
    use std::task::Poll;
    use tokio::io::AsyncWrite;

    /// Accepts the connection of a client that reads nothing, and returns the number of bytes that the
    /// kernel takes for it.
    async fn unread_bytes(bound: BoundSocket) -> usize {
        let listener = Listener::on(bound).expect("it is registered");
        let Address::Tcp(address) = listener.address() else { panic!("not TCP") };
        let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let client = client.expect("a socket");
        client.set_recv_buffer_size(4 << 10).expect("a small buffer");
        client.connect(&address.into()).expect("it listens");
        let Ok(AcceptedConnection::Tcp(mut socket, _)) = listener.accept().await else {
            panic!("no TCP connection")
        };
        let mut taken = 0;
        poll_fn(|cx| {
            while let Poll::Ready(written) = Pin::new(&mut socket).poll_write(cx, &[0; 16 << 10]) {
                taken += written.expect("the client is connected");
            }
            Poll::Ready(())
        })
        .await;
        taken
    }

    #[tokio::test]
    async fn the_kernel_buffers_little_for_a_client_that_does_not_read() {
        let any = Address::Tcp((Ipv4Addr::LOCALHOST, 0).into());
        let own = BoundSocket::open(&any, &mut PassedSockets::default()).expect("it is bound");
        let passed = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("it is bound");
        passed.set_nonblocking(true).expect("can be set");
        let passed = BoundSocket { socket: passed.into(), by: Binder::Manager };
        for bound in [own, passed] {
            let bytes = unread_bytes(bound).await;
            assert!((1..=256 << 10).contains(&bytes), "{bytes} bytes");
        }
    }

    #[test]
    fn a_connection_that_breaks_early_stops_no_other() {
        let says = |errno: Errno| is_of_one(&errno.into());
        assert!(says(Errno::CONNABORTED) && says(Errno::HOSTUNREACH));
        assert!(!says(Errno::MFILE) && !says(Errno::NFILE) && !says(Errno::NOMEM));
        assert!(!is_of_one(&io::Error::other("no place")));
    }
}
