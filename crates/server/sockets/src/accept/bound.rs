//! Bound sockets: bound by this process, passed by a service manager, or passed by another Pagewell in
//! a zero-downtime restart. They exist before there is a runtime, and nothing is accepted from them
//! yet. A passed socket that the configuration does not use is an error or is closed, depending on its
//! origin.

use super::deferred;
use config::Address;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Length of the kernel's queue of connections that wait to be accepted; `somaxconn` may limit it
/// further.
const BACKLOG: i32 = 4_096;

/// Bytes that the kernel buffers for a client and has not sent yet. Without a limit its send buffer
/// grows to 4 MB (`tcp_wmem`), and is writable again when a third of it is free: a client that reads
/// slowly would seem not to read at all, and would occupy memory that nobody counts. Data on the network
/// is in addition, so the limit does not reduce throughput.
const UNSENT_BYTES_MAX: u32 = 128 << 10;

/// Sockets that were passed to this process and are not used yet.
#[derive(Default)]
pub struct PassedSockets(Vec<BoundSocket>);

/// A bound socket from which nothing is accepted yet. It can exist before there is a runtime.
pub struct BoundSocket {
    pub(super) socket: socket2::Socket,
    pub(super) by: Binder,
}

/// Why a socket could not be opened.
#[derive(Debug)]
pub struct NotOpened {
    /// The reason, a sentence for the operator.
    pub sentence: String,
    /// Whether another program uses the address.
    pub is_taken: bool,
}

/// The process that bound a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binder {
    /// A service manager (systemd), which keeps the socket open and expects it to be served.
    Manager,
    /// This process bound the socket itself.
    Us,
    /// Another Pagewell, which this process replaces. `is_ours`: a Pagewell created the Unix socket's
    /// file.
    Predecessor {
        /// Whether the last Pagewell that uses the socket removes its file.
        is_ours: bool,
    },
}

impl PassedSockets {
    /// The sockets that a service manager has passed.
    pub fn new(all: Vec<OwnedFd>) -> PassedSockets {
        let mut passed = PassedSockets::default();
        all.into_iter().for_each(|socket| passed.add(socket, Binder::Manager));
        passed
    }

    /// Adds a socket that `by` has bound.
    pub fn add(&mut self, socket: OwnedFd, by: Binder) {
        self.0.push(BoundSocket { socket: socket.into(), by });
    }

    /// Takes the socket that listens on this address.
    fn at(&mut self, address: &Address) -> Option<BoundSocket> {
        let found = self.0.iter().position(|bound| listens_at(&bound.socket, address))?;
        // In their order: those from the service manager come first.
        Some(self.0.remove(found))
    }

    /// Checks that all passed sockets are used. An unused socket of a service manager is an error,
    /// because the manager expects it to be served. An unused socket of a predecessor is closed.
    ///
    /// # Errors
    /// A sentence that names the unused socket.
    pub fn all_used(self) -> Result<(), String> {
        for BoundSocket { socket, by } in &self.0 {
            let shown = place_of(socket);
            match by {
                Binder::Manager => {
                    return Err(format!(
                        "a socket was handed over that listens at {shown}, but listen does not name it"
                    ));
                }
                // Such sockets are never passed.
                Binder::Us => {}
                Binder::Predecessor { is_ours } => {
                    tracing::info!(event = "address-given-up", address = shown);
                    let bound = socket.local_addr().ok();
                    if let (true, Some(path)) =
                        (*is_ours, bound.as_ref().and_then(|a| a.as_pathname()))
                    {
                        let _ = std::fs::remove_file(path);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The address of a socket as text, for messages.
fn place_of(socket: &socket2::Socket) -> String {
    let address = socket.local_addr().ok();
    let tcp = address.as_ref().and_then(|address| address.as_socket());
    let path = address.as_ref().and_then(|address| address.as_pathname());
    match (tcp, path) {
        (Some(tcp), _) => tcp.to_string(),
        (None, Some(path)) => format!("unix:{}", path.display()),
        (None, None) => "somewhere".into(),
    }
}

/// Whether a socket listens on an address. `[::]` serves IPv4 as well, and service managers use it for
/// a plain port number.
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

impl BoundSocket {
    /// Binds an address, or takes the passed socket for it. Any local user may connect to a Unix
    /// socket.
    ///
    /// # Errors
    /// The address is in use, does not belong to this machine, or needs a privilege.
    pub fn open(address: &Address, passed: &mut PassedSockets) -> Result<BoundSocket, NotOpened> {
        BoundSocket::open_for(ANYBODY, address, passed)
    }

    /// Like [`BoundSocket::open`], for protocols in which the client sends first. A connection is accepted
    /// only when it has sent data, or after one second without. The options of a service manager's
    /// socket are not changed.
    ///
    /// # Errors
    /// As for [`BoundSocket::open`].
    pub fn open_for_visitors(
        address: &Address,
        passed: &mut PassedSockets,
    ) -> Result<BoundSocket, NotOpened> {
        let bound = BoundSocket::open(address, passed)?;
        if let (Address::Tcp(_), Binder::Us) = (address, bound.by) {
            // Optional: without kernel support, silent connections are accepted at once.
            let _ = deferred::defer(&bound.socket);
        }
        Ok(bound)
    }

    /// Like [`BoundSocket::open`], with the file mode `mode` for a Unix socket. Only those with write
    /// permission may connect.
    ///
    /// # Errors
    /// As for [`BoundSocket::open`].
    pub fn open_for(
        mode: u32,
        address: &Address,
        passed: &mut PassedSockets,
    ) -> Result<BoundSocket, NotOpened> {
        if let Some(bound) = passed.at(address) {
            let set = bound.socket.set_nonblocking(true);
            set.map_err(|error| format!("the socket handed over for {address}: {error}"))?;
            return Ok(bound);
        }
        let bound = match address {
            Address::Tcp(address) => bind_tcp(*address),
            Address::Unix(path) => bind_unix(path, mode),
        };
        let bound = bound.map(|socket| BoundSocket { socket, by: Binder::Us });
        bound.map_err(|error| {
            let is_taken = error.kind() == io::ErrorKind::AddrInUse;
            let hint = match (error.kind(), address) {
                (io::ErrorKind::AddrInUse, _) => ": another program is listening there",
                (io::ErrorKind::PermissionDenied, Address::Tcp(_)) => {
                    ": ports below 1024 need root or CAP_NET_BIND_SERVICE"
                }
                (io::ErrorKind::PermissionDenied, Address::Unix(_)) => {
                    ": Pagewell's user needs write access to the directory"
                }
                (io::ErrorKind::NotFound, Address::Unix(_)) => ": there is no such directory",
                (io::ErrorKind::AddrNotAvailable, _) => ": this machine has no such address",
                _ => "",
            };
            NotOpened { sentence: format!("cannot listen on {address}{hint} ({error})"), is_taken }
        })
    }
}

impl From<String> for NotOpened {
    fn from(sentence: String) -> NotOpened {
        NotOpened { sentence, is_taken: false }
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<socket2::Socket> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `[::]` serves IPv4 as well, as operators expect.
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    // Set before `listen`, so that every connection inherits them.
    set_client_options(socket2::SockRef::from(&socket))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Sets the options of clients' connections: TCP_NODELAY, because responses are written whole, and
/// TCP_NOTSENT_LOWAT ([`UNSENT_BYTES_MAX`]).
///
/// # Errors
/// The error from `setsockopt`.
pub(super) fn set_client_options(socket: socket2::SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

/// Any local user may connect to a Unix socket, as to a port. The directory's mode can restrict that.
const ANYBODY: u32 = 0o666;

/// Binds a Unix socket. Replaces an existing socket file on which no process listens.
fn bind_unix(path: &Path, mode: u32) -> io::Result<socket2::Socket> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    // Set before `listen`, so that no unauthorised user can connect in between.
    trusted_files::set_socket_mode(path, mode)?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
