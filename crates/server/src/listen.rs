//! The listening sockets: bound once, accepted from until told to stop. So many connections at once
//! as the limits allow; further ones wait in the kernel's queue. When the system has no descriptors
//! left, accepting pauses for a moment instead of spinning.

use crate::config::Address;
use crate::connection::{self, Spoken};
use crate::exchange::Visitor;
use crate::site::Site;
use crate::tls::Tls;
use site_rules::Peer;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
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
    Unix(UnixListener),
}

/// An accepted connection.
pub enum Accepted {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Listener {
    /// Binds an address.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn bind(address: &Address) -> Result<Listener, String> {
        let bound = match address {
            Address::Tcp(address) => bind_tcp(*address).map(Listener::Tcp),
            Address::Unix(path) => bind_unix(path).map(Listener::Unix),
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
            Listener::Unix(listener) => Address::Unix(
                listener
                    .local_addr()
                    .ok()
                    .and_then(|address| address.as_pathname().map(Path::to_owned))
                    .unwrap_or_default(),
            ),
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
            Listener::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
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

/// Accepts visitors until told to stop; over TLS where it is given.
pub async fn serve(
    listener: Listener,
    tls: Option<Arc<Tls>>,
    site: Arc<Site>,
    stop: watch::Receiver<bool>,
) {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let places = site.connections.clone();
    accept_each(&listener, places, stop.clone(), |accepted, place| {
        let (tls, site, stop) = (tls.clone(), site.clone(), stop.clone());
        async move {
            site.counters.connections_accepted.add();
            let _open = site.counters.connections.during();
            match accepted {
                Accepted::Tcp(stream) => {
                    let (peer, local) = (stream.peer_addr().ok(), stream.local_addr().ok());
                    let visitor = Visitor { peer, local, scheme, believed: Peer::Anybody };
                    welcome(stream, tls, visitor, site.clone(), stop).await;
                }
                Accepted::Unix(stream) => {
                    let (peer, local) = (None, None);
                    let visitor = Visitor { peer, local, scheme, believed: Peer::Anybody };
                    welcome(stream, tls, visitor, site.clone(), stop).await;
                }
            }
            drop(place);
        }
    })
    .await;
    if let Address::Unix(path) = listener.address() {
        let _ = std::fs::remove_file(path);
    }
}

/// Serves an accepted connection, after the TLS handshake where there is one to be made.
async fn welcome<IO>(
    io: IO,
    tls: Option<Arc<Tls>>,
    visitor: Visitor,
    site: Arc<Site>,
    mut stop: watch::Receiver<bool>,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = tls else {
        return connection::serve_plain(io, visitor, site, stop).await;
    };
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
        Err(_) => "it took too long".to_owned(),
    };
    site.counters.handshakes_failed.add();
    tracing::debug!(event = "handshake-failed", error = refused);
}

/// Accepts connections until told to stop, and starts a task for each; as many at once as there
/// are places.
pub async fn accept_each<F>(
    listener: &Listener,
    places: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
    each: impl Fn(Accepted, tokio::sync::OwnedSemaphorePermit) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = accept_one(listener, &places) => accepted,
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
) -> io::Result<(Accepted, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?, place))
}
