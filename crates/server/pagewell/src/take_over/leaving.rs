//! The old process of a zero-downtime restart (`take_over`): it hands over its sockets, then its
//! place, step by step. Until the new process is ready, a failure changes nothing here. After that
//! this process answers nothing from its cache any more, even if the new one fails. It serves one
//! new process at a time; others wait. `successor` reports the changes.

use super::socket::{self, Peer, Socket};
use super::{FREE, GREETING, PREPARED, Successor};
use crate::snapshot;
use config::Address;
use delivery::site::Site;
use serde_json::json;
use site_state::phase::Phase;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::{oneshot, watch};

/// The longest time until the new process is ready, which includes starting php-fpm.
const PREPARING: Duration = Duration::from_secs(60);
/// The longest time from then until the new process serves requests.
const BEGINNING: Duration = Duration::from_secs(60);

/// A listening socket that may be handed over.
pub struct Open {
    /// A duplicate of the listening socket.
    pub socket: OwnedFd,
    /// Whether the owner of the socket deletes the file of a Unix socket.
    pub is_ours: bool,
}

/// Everything that a process hands over: its sockets and its place.
pub struct Doorway {
    site: Arc<Site>,
    phase: Arc<watch::Sender<Phase>>,
    sockets: Mutex<Vec<Open>>,
}

/// The process that has taken over.
#[derive(Clone, Copy, Debug)]
pub struct SuccessorPid {
    /// The process ID of the new process.
    pub pid: i32,
}

impl Doorway {
    /// Creates the state for handing over these sockets, and the place of these sites.
    pub fn new(site: Arc<Site>, phase: Arc<watch::Sender<Phase>>, sockets: Vec<Open>) -> Doorway {
        Doorway { site, phase, sockets: Mutex::new(sockets) }
    }

    /// Closes the sockets: no process can take over from now on.
    pub fn close(&self) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until another process has taken over. Never returns if that is impossible.
    pub async fn wait(self: Arc<Doorway>, admin: Address) -> SuccessorPid {
        let Some(name) = Socket::of(&admin) else { return std::future::pending().await };
        loop {
            let listener = name.listen().and_then(UnixListener::from_std);
            let (stream, peer) = match listener {
                Ok(listener) => self.asked(&listener).await,
                Err(error) => {
                    tracing::warn!(event = "take-over-unavailable", %error);
                    return std::future::pending().await;
                }
            };
            // The name is free by now, so the new process can use it.
            self.write_snapshots().await;
            if !socket::is_there(&stream) {
                let error = "it has ended while the snapshot was written";
                tracing::warn!(event = "take-over-refused", error);
                continue;
            }
            if self.hand_over(stream).await {
                tracing::info!(event = "handed-over", pid = peer.pid);
                return SuccessorPid { pid: peer.pid };
            }
            tracing::error!(event = "take-over-failed", pid = peer.pid);
        }
    }

    /// Waits until a new process is ready to take over.
    async fn asked(self: &Arc<Doorway>, listener: &UnixListener) -> (UnixStream, Peer) {
        loop {
            let asked = match listener.accept().await {
                Ok((stream, _)) => {
                    let own = self.clone();
                    tokio::task::spawn_blocking(move || own.greet(stream.into_std()?)).await
                }
                Err(error) => Ok(Err(error)),
            };
            match asked {
                Ok(Ok(asked)) => return asked,
                Ok(Err(error)) => tracing::warn!(event = "take-over-refused", %error),
                // A panic is in the log already.
                Err(_) => {}
            }
        }
    }

    /// Sends the sockets, and waits until the new process has prepared everything that needs no
    /// place.
    fn greet(&self, stream: UnixStream) -> io::Result<(UnixStream, Peer)> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PREPARING))?;
        let peer = socket::check(&stream, None)?;
        socket::expect(&stream, GREETING)?;
        {
            let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            let ours: Vec<bool> = sockets.iter().map(|open| open.is_ours).collect();
            let pid = std::process::id();
            socket::say(&stream, &json!({ "pid": pid, "sockets": ours }).to_string())?;
            sockets.iter().try_for_each(|open| socket::send(&stream, &open.socket))?;
        }
        socket::expect(&stream, PREPARED)?;
        stream.set_read_timeout(None)?;
        Ok((stream, peer))
    }

    /// Writes the snapshots for the new process, while requests are served.
    async fn write_snapshots(&self) {
        for site in self.site.now().all_sites().filter(|site| site.answers_from_cache()) {
            snapshot::write_now(site, self.phase.subscribe()).await;
        }
    }

    /// Gives up this process's place. Returns false if the new process failed to take it.
    async fn hand_over(&self, stream: UnixStream) -> bool {
        let default_site = self.site.now();
        let sites: Vec<Arc<Site>> = default_site.all_sites().cloned().collect();
        let successor = Arc::new(Successor::new(stream));
        self.phase.send_replace(Phase::Held);
        sites.iter().for_each(|site| site.leave(successor.clone()));
        for site in &sites {
            change_sources::ended(&site.sources).await;
            change_sources::gone(&site.sources);
            if let Some(snapshots) = &site.snapshots {
                snapshots.hand_over().await;
            }
        }
        let (serves, told) = oneshot::channel();
        let listening = successor.clone();
        // A separate thread, not one of the pool, because it runs until the process ends.
        let started = std::thread::Builder::new().name("successor".into()).spawn(move || {
            listening.listen(|| serves.send(()).unwrap_or_default());
        });
        let is_free = started.is_ok() && successor.begin(FREE).is_ok();
        let serves = is_free && matches!(tokio::time::timeout(BEGINNING, told).await, Ok(Ok(())));
        // The new process may have reported it just now.
        let serves = serves || successor.give_up();
        if !serves {
            // The snapshots left for the new process must not be used: changes are not recorded
            // from here on.
            let snapshots = sites.iter().filter_map(|site| site.snapshots.as_ref());
            snapshots.for_each(|snapshots| snapshots.take_back());
        }
        self.phase.send_replace(if serves { Phase::Left } else { Phase::Serving });
        serves
    }
}
