//! The interface to a service manager such as systemd. It is notified when Pagewell is ready, when it
//! stops, and regularly that it is healthy (watchdog). It may pass sockets that it has bound.
//! `sd-notify` implements the protocol: messages, watchdog settings and passed descriptors. Sending is
//! done here, because the library blocks and does not support abstract socket addresses.
//!
//! Without a service manager, nothing is sent and nothing else changes.

pub mod passed;
pub mod successor;
pub mod watchdog;

use sd_notify::NotifyState;
use std::env;
use std::fmt::Write;
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
    /// The text of the message (sd_notify(3)): one assignment per line.
    fn text(self) -> String {
        const SERVING: [NotifyState<'static>; 2] =
            [NotifyState::Ready, NotifyState::Status("Serving")];
        let [ready, serving] = SERVING;
        match self {
            Tell::Ready => lines(&SERVING),
            Tell::Stopping => lines(&[NotifyState::Stopping, NotifyState::Status("Stopping")]),
            Tell::Well => lines(&[NotifyState::Watchdog]),
            Tell::Successor(pid) => {
                lines(&[NotifyState::MainPid(pid.unsigned_abs()), ready, serving])
            }
        }
    }
}

/// Joins these assignments to the text of one message.
fn lines(states: &[NotifyState]) -> String {
    let mut text = String::new();
    for state in states {
        let separator = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{separator}{state}");
    }
    text
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
        self.socket.as_ref()?;
        sd_notify::watchdog_enabled().filter(|timeout| !timeout.is_zero())
    }
}
