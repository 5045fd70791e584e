//! The old process of a zero-downtime restart (`take_over`): it hands over its sockets, then its
//! place, step by step. Until the new process is ready, a failure changes nothing here. After that
//! this process answers nothing from its cache any more, even if the new one fails. It serves one
//! new process at a time; others wait. `successor` reports the changes.

use super::permission::{Contact, admit};
use super::socket::{self, Socket};
use super::{FREE, PREPARED, Successor};
use crate::snapshot;
use config::Address;
use delivery::site::Site;
use event_log::Seldom;
use serde_json::json;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use telemetry::phase::Phase;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// The longest time for a process to show that it may take over.
const PERMISSION: Duration = Duration::from_secs(5);
/// How often a refusal is logged. Any process on the machine can cause one.
const REFUSALS: Duration = Duration::from_secs(60);
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
    /// The processes that this one has started to take over from it.
    start: mpsc::Sender<StartedProcess>,
    started: tokio::sync::Mutex<mpsc::Receiver<StartedProcess>>,
}

/// A process that this one has started to take over from it.
pub struct StartedProcess {
    /// The process ID of the new process.
    pub pid: i32,
    /// The connection that it has as its standard input.
    pub stream: UnixStream,
}

/// A process that is ready to take over.
struct PreparedProcess {
    pid: i32,
    stream: UnixStream,
}

/// The process that has taken over.
#[derive(Clone, Copy, Debug)]
pub struct SuccessorPid {
    /// The process ID of the new process.
    pub pid: i32,
}

/// Accepts a connection by name; never returns without a listener.
async fn accept(listener: Option<&UnixListener>) -> io::Result<PreparedProcess> {
    let Some(listener) = listener else { return std::future::pending().await };
    let (stream, _) = listener.accept().await?;
    let pid = stream.peer_cred()?.pid().unwrap_or_default();
    Ok(PreparedProcess { pid, stream: stream.into_std()? })
}

impl Doorway {
    /// Creates the state for handing over these sockets, and the place of these sites.
    pub fn new(site: Arc<Site>, phase: Arc<watch::Sender<Phase>>, sockets: Vec<Open>) -> Doorway {
        let (start, started) = mpsc::channel(1);
        let started = tokio::sync::Mutex::new(started);
        Doorway { site, phase, sockets: Mutex::new(sockets), start, started }
    }

    /// Closes the sockets: no process can take over from now on.
    pub fn close(&self) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Lets a process take over that this one has started. Returns false if another one is about to.
    pub fn expect(&self, started: StartedProcess) -> bool {
        self.start.try_send(started).is_ok()
    }

    /// Waits until another process has taken over.
    pub async fn wait(self: Arc<Doorway>, admin: Address) -> SuccessorPid {
        let mut started = self.started.lock().await;
        loop {
            let name = Socket::of(&admin);
            let listener = name.map(|name| name.listen().and_then(UnixListener::from_std));
            let listener = listener.and_then(|listener| match listener {
                Ok(listener) => Some(listener),
                Err(error) => {
                    tracing::warn!(event = "take-over-unavailable", %error);
                    None
                }
            });
            let PreparedProcess { pid, stream } = self.asked(listener.as_ref(), &mut started).await;
            // The name becomes free, so that the new process can use it.
            drop(listener);
            self.write_snapshots().await;
            self.hand_over_records().await;
            if !socket::is_there(&stream) {
                self.take_back_records().await;
                let error = "it has ended while the snapshot was written";
                tracing::warn!(event = "take-over-refused", error);
                continue;
            }
            if self.hand_over(stream).await {
                tracing::info!(event = "handed-over", pid);
                return SuccessorPid { pid };
            }
            self.take_back_records().await;
            tracing::error!(event = "take-over-failed", pid);
        }
    }

    /// Waits until a new process is ready to take over.
    async fn asked(
        self: &Arc<Doorway>,
        listener: Option<&UnixListener>,
        started: &mut mpsc::Receiver<StartedProcess>,
    ) -> PreparedProcess {
        let refusals = Seldom::once_in(REFUSALS);
        loop {
            let (accepted, contact) = tokio::select! {
                // A process that this one has started does not wait behind others that only have the name.
                biased;
                Some(StartedProcess { pid, stream }) = started.recv() => {
                    (Ok(PreparedProcess { pid, stream }), Contact::Inherited)
                }
                accepted = accept(listener) => (accepted, Contact::ByName),
            };
            let own = self.clone();
            let asked = match accepted {
                Ok(peer) => tokio::task::spawn_blocking(move || own.greet(peer, contact)).await,
                Err(error) => Ok(Err(error)),
            };
            match asked {
                Ok(Ok(prepared)) => return prepared,
                Ok(Err(error)) => {
                    let now = self.site.state().clock.monotonic();
                    if contact == Contact::Inherited || refusals.is_due(now) {
                        tracing::warn!(event = "take-over-refused", %error);
                    }
                }
                // A panic is in the log already.
                Err(_) => {}
            }
        }
    }

    /// Sends the sockets, and waits until the new process has prepared everything that needs no
    /// place.
    fn greet(&self, peer: PreparedProcess, contact: Contact) -> io::Result<PreparedProcess> {
        let stream = &peer.stream;
        stream.set_nonblocking(false)?;
        let token = self.site.now().config.admin_token.clone();
        admit(stream, contact, token.as_deref(), Instant::now() + PERMISSION)?;
        {
            let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            let ours: Vec<bool> = sockets.iter().map(|open| open.is_ours).collect();
            let pid = std::process::id();
            socket::say(stream, &json!({ "pid": pid, "sockets": ours }).to_string())?;
            sockets.iter().try_for_each(|open| socket::send(stream, &open.socket))?;
        }
        socket::expect(stream, PREPARED, Instant::now() + PREPARING)?;
        stream.set_read_timeout(None)?;
        Ok(peer)
    }

    /// Writes the snapshots for the new process, while requests are served.
    async fn write_snapshots(&self) {
        for site in self.site.now().all_sites() {
            if site.answers_from_cache() {
                snapshot::write_now(site, self.phase.subscribe()).await;
            }
        }
    }

    /// Saves the records of trials and audits, and leaves their files to the new process. If this process wrote a file
    /// after the new one had read it, the new one would find an unknown text there, and never save its record.
    ///
    /// | this process | the new process |
    /// |---|---|
    /// | waits for a periodic save in progress, saves for the last time; a later one writes nothing | waits for `FREE` |
    /// | `Held`: waits for no save, sends `FREE` | waits for `FREE` |
    /// | writes nothing | reads the record, serves, saves |
    ///
    /// All waits are before `Held`, while this process still answers. Its later counts are in no record.
    async fn hand_over_records(&self) {
        let hand_over = |site: &Site| site.records().iter().for_each(|record| record.hand_over());
        self.on_sites(hand_over).await;
    }

    /// Saves the records here again: the new process never served, so it has saved none.
    async fn take_back_records(&self) {
        let take_back = |site: &Site| site.records().iter().for_each(|record| record.take_back());
        self.on_sites(take_back).await;
    }

    /// Calls `step` for each site, on a blocking thread because it may wait for the disk.
    async fn on_sites(&self, step: fn(&Site)) {
        let sites: Vec<Arc<Site>> = self.site.now().all_sites().cloned().collect();
        // A panic is in the log already.
        let _ = tokio::task::spawn_blocking(move || sites.iter().for_each(|one| step(one))).await;
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
