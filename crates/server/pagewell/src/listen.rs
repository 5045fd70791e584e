//! The listening sockets: bound once, accepted from until told to stop. So many connections at once
//! as the limits allow; further ones wait in the kernel's queue. When the system has no descriptors
//! left, accepting pauses for a moment instead of spinning. How they are bound: `bound`; what a client's
//! socket is at first: `socket`.
//!
//! Where the configuration says so (`proxy_protocol`), a connection begins with the PROXY protocol:
//! only trusted proxies are let in, each has to send the header, within `header_timeout`, and what
//! it says takes the place of the socket's addresses. Nothing behind the header is read here.

mod bound;
mod deferred;
mod socket;

pub use bound::{Binder, Bound, NotOpened, Passed};
pub use deferred::defer;
pub use socket::Socket;

use crate::config::{Address, Begin};
use crate::connection::{self, Spoken};
use crate::exchange::{SaidBy, Visitor};
use crate::origin::Besides;
use crate::per_address::Counted;
use crate::phase::{Phase, Told};
use crate::proxy_protocol::{self, Refused, Said, Step};
use crate::reached::Limit;
use crate::site::Site;
use crate::tls::Tls;
use crate::watched::watched;
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};
use site_rules::Peer;
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

/// How long nothing is accepted after the system refused (no descriptors left).
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// A bound socket.
pub enum Listener {
    /// TCP.
    Tcp {
        /// It.
        listener: AsyncFd<socket2::Socket>,
        /// What is known of all its connections.
        inherited: Inherited,
    },
    /// A Unix socket.
    Unix {
        /// It.
        listener: AsyncFd<socket2::Socket>,
        /// Whether its file is ours, and goes with it.
        is_ours: bool,
    },
}

/// What each connection has from its listening socket, so that the system need not be told or asked again. Of a
/// socket that somebody else has bound nothing is taken for granted: connections may wait there that came before
/// it was ours, and their ends may differ (IP_TRANSPARENT).
#[derive(Clone, Copy, Debug, Default)]
pub struct Inherited {
    /// It sends without delay.
    has_no_delay: bool,
    /// Its end here.
    local: Option<SocketAddr>,
}

/// The two ends of a connection, client first; none over a Unix socket.
pub type Ends = (Option<SocketAddr>, Option<SocketAddr>);

/// An accepted connection.
pub enum Accepted {
    /// Over TCP.
    Tcp(Socket<TcpStream>, Ends),
    /// Over a Unix socket.
    Unix(Socket<UnixStream>),
}

impl Listener {
    /// Listens, within a runtime.
    ///
    /// # Errors
    /// A sentence for the operator.
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

    /// Where it listens, with the port that was given when 0 was asked for.
    pub fn address(&self) -> Address {
        let bound = self.socket().local_addr().expect("a bound socket has an address");
        match bound.as_socket() {
            Some(address) => Address::Tcp(address),
            None => Address::Unix(bound.as_pathname().map(Path::to_owned).unwrap_or_default()),
        }
    }

    /// Whether the file of its Unix socket goes with it; not where there is none.
    pub fn is_ours(&self) -> bool {
        matches!(self, Listener::Unix { is_ours: true, .. })
    }

    /// The same socket once more, to be handed over.
    ///
    /// # Errors
    /// The system has no descriptor for it.
    pub fn copy(&self) -> io::Result<OwnedFd> {
        self.socket().as_fd().try_clone_to_owned()
    }

    /// Takes the file of a Unix socket away, once nobody is let in any more.
    pub fn remove(&self) {
        if let (true, Address::Unix(path)) = (self.is_ours(), self.address()) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The end of accepting: the file goes, unless another Pagewell lets visitors in by it.
    pub fn close(self, ended: Accepting) {
        if ended == Accepting::Stopped {
            self.remove();
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// As the system says.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp { listener, inherited } => {
                let (socket, peer) = next_of(listener).await?;
                let stream = TcpStream::from(socket);
                if !inherited.has_no_delay {
                    stream.set_nodelay(true)?;
                }
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                // Nobody of whom it is not known where he comes from is taken for somebody of this machine.
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

/// The next connection of a listening socket, whose own the runtime is not told of, and where it comes from.
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
    /// What is known where a socket was bound to `address`.
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

/// Accepts visitors until told to stop; over TLS where it is given.
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

/// Serves an accepted connection, after what has to come before.
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
    // The fields of somebody who was not named are a stranger's, though a proxy has sent them.
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

/// Counts a connection of this address in, where it is one that counts.
///
/// # Errors
/// The address has as many as it may.
fn count_in(site: &Site, peer: Option<SocketAddr>) -> Result<Option<Counted>, ()> {
    match peer.filter(|peer| is_counted(site, *peer)) {
        Some(peer) => {
            site.per_address.enter(peer, site.limits.connections_per_address).map(Some).ok_or(())
        }
        None => Ok(None),
    }
}

/// Whether what comes from an address counts as its own: of a proxy it is that of many clients.
pub fn is_counted(site: &Site, peer: SocketAddr) -> bool {
    let config = &site.config;
    !config.connections_exempt.have(peer.ip()) && !config.trusted_proxies.have(peer.ip())
}

fn shown(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string())
}

/// Whose connection this is, by the PROXY protocol's header; `None` ends it.
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

/// Reads the header and nothing behind it; none from who connects and leaves, to see whether we are
/// there.
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

/// How accepting has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepting {
    /// Told to stop.
    Stopped,
    /// Another process accepts.
    HandedOver,
}

/// Accepts connections until told to stop, and starts a task for each; as many at once as there
/// are places. `full` is called each time that one has to wait. While another process is about to take
/// over nobody is accepted: who comes waits.
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
            // Who comes first is let in first: each time round the phase is looked at anyway.
            Phase::Serving => tokio::select! {
                biased;
                accepted = accept_one(listener, &places, &full) => accepted,
                changed = stop.changed() => match changed {
                    Ok(()) => continue,
                    // Nobody is there who could say more.
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

/// Whether what was to be accepted has broken, and others can be (accept(2), "Error handling"). Any other refusal is
/// for all.
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
