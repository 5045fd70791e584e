//! The new process: it gets the sockets, and then the place of the old one, and takes in what that one still
//! changes (`take_over`). Each step is a type of its own ([`Predecessor`], [`Placed`], [`Following`]), so that
//! none can be left out. What the old one tells is taken in by a thread that ends with it.

use super::frame::{Answer, Frame, Numbered};
use super::socket::{self, Socket};
use super::{FREE, GREETING, PREPARED};
use crate::config::Address;
use crate::database::{self, Waited};
use crate::listen::{Binder, Passed};
use crate::site::Site;
use crate::snapshot;
use crate::why::Cause;
use page_store::{ChangeTarget, Strength};
use serde::Deserialize;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

/// How long the old process may take for its part: it writes a snapshot.
const LEAVING: Duration = Duration::from_secs(600);
/// Sockets that are taken, at most.
const SOCKETS_MAX: usize = 1_024;

/// The process whose place is to be taken.
pub struct Predecessor {
    stream: UnixStream,
    /// Its process id, as it says.
    pid: u32,
}

#[derive(Deserialize)]
struct Offer {
    pid: u32,
    sockets: Vec<bool>,
}

impl Predecessor {
    /// Finds the process that has its control interface at this address, and gets its sockets; none where
    /// there is none. `user`: who else it may be, where this process is root and will be him. Blocks.
    ///
    /// # Errors
    /// It is there and gives nothing: a sentence for the operator.
    pub fn find(
        admin: &Address,
        user: Option<u32>,
        passed: &mut Passed,
    ) -> Result<Option<Predecessor>, String> {
        let Some(name) = Socket::of(admin) else { return Ok(None) };
        let found = name.connect().and_then(|stream| match stream {
            Some(stream) => greet(stream, user, passed).map(Some),
            None => Ok(None),
        });
        found.map_err(|error| {
            format!(
                "the Pagewell with its control interface at {admin} cannot be taken over: {error}"
            )
        })
    }

    /// Takes its place: when this returns, it has let go of everything.
    ///
    /// # Errors
    /// It has failed: a sentence for the operator.
    pub async fn take_place(self) -> Result<Placed, String> {
        let taken = tokio::task::spawn_blocking(move || {
            socket::say(&self.stream, PREPARED)?;
            socket::expect(&self.stream, FREE)?;
            self.stream.set_read_timeout(None)?;
            io::Result::Ok(Placed(self))
        });
        let taken = taken.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        taken.map_err(|error| format!("the running Pagewell did not give its place: {error}"))
    }
}

fn greet(stream: UnixStream, user: Option<u32>, passed: &mut Passed) -> io::Result<Predecessor> {
    stream.set_read_timeout(Some(LEAVING))?;
    socket::check(&stream, user)?;
    socket::say(&stream, GREETING)?;
    let offer: Offer = serde_json::from_str(&socket::hear(&stream)?)?;
    for is_ours in offer.sockets.into_iter().take(SOCKETS_MAX) {
        passed.add(socket::receive(&stream)?, Binder::Predecessor { is_ours });
    }
    Ok(Predecessor { stream, pid: offer.pid })
}

/// A place that is free: nobody serves until this process does.
pub struct Placed(Predecessor);

impl Placed {
    /// Says that this process is ready, waits until it may serve, and takes in what the other one still
    /// changes: as long as that takes, something is in hand.
    ///
    /// # Errors
    /// It has ended, or goes on itself: a sentence for the operator.
    pub async fn serve(
        self,
        door: &Arc<Site>,
        in_hand: Vec<snapshot::InHand>,
    ) -> Result<Following, String> {
        let Placed(Predecessor { stream, pid }) = self;
        let gone = |error: io::Error| format!("the old process has ended too early: {error}");
        let writer = Arc::new(Mutex::new(stream.try_clone().map_err(gone)?));
        // Any answer says so.
        answer(&writer, Answer { number: 0, waited: Waited::No }).map_err(gone)?;
        let (ended, is_over) = watch::channel(false);
        let (may, told) = oneshot::channel();
        let (door, handle) = (door.clone(), Handle::current());
        let follow = move || {
            follow(stream, &writer, &door, &handle, may);
            drop(in_hand);
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

/// The old process, which still has something in hand.
pub struct Following(watch::Receiver<bool>);

impl Following {
    /// Waits until it has nothing any more.
    pub async fn ended(&mut self) {
        let _ = self.0.wait_for(|is_over| *is_over).await;
    }

    /// Whether that is so: it has said so, or has ended without a word, and every page was dropped.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self.0.borrow()
    }
}

/// Takes in what it changes, until it says that this was all. Tells `may` when this process may serve.
fn follow(
    mut stream: UnixStream,
    writer: &Arc<Mutex<UnixStream>>,
    door: &Arc<Site>,
    handle: &Handle,
    may: oneshot::Sender<()>,
) {
    let mut may = Some(may);
    loop {
        let Numbered { number, host, frame } = match Numbered::read(&mut stream) {
            Ok(told) => told,
            // Nobody was answered from memory, and nobody will be.
            Err(_) if may.is_some() => return,
            Err(error) => {
                // What it has changed last is not known.
                tracing::error!(event = "predecessor-lost", %error);
                change(door.all_or(None), &[ChangeTarget::Everything], Strength::Drop);
                // Nor whether it had told the other machines.
                for site in door.all_or(None) {
                    site.tell_others(&[ChangeTarget::Everything], Strength::Drop);
                    site.mark_untold();
                }
                return;
            }
        };
        let site = site(door, &host);
        match frame {
            Frame::Over => return,
            Frame::Serve => {
                if let Some(may) = may.take() {
                    // Who waits for it may have been given up.
                    let _ = may.send(());
                }
            }
            Frame::Change { strength, names } => {
                let targets: Vec<ChangeTarget<'_>> =
                    names.iter().map(|name| name.target()).collect();
                match site {
                    Some(site) => change([site].into_iter(), &targets, strength),
                    // Nobody knows which pages were its.
                    None => change(door.all_or(None), &[ChangeTarget::Everything], Strength::Drop),
                }
                if door.all_or(None).any(|site| site.is_unheard()) {
                    // It is not acknowledged: the process that has the pages now was not told.
                    return;
                }
                // A connection that has ended is noticed above.
                let _ = answer(writer, Answer { number, waited: Waited::Applied });
            }
            Frame::Barrier => {
                let (site, writer) = (site.cloned(), writer.clone());
                handle.spawn(async move {
                    let waited = match &site {
                        Some(site) => database::barrier(site).await,
                        None => Waited::Late,
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
        site.change(targets, strength, Cause::Predecessor);
    }
}

fn answer(writer: &Mutex<UnixStream>, answer: Answer) -> io::Result<()> {
    writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(&answer.bytes())
}

/// The site with this host; the only one has none, or may have got one.
fn site<'a>(door: &'a Arc<Site>, host: &str) -> Option<&'a Arc<Site>> {
    if door.neighbours.is_empty() {
        return Some(door);
    }
    let is_it = |site: &&Arc<Site>| site.config.hosts.canonical.as_deref() == Some(host);
    door.all_or(None).find(is_it)
}
