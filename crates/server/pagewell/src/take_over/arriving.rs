//! The new process of a zero-downtime restart (`take_over`). It receives the listening sockets,
//! then the old process's place, and applies the changes that the old process still makes. Each
//! step is a type of its own ([`Predecessor`], [`ReleasedPlace`], [`Following`]), so that none can be
//! skipped. A thread that ends with the old process receives the changes.

use super::frame::{Answer, Frame, NumberedFrame};
use super::permission::{Contact, INHERITED, ask};
use super::socket::{self, Socket};
use super::{FREE, PREPARED};
use config::Address;
use delivery::site::Site;
use history::ChangeSource;
use page_store::{ChangeTarget, Strength};
use serde::Deserialize;
use site_state::journal::WriteInFlight;
use site_state::propagation::Propagation;
use sockets::accept::{Binder, PassedSockets};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// The longest time for a step of the old process, which includes writing a snapshot.
const LEAVING: Duration = Duration::from_secs(600);
/// The most sockets that are received.
const SOCKETS_MAX: usize = 1_024;

/// The running process that this one replaces.
pub struct Predecessor {
    stream: UnixStream,
    /// Its process ID, as reported by itself.
    pid: u32,
}

#[derive(Deserialize)]
struct Offer {
    pid: u32,
    sockets: Vec<bool>,
}

impl Predecessor {
    /// Finds the process that has started this one, or the one whose control interface has this
    /// address, and receives its sockets; `None` if there is none. `user` is a second user ID that the
    /// process may run as, if this process is root and will switch to that user. `token` is that of the
    /// control interface. Blocks the thread.
    ///
    /// # Errors
    /// The process exists but does not hand over its sockets: a sentence for the operator.
    pub fn find(
        admin: &Address,
        user: Option<u32>,
        token: Option<&str>,
        passed: &mut PassedSockets,
    ) -> Result<Option<Predecessor>, String> {
        let connected = if std::env::var_os(INHERITED).is_some() {
            let input = std::io::stdin().as_fd().try_clone_to_owned();
            input.map(|input| Some((UnixStream::from(input), Contact::Inherited)))
        } else {
            let Some(name) = Socket::of(admin) else { return Ok(None) };
            name.connect().map(|stream| Some((stream?, Contact::ByName)))
        };
        let found = connected.and_then(|connected| match connected {
            Some((stream, contact)) => {
                let by = Instant::now() + LEAVING;
                ask(&stream, contact, user, token, by)?;
                receive(stream, passed, by).map(Some)
            }
            None => Ok(None),
        });
        found.map_err(|error| {
            format!(
                "the Pagewell with its control interface at {admin} cannot be taken over: {error}"
            )
        })
    }

    /// Takes the place of the old process, which has released databases and snapshots when this
    /// returns.
    ///
    /// # Errors
    /// The old process did not give up its place: a sentence for the operator.
    pub async fn take_place(self) -> Result<ReleasedPlace, String> {
        let taken = tokio::task::spawn_blocking(move || {
            socket::say(&self.stream, PREPARED)?;
            socket::expect(&self.stream, FREE, Instant::now() + LEAVING)?;
            self.stream.set_read_timeout(None)?;
            io::Result::Ok(ReleasedPlace(self))
        });
        let taken = taken.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        taken.map_err(|error| format!("the running Pagewell did not give its place: {error}"))
    }
}

fn receive(stream: UnixStream, passed: &mut PassedSockets, by: Instant) -> io::Result<Predecessor> {
    let offer: Offer = serde_json::from_str(&socket::hear(&stream, by)?)?;
    for is_ours in offer.sockets.into_iter().take(SOCKETS_MAX) {
        passed.add(socket::receive(&stream, by)?, Binder::Predecessor { is_ours });
    }
    Ok(Predecessor { stream, pid: offer.pid })
}

/// The released place: no process serves requests until this one does.
pub struct ReleasedPlace(Predecessor);

impl ReleasedPlace {
    /// Reports that this process is ready, and waits for permission to serve. Then applies the
    /// changes that the old process still makes; `in_flight` is held until these end.
    ///
    /// # Errors
    /// The old process has ended, or serves again itself: a sentence for the operator.
    pub async fn serve(
        self,
        default_site: &Arc<Site>,
        in_flight: Vec<WriteInFlight>,
    ) -> Result<Following, String> {
        let ReleasedPlace(Predecessor { stream, pid }) = self;
        let gone = |error: io::Error| format!("the old process has ended too early: {error}");
        let writer = Arc::new(Mutex::new(stream.try_clone().map_err(gone)?));
        // Any answer says so.
        answer(&writer, Answer { number: 0, waited: Propagation::NotNeeded }).map_err(gone)?;
        let (ended, is_over) = watch::channel(false);
        let (may, told) = oneshot::channel();
        let (default_site, handle) = (default_site.clone(), Handle::current());
        let follow = move || {
            follow(stream, &writer, &default_site, &handle, may);
            drop(in_flight);
            ended.send_replace(true);
        };
        std::thread::Builder::new()
            .name("predecessor".into())
            .spawn(follow)
            .map_err(|error| format!("no thread for the old process ({error})"))?;
        told.await.map_err(|_| "the old process has ended, or goes on itself".to_owned())?;
        tracing::info!(event = "taken-over", pid);
        Ok(Following(is_over))
    }
}

/// The old process, which still has operations in flight.
pub struct Following(watch::Receiver<bool>);

impl Following {
    /// Waits until the old process has no operation in flight any more.
    pub async fn ended(&mut self) {
        let _ = self.0.wait_for(|is_over| *is_over).await;
    }

    /// Returns whether that is the case. If the old process ended without reporting it, every page
    /// was purged.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self.0.borrow()
    }
}

/// Applies the changes of the old process until it reports the last one. Notifies `may` when this
/// process may serve.
fn follow(
    mut stream: UnixStream,
    writer: &Arc<Mutex<UnixStream>>,
    default_site: &Arc<Site>,
    handle: &Handle,
    may: oneshot::Sender<()>,
) {
    let mut may = Some(may);
    loop {
        let NumberedFrame { number, host, frame } = match NumberedFrame::read(&mut stream) {
            Ok(told) => told,
            // No request was answered from this cache, and none will be.
            Err(_) if may.is_some() => return,
            Err(error) => {
                // The last changes of the old process are not known.
                tracing::error!(event = "predecessor-lost", %error);
                change(default_site.all_sites(), &[ChangeTarget::Everything], Strength::Drop);
                // It is not known either whether the old process had published them in the cluster.
                for site in default_site.all_sites() {
                    site.changes().publish(&[ChangeTarget::Everything], Strength::Drop);
                    site.mark_unpublished();
                }
                return;
            }
        };
        let site = site(default_site, &host);
        match frame {
            Frame::Over => return,
            Frame::Serve => {
                if let Some(may) = may.take() {
                    // The receiver may have been dropped.
                    let _ = may.send(());
                }
            }
            Frame::Change { strength, names } => {
                let targets: Vec<ChangeTarget<'_>> =
                    names.iter().map(|name| name.target()).collect();
                match site {
                    Some(site) => change([site].into_iter(), &targets, strength),
                    // It is not known which pages the site had.
                    None => change(
                        default_site.all_sites(),
                        &[ChangeTarget::Everything],
                        Strength::Drop,
                    ),
                }
                if default_site.all_sites().any(|site| site.has_lost_change()) {
                    // The change is not acknowledged: a later successor process, which has the
                    // pages now, did not receive it.
                    return;
                }
                // A connection that has ended is noticed above.
                let _ = answer(writer, Answer { number, waited: Propagation::Applied });
            }
            Frame::Barrier => {
                let (site, writer) = (site.cloned(), writer.clone());
                handle.spawn(async move {
                    let waited = match &site {
                        Some(site) => change_sources::barrier(site.state(), &site.sources).await,
                        None => Propagation::TimedOut,
                    };
                    let _ = answer(&writer, Answer { number, waited });
                });
            }
        }
    }
}

fn change<'a>(
    sites: impl Iterator<Item = &'a Arc<Site>>,
    targets: &[ChangeTarget<'_>],
    strength: Strength,
) {
    for site in sites {
        site.changes().apply(targets, strength, ChangeSource::Predecessor);
    }
}

fn answer(writer: &Mutex<UnixStream>, answer: Answer) -> io::Result<()> {
    writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(&answer.bytes())
}

/// Returns the site with this host. A single site may have none, or may have got one by a reload.
fn site<'a>(default_site: &'a Arc<Site>, host: &str) -> Option<&'a Arc<Site>> {
    if default_site.other_sites.is_empty() {
        return Some(default_site);
    }
    let is_it = |site: &&Arc<Site>| site.config.hosts.canonical.as_deref() == Some(host);
    default_site.all_sites().find(is_it)
}
