//! The listening sockets: accepts connections until shutdown, up to the configured number at a time.
//! Further connections wait in the kernel's queue. If the system has no file descriptors left,
//! accepting pauses for a moment. Binding: `bound`. An accepted socket: `socket`.
//!
//! If configured (`proxy_protocol`), a connection begins with a PROXY protocol header. Then only
//! trusted proxies may connect, and each must send the header within `header_timeout`. Its addresses
//! replace those of the socket. Nothing after the header is read here.

mod bound;
mod deferred;
mod socket;

pub use bound::{Binder, Bound, NotOpened, Passed};
pub use deferred::defer;
pub use socket::Socket;

use crate::client::Besides;
use crate::client::{SaidBy, Visitor};
use crate::config::{Address, Begin};
use crate::connection::{self, Spoken};
use crate::per_address::Counted;
use crate::phase::{Phase, Told};
use crate::proxy_protocol::{self, Refused, Said, Step};
use crate::reached::Limit;
use crate::site::Site;
use crate::tls::Tls;
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use site_rules::Peer;
use sockets::watched;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long accepting pauses after the system had no file descriptors left.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// A socket that listens for connections.
pub enum Listener {
    /// A TCP socket.
    Tcp {
        /// The listening TCP socket, registered with the runtime.
        listener: AsyncFd<socket2::Socket>,
        /// Properties that all its connections share.
        inherited: Inherited,
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
pub struct Inherited {
    /// Whether TCP_NODELAY is set on all its connections.
    has_no_delay: bool,
    /// The local address, if it is the same for all connections.
    local: Option<SocketAddr>,
}

/// The addresses of a connection: client, then local. `None` for a Unix socket.
pub type Ends = (Option<SocketAddr>, Option<SocketAddr>);

/// An accepted connection, with its addresses.
pub enum Accepted {
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
    pub fn on(bound: Bound) -> Result<Listener, String> {
        let Bound { socket, by } = bound;
        let address = socket.local_addr().ok().and_then(|address| address.as_socket());
        let is_ours = matches!(by, Binder::Us | Binder::Predecessor { is_ours: true });
        let listener = watched(socket, Interest::READABLE)
            .map_err(|error| format!("a listening socket: {error}"))?;
        Ok(match address {
            Some(address) => Listener::Tcp { listener, inherited: Inherited::by(by, address) },
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
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp { listener, inherited } => {
                let (socket, peer) = next_of(listener).await?;
                let stream = TcpStream::from(socket);
                if !inherited.has_no_delay {
                    stream.set_nodelay(true)?;
                }
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                // A connection with an unknown address is not treated as local.
                let peer = peer.ok_or(Errno::CONNABORTED)?;
                let local = inherited.local.or_else(|| stream.local_addr().ok());
                Ok(Accepted::Tcp(Socket::new(stream), (Some(peer), local)))
            }
            Listener::Unix { listener, .. } => {
                let (socket, _) = next_of(listener).await?;
                Ok(Accepted::Unix(Socket::new(UnixStream::from(socket))))
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

impl Inherited {
    /// The properties of a socket that is bound to `address`.
    fn by(binder: Binder, address: SocketAddr) -> Inherited {
        match binder {
            Binder::Us => {
                let local = (!address.ip().is_unspecified()).then_some(address);
                Inherited { has_no_delay: true, local }
            }
            Binder::Manager | Binder::Predecessor { .. } => Inherited::default(),
        }
    }
}

/// Accepts client connections until shutdown; over TLS if `tls` is given.
pub async fn serve(
    listener: Listener,
    begin: Begin,
    tls: Option<Arc<Tls>>,
    site: Arc<Site>,
    stop: Told,
) {
    let places = site.connections.clone();
    let full = || site.counters.reached.note(Limit::Connections);
    let ended = accept_each(&listener, places, full, stop.clone(), |accepted, place| {
        let (tls, site, stop) = (tls.clone(), site.now(), stop.clone());
        async move {
            site.counters.connections_accepted.add();
            let _open = site.counters.connections.during();
            match accepted {
                Accepted::Tcp(stream, ends) => {
                    welcome(stream, begin, ends, tls, &site, stop).await;
                }
                Accepted::Unix(stream) => {
                    welcome(stream, begin, (None, None), tls, &site, stop).await;
                }
            }
            drop(place);
        }
    })
    .await;
    listener.close(ended);
}

/// Serves an accepted connection, after the PROXY header and the TLS handshake where configured.
async fn welcome<IO>(
    mut io: IO,
    begin: Begin,
    ends: Ends,
    tls: Option<Arc<Tls>>,
    site: &Arc<Site>,
    mut stop: Told,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ((peer, local), said) = match begin {
        Begin::Client => (ends, Said::Own),
        Begin::Proxied => {
            let named = tokio::select! {
                named = introduced(&mut io, ends.0, site) => named,
                _ = stop.wait_for(Phase::is_over) => return,
            };
            match named {
                Some(said @ Said::Client { from, to }) => ((Some(from), Some(to)), said),
                Some(said) => (ends, said),
                None => return,
            }
        }
    };
    let Ok(_counted) = count_in(site, peer) else {
        site.counters.reached.note(Limit::ConnectionsPerAddress);
        tracing::debug!(event = "too-many-of-one-address", peer = %shown(peer));
        return;
    };
    // If the proxy does not know the client, header fields that it forwards are not trusted.
    let believed = match said != Said::Unknown && site.config.trusted_proxies.have_peer(peer) {
        true => Peer::Trusted,
        false => Peer::Anybody,
    };
    let said_by = match said {
        Said::Own => SaidBy::Socket,
        Said::Client { .. } => SaidBy::Proxy,
        Said::Unknown => SaidBy::Nobody,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let visitor = Visitor { peer, local, scheme, believed, said_by, besides: Besides::default() };
    match tls {
        None => connection::serve_plain(io, visitor, site.clone(), stop).await,
        Some(tls) => Box::pin(shake(io, &tls, visitor, site.clone(), stop)).await,
    }
}

/// Counts a connection for its address, unless the address is exempt.
///
/// # Errors
/// The address has the maximum number of connections.
fn count_in(site: &Site, peer: Option<SocketAddr>) -> Result<Option<Counted>, ()> {
    match peer.filter(|peer| is_counted(site, *peer)) {
        Some(peer) => {
            site.per_address.enter(peer, site.limits.connections_per_address).map(Some).ok_or(())
        }
        None => Ok(None),
    }
}

/// Whether an address is subject to limits per address. Proxies are not, because they connect for many
/// clients.
pub fn is_counted(site: &Site, peer: SocketAddr) -> bool {
    let config = &site.config;
    !config.connections_exempt.have(peer.ip()) && !config.trusted_proxies.have(peer.ip())
}

fn shown(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string())
}

/// Reads the addresses in the PROXY protocol header; `None` if the connection has to end.
async fn introduced<IO>(io: &mut IO, peer: Option<SocketAddr>, site: &Site) -> Option<Said>
where
    IO: AsyncRead + Unpin,
{
    let header = async {
        match site.config.trusted_proxies.have_peer(peer) {
            true => read_header(io).await,
            false => Err(Refused::Untrusted),
        }
    };
    let refused = match timeout(site.limits.header_timeout, header).await {
        Ok(Ok(said)) => return said,
        Ok(Err(refused)) => refused,
        Err(_) => {
            site.counters.reached.note(Limit::HeaderTimeout);
            Refused::Incomplete
        }
    };
    site.counters.proxies_refused.add();
    tracing::debug!(event = "proxy-refused", reason = refused.as_str(), peer = %shown(peer));
    None
}

/// Reads the header and nothing after it. `None` if the peer closes the connection without sending
/// anything, as health checks do.
async fn read_header<IO: AsyncRead + Unpin>(io: &mut IO) -> Result<Option<Said>, Refused> {
    let mut bytes = Vec::new();
    loop {
        let missing = match proxy_protocol::read(&bytes)? {
            Step::Done(said) => return Ok(Some(said)),
            Step::More(missing) => missing as u64,
        };
        match (&mut *io).take(missing).read_buf(&mut bytes).await {
            Ok(0) | Err(_) if bytes.is_empty() => return Ok(None),
            Ok(0) | Err(_) => return Err(Refused::Incomplete),
            Ok(_) => {}
        }
    }
}

/// Serves a connection after its TLS handshake.
async fn shake<IO>(io: IO, tls: &Tls, visitor: Visitor, site: Arc<Site>, mut stop: Told)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = tokio::select! {
        shaken = timeout(site.limits.handshake_timeout, tls.acceptor().accept(io)) => shaken,
        _ = stop.wait_for(Phase::is_over) => return,
    };
    let refused = match shaken {
        Ok(Ok(io)) => {
            let spoken = match io.get_ref().1.alpn_protocol() {
                Some(b"h2") => Spoken::Http2(Vec::new()),
                _ => Spoken::Http1(Vec::new()),
            };
            return connection::serve(io, spoken, visitor, site, stop).await;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            site.counters.reached.note(Limit::HandshakeTimeout);
            "it took too long".to_owned()
        }
    };
    site.counters.handshakes_failed.add();
    tracing::debug!(event = "handshake-failed", error = refused);
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
    mut stop: Told,
    each: impl Fn(Accepted, tokio::sync::OwnedSemaphorePermit) -> F,
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
) -> io::Result<(Accepted, tokio::sync::OwnedSemaphorePermit)> {
    if places.available_permits() == 0 {
        full();
    }
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_before_it_is_accepted_stops_nobody_else() {
        let says = |errno: Errno| is_of_one(&errno.into());
        assert!(says(Errno::CONNABORTED) && says(Errno::HOSTUNREACH));
        assert!(!says(Errno::MFILE) && !says(Errno::NFILE) && !says(Errno::NOMEM));
        assert!(!is_of_one(&io::Error::other("no place")));
    }
}
