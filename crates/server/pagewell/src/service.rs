//! The interface to a service manager such as systemd. It is notified when Pagewell is ready, when it
//! stops, and regularly that it is healthy (watchdog). It may pass sockets that it has bound. The
//! protocol uses environment variables and one datagram per message, without a library.
//!
//! Without a service manager, nothing is sent and nothing else changes.

pub mod passed;
pub mod successor;
pub mod watchdog;

use std::borrow::Cow;
use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The connection to the service manager, if there is one.
pub struct Supervisor {
    socket: Option<UnixDatagram>,
}

/// A message to the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// Requests are being served.
    Ready,
    /// Pagewell is stopping.
    Stopping,
    /// Pagewell is healthy (watchdog).
    Well,
    /// The process with this id has replaced this one, and is the main process of the service now.
    Successor(i32),
}

impl Tell {
    /// The text of the message, as in sd_notify(3).
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
    /// Connects to the service manager that the environment names. A failure is logged, and no messages
    /// are sent then.
    pub fn of_environment() -> Supervisor {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Supervisor { socket: None } };
        let address = match name.as_bytes() {
            // An abstract socket address (unix(7)).
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
        };
        let socket = address.and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            // Sending must not block if the manager does not read.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        if let Err(error) = &socket {
            tracing::warn!(event = "manager-unreachable", %error);
        }
        Supervisor { socket: socket.ok() }
    }

    /// Sends a message to the service manager; errors are logged.
    pub fn tell(&self, what: Tell) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(what.text().as_bytes()) {
            tracing::warn!(event = "manager-unreachable", %error);
        }
    }

    /// The watchdog timeout: the maximum interval between two messages that Pagewell is healthy. `None`
    /// if the watchdog is disabled.
    pub fn waits(&self) -> Option<Duration> {
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = |pid: u64| pid == u64::from(std::process::id());
        if !number("WATCHDOG_PID").is_none_or(is_ours) || self.socket.is_none() {
            return None;
        }
        number("WATCHDOG_USEC").filter(|us| *us > 0).map(Duration::from_micros)
    }
}
