//! The service manager that has started Pagewell, where it is one of systemd's kind: it is told when
//! visitors are served, when Pagewell stops, and now and then that it is well; and it may hand over
//! sockets that it has bound. All by its environment, with no library: a datagram a message.
//!
//! Where there is none, nothing is said, and nothing else differs.

pub mod passed;
pub mod successor;
pub mod watchdog;

use std::borrow::Cow;
use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The environment by which such a manager speaks; not for what Pagewell starts itself.
pub const ENVIRONMENT: [&str; 6] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

/// The service manager, if there is one.
pub struct Supervisor {
    socket: Option<UnixDatagram>,
}

/// What it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// Visitors are served.
    Ready,
    /// Pagewell stops.
    Stopping,
    /// It is well.
    Well,
    /// Another process has taken over: that is the service from now on.
    Successor(i32),
}

impl Tell {
    /// As sd_notify(3) has it.
    fn text(self) -> Cow<'static, str> {
        match self {
            Tell::Ready => "READY=1\nSTATUS=Serving".into(),
            Tell::Stopping => "STOPPING=1\nSTATUS=Stopping".into(),
            Tell::Well => "WATCHDOG=1".into(),
            Tell::Successor(pid) => format!("MAINPID={pid}\nREADY=1\nSTATUS=Serving").into(),
        }
    }
}

impl Supervisor {
    /// The one that the environment names. One that cannot be reached is none, and is logged.
    pub fn of_environment() -> Supervisor {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Supervisor { socket: None } };
        let address = match name.as_bytes() {
            // A name that is no file's (unix(7)).
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
        };
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            // Nobody waits for a manager that does not read.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        if let Err(error) = &socket {
            tracing::warn!(event = "manager-unreachable", %error);
        }
        Supervisor { socket: socket.ok() }
    }

    /// Tells it something.
    pub fn tell(&self, what: Tell) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(what.text().as_bytes()) {
            tracing::warn!(event = "manager-unreachable", %error);
        }
    }

    /// How long it waits to be told that Pagewell is well; none where it does not.
    pub fn waits(&self) -> Option<Duration> {
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = |pid: u64| pid == u64::from(std::process::id());
        if !number("WATCHDOG_PID").is_none_or(is_ours) || self.socket.is_none() {
            return None;
        }
        number("WATCHDOG_USEC").filter(|us| *us > 0).map(Duration::from_micros)
    }
}
