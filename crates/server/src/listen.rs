//! The listening sockets: bound once, accepted from until told to stop. So many connections at once
//! as the limits allow; further ones wait in the kernel's queue. When the system has no descriptors
//! left, accepting pauses for a moment instead of spinning.
//!
//! Where the configuration says so (`proxy_protocol`), a connection begins with the PROXY protocol:
//! only trusted proxies are let in, each has to send the header, within `header_timeout`, and what
//! it says takes the place of the socket's addresses. Nothing behind the header is read here.

use crate::config::Address;
use crate::connection::{self, Spoken};
use crate::exchange::{SaidBy, Visitor};
use crate::origin::Besides;
use crate::per_address::Counted;
use crate::proxy_protocol::{self, Refused, Said, Step};
use crate::reached::Limit;
use crate::site::Site;
use crate::tls::Tls;
use site_rules::Peer;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

/// Connections that may wait in the kernel's queue; the kernel may allow fewer (somaxconn).
const BACKLOG: i32 = 4_096;
/// How long nothing is accepted after the system refused (no descriptors left).
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// A bound socket.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix {
        /// It.
        listener: UnixListener,
        /// Whether its file is ours, and goes with it.
        is_ours: bool,
    },
}

/// Sockets that were handed over, bound already, and not used yet.
#[derive(Default)]
pub struct Passed(Vec<socket2::Socket>);

/// An accepted connection.
pub enum Accepted {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Passed {
    /// Those that were handed over.
    pub fn new(all: Vec<OwnedFd>) -> Passed {
        Passed(all.into_iter().map(socket2::Socket::from).collect())
    }

    /// The one that listens at this address.
    fn at(&mut self, address: &Address) -> Option<socket2::Socket> {
        let found = self.0.iter().position(|socket| listens_at(socket, address))?;
        Some(self.0.swap_remove(found))
    }

    /// Refuses those that nothing in the configuration asks for: whoever bound them expects visitors there.
    ///
    /// # Errors
    /// A sentence that names one.
    pub fn all_used(&self) -> Result<(), String> {
        let Some(left) = self.0.first() else { return Ok(()) };
        let address = left.local_addr().ok();
        let shown = match address.as_ref() {
            Some(address) if address.as_socket().is_some() => {
                address.as_socket().map(|tcp| tcp.to_string()).unwrap_or_default()
            }
            Some(address) => address
                .as_pathname()
                .map_or("somewhere".into(), |path| format!("unix:{}", path.display())),
            None => "somewhere".into(),
        };
        Err(format!(
            "a socket was handed over that listens at {shown}, but listen does not name it"
        ))
    }
}

/// Whether a socket listens at an address. `[::]` serves IPv4 as well, and is what service managers make of
/// a mere port.
fn listens_at(socket: &socket2::Socket, address: &Address) -> bool {
    let Ok(bound) = socket.local_addr() else { return false };
    match address {
        Address::Unix(path) => bound.as_pathname() == Some(path),
        Address::Tcp(wanted) => bound.as_socket().is_some_and(|bound| {
            let both_any = bound.ip().is_unspecified() && wanted.ip().is_unspecified();
            bound.port() == wanted.port() && (both_any || bound.ip() == wanted.ip())
        }),
    }
}

impl Listener {
    /// Binds an address, or takes the socket that was handed over for it.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(address: &Address, passed: &mut Passed) -> Result<Listener, String> {
        let Some(socket) = passed.at(address) else { return Listener::bind(address) };
        let taken = socket.set_nonblocking(true).and_then(|()| match address {
            Address::Tcp(_) => TcpListener::from_std(socket.into()).map(Listener::Tcp),
            Address::Unix(_) => UnixListener::from_std(socket.into())
                .map(|listener| Listener::Unix { listener, is_ours: false }),
        });
        taken.map_err(|error| format!("the socket handed over for {address}: {error}"))
    }

    /// Binds an address.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn bind(address: &Address) -> Result<Listener, String> {
        let ours = |listener| Listener::Unix { listener, is_ours: true };
        let bound = match address {
            Address::Tcp(address) => bind_tcp(*address).map(Listener::Tcp),
            Address::Unix(path) => bind_unix(path).map(ours),
        };
        bound.map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrInUse => ": another program is listening there",
                io::ErrorKind::PermissionDenied => {
                    ": ports below 1024 need root or CAP_NET_BIND_SERVICE"
                }
                io::ErrorKind::AddrNotAvailable => ": this machine has no such address",
                _ => "",
            };
            format!("cannot listen on {address}{hint} ({error})")
        })
    }

    /// Where it listens, with the port that was given when 0 was asked for.
    pub fn address(&self) -> Address {
        match self {
            Listener::Tcp(listener) => {
                Address::Tcp(listener.local_addr().expect("a bound socket has an address"))
            }
            Listener::Unix { listener, .. } => Address::Unix(
                listener
                    .local_addr()
                    .ok()
                    .and_then(|address| address.as_pathname().map(Path::to_owned))
                    .unwrap_or_default(),
            ),
        }
    }

    /// Takes the file of a Unix socket away, once nobody is let in any more.
    pub fn remove(&self) {
        if let (Listener::Unix { is_ours: true, .. }, Address::Unix(path)) = (self, self.address())
        {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// As the system says.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(stream))
            }
            Listener::Unix { listener, .. } => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}

fn bind_tcp(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // [::] serves IPv4 as well, as operators expect.
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Binds a Unix socket; one that nobody listens on any more is replaced.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    // Like a port: whoever is on this machine may connect. The directory can be stricter.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// What its client says.
    Client,
    /// The PROXY protocol.
    Proxied,
}

/// Accepts visitors until told to stop; over TLS where it is given.
pub async fn serve(
    listener: Listener,
    begin: Begin,
    tls: Option<Arc<Tls>>,
    site: Arc<Site>,
    stop: watch::Receiver<bool>,
) {
    let places = site.connections.clone();
    let full = || site.counters.reached.note(Limit::Connections);
    accept_each(&listener, places, full, stop.clone(), |accepted, place| {
        let (tls, site, stop) = (tls.clone(), site.now(), stop.clone());
        async move {
            site.counters.connections_accepted.add();
            let _open = site.counters.connections.during();
            match accepted {
                Accepted::Tcp(stream) => {
                    let ends = (stream.peer_addr().ok(), stream.local_addr().ok());
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
    listener.remove();
}

/// The two ends of a connection, client first; none over a Unix socket.
type Ends = (Option<SocketAddr>, Option<SocketAddr>);

/// Serves an accepted connection, after what has to come before.
async fn welcome<IO>(
    mut io: IO,
    begin: Begin,
    ends: Ends,
    tls: Option<Arc<Tls>>,
    site: &Arc<Site>,
    mut stop: watch::Receiver<bool>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ((peer, local), said) = match begin {
        Begin::Client => (ends, Said::Own),
        Begin::Proxied => {
            let named = tokio::select! {
                named = introduced(&mut io, ends.0, site) => named,
                _ = stop.wait_for(|stop| *stop) => return,
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
    let (config, most) = (&site.config, site.limits.connections_per_address);
    match peer {
        Some(peer)
            if !config.connections_exempt.have(peer.ip())
                && !config.trusted_proxies.have(peer.ip()) =>
        {
            site.per_address.enter(peer, most).map(Some).ok_or(())
        }
        _ => Ok(None),
    }
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
async fn shake<IO>(
    io: IO,
    tls: &Tls,
    visitor: Visitor,
    site: Arc<Site>,
    mut stop: watch::Receiver<bool>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = tokio::select! {
        shaken = timeout(site.limits.handshake_timeout, tls.acceptor().accept(io)) => shaken,
        _ = stop.wait_for(|stop| *stop) => return,
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

/// Accepts connections until told to stop, and starts a task for each; as many at once as there
/// are places. `full` is called each time that one has to wait.
pub async fn accept_each<F>(
    listener: &Listener,
    places: Arc<Semaphore>,
    full: impl Fn(),
    mut stop: watch::Receiver<bool>,
    each: impl Fn(Accepted, tokio::sync::OwnedSemaphorePermit) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = accept_one(listener, &places, &full) => accepted,
        };
        match accepted {
            Ok((accepted, place)) => drop(tokio::spawn(each(accepted, place))),
            Err(error) => {
                tracing::error!(event = "accept-failed", %error);
                tokio::time::sleep(AFTER_REFUSAL).await;
            }
        }
    }
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
