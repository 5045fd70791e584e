//! Sockets that are bound: by this process, by a service manager, or by another Pagewell whose place is taken. They
//! can be had before there is a runtime, and nobody is accepted from them yet. What was handed over and is
//! not asked for is refused or closed, by whose it is.

use super::deferred;
use crate::config::Address;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Connections that may wait in the kernel's queue; the kernel may allow fewer (somaxconn).
const BACKLOG: i32 = 4_096;

/// Sockets that are bound already, and not used yet.
#[derive(Default)]
pub struct Passed(Vec<Bound>);

/// A bound socket that nobody is accepted from yet. It can be had before there is a runtime.
pub struct Bound {
    pub(super) socket: socket2::Socket,
    pub(super) by: Binder,
}

/// Why something could not be opened.
#[derive(Debug)]
pub struct NotOpened {
    /// For the operator.
    pub sentence: String,
    /// Whether somebody else has the address.
    pub is_taken: bool,
}

/// Who has bound a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binder {
    /// A service manager, who keeps it, and expects visitors there.
    Manager,
    /// This process.
    Us,
    /// Another Pagewell, whose place is taken. `is_ours`: the file of a Unix socket is a Pagewell's.
    Predecessor {
        /// Whether its file goes with the last Pagewell that has it.
        is_ours: bool,
    },
}

impl Passed {
    /// Those that a service manager has handed over.
    pub fn new(all: Vec<OwnedFd>) -> Passed {
        let mut passed = Passed::default();
        all.into_iter().for_each(|socket| passed.add(socket, Binder::Manager));
        passed
    }

    /// One more.
    pub fn add(&mut self, socket: OwnedFd, by: Binder) {
        self.0.push(Bound { socket: socket.into(), by });
    }

    /// The one that listens at this address.
    fn at(&mut self, address: &Address) -> Option<Bound> {
        let found = self.0.iter().position(|bound| listens_at(&bound.socket, address))?;
        // In their order: what a manager has handed over comes first.
        Some(self.0.remove(found))
    }

    /// Refuses those of a service manager that nothing in the configuration asks for: whoever bound them
    /// expects visitors there. Others are closed: nobody is let in there any more.
    ///
    /// # Errors
    /// A sentence that names one.
    pub fn all_used(self) -> Result<(), String> {
        for Bound { socket, by } in &self.0 {
            let shown = place_of(socket);
            match by {
                Binder::Manager => {
                    return Err(format!(
                        "a socket was handed over that listens at {shown}, but listen does not name it"
                    ));
                }
                // Not passed to anybody.
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

/// Where a socket listens, for people.
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

impl Bound {
    /// Binds an address, or takes the socket that was handed over for it.
    ///
    /// # Errors
    /// The address is taken, is none of this machine's, or needs a right.
    pub fn open(address: &Address, passed: &mut Passed) -> Result<Bound, NotOpened> {
        Bound::open_for(ANYBODY, address, passed)
    }

    /// The same for visitors, who speak first: they are let in when they have, or have been silent for a second.
    /// A socket of a service manager is as it was set up.
    ///
    /// # Errors
    /// As above.
    pub fn open_for_visitors(address: &Address, passed: &mut Passed) -> Result<Bound, NotOpened> {
        let bound = Bound::open(address, passed)?;
        if let (Address::Tcp(_), Binder::Us) = (address, bound.by) {
            // What the kernel will not do is done here: who says nothing is waited for.
            let _ = deferred::defer(&bound.socket);
        }
        Ok(bound)
    }

    /// As `open`, and a Unix socket is for those only whom `mode` lets write to it.
    ///
    /// # Errors
    /// As above.
    pub fn open_for(mode: u32, address: &Address, passed: &mut Passed) -> Result<Bound, NotOpened> {
        if let Some(bound) = passed.at(address) {
            let set = bound.socket.set_nonblocking(true);
            set.map_err(|error| format!("the socket handed over for {address}: {error}"))?;
            return Ok(bound);
        }
        let bound = match address {
            Address::Tcp(address) => bind_tcp(*address),
            Address::Unix(path) => bind_unix(path, mode),
        };
        let bound = bound.map(|socket| Bound { socket, by: Binder::Us });
        bound.map_err(|error| {
            let is_taken = error.kind() == io::ErrorKind::AddrInUse;
            let hint = match error.kind() {
                io::ErrorKind::AddrInUse => ": another program is listening there",
                io::ErrorKind::PermissionDenied => {
                    ": ports below 1024 need root or CAP_NET_BIND_SERVICE"
                }
                io::ErrorKind::AddrNotAvailable => ": this machine has no such address",
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
        // [::] serves IPv4 as well, as operators expect.
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    // Before it listens, so that every connection has it from the start.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Like a port: whoever is on this machine may connect to a Unix socket. Its directory can be stricter.
const ANYBODY: u32 = 0o666;

/// Binds a Unix socket; one that nobody listens on any more is replaced.
fn bind_unix(path: &Path, mode: u32) -> io::Result<socket2::Socket> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    // Before it listens: nobody gets in whom it is not for.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
