//! A site's databases, followed for changes: a committed row change drops the pages that depend on it,
//! whoever made it.
//!
//! | file | |
//! |---|---|
//! | `source` | the seam: what every kind of database can do, and its words for how far it is |
//! | `mariadb` | MariaDB and MySQL behind it: login, stream, schema, questions |
//! | `postgres` | PostgreSQL behind it: the same, and whether it is set up |
//! | `valkey` | a stream by which machines tell each other their changes: the same, and telling |
//! | `link` | the bytes of a connection: TCP, Unix socket, TLS |
//! | `kept` | a connection for questions that is kept |
//! | `follow` | connects, reads, applies, counts; comes back after a break, without a gap |
//! | `progress` | how far it is applied, and settled |
//! | `settle` | asks the database what everybody sees, and settles |
//! | `gate` | no page is stored while a database has not been followed for too long, or is too far behind |
//! | `unheard` | tags of pages that no rule could touch |
//! | `check` | what `pagewell check` and `pagewell changes suggest` ask of a database |
//! | `barrier` | holds the answer to a write until it is applied |
//!
//! Invariants: a position counts only what was applied; where a gap cannot be excluded, every page of
//! the site is dropped before anything else is applied. Not here: rules (`change_feed`), the stream's
//! bytes (`mysql_replication`, `postgres_replication`).

mod barrier;
pub mod check;
mod follow;
mod gate;
mod kept;
mod link;
mod mariadb;
mod postgres;
mod progress;
mod settle;
mod source;
mod valkey;

pub(crate) use link::client as tls_client;

pub use barrier::barrier;
pub use mariadb::Tables as MariaDbTables;
pub use source::Bookmark;
pub use valkey::Others;

use crate::cluster::Cluster;
use crate::config::{Config, Database};
use crate::phase::{Phase, Told};
use crate::site_state::SiteState;
use barrier::{Asks, Questions};
use follow::Follower;
use gate::Gate;
use progress::{Became, Forgotten, Progress};
use source::{Aim, Position, Then};
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// What changes a site's data besides its own responses: its databases, and the other nodes of its cluster.
pub struct ChangeSources {
    /// The databases whose changes invalidate pages, and the stream by which other nodes publish theirs.
    pub feeds: Vec<Arc<Feed>>,
    /// The other nodes, where there are any.
    pub others: Option<Arc<Others>>,
}

impl ChangeSources {
    /// Those of the configuration. Nothing is followed before [`start`].
    #[must_use]
    pub fn new(config: &Config) -> ChangeSources {
        let followed = config.databases.iter().chain(&config.stream);
        ChangeSources {
            feeds: followed.map(|one| Arc::new(Feed::new(one.clone()))).collect(),
            others: config.stream.clone().map(|stream| Arc::new(Others::new(stream))),
        }
    }

    /// How changes reach the other nodes.
    #[must_use]
    pub fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        self.others.clone().map(|others| others as Arc<dyn Cluster>)
    }

    /// How many changes the other nodes have not been sent yet.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.others.as_ref().map_or(0, |others| others.untold())
    }
}

/// A database that is followed, as the rest of a site sees it.
pub struct Feed {
    config: Arc<Database>,
    /// How far its changes are applied; none while it is not followed.
    applied: watch::Sender<Option<Position>>,
    progress: Mutex<Progress>,
    asks: Asks,
    questions: Mutex<Option<Questions>>,
    gate: Gate,
    /// How often the stream has broken.
    generation: AtomicU64,
    /// The following whose log the database has taken back, counted from one; 0: none.
    doubted: AtomicU64,
    /// Tasks that follow it.
    tasks: watch::Sender<usize>,
}

impl Feed {
    /// For this database; nothing is followed before [`start`].
    #[must_use]
    pub fn new(config: Arc<Database>) -> Feed {
        let (asks, questions) = barrier::asks();
        let (applied, _) = watch::channel(None);
        Feed {
            config,
            applied,
            progress: Mutex::default(),
            asks,
            questions: Mutex::new(Some(questions)),
            gate: Gate::default(),
            generation: AtomicU64::new(0),
            doubted: AtomicU64::new(0),
            tasks: watch::Sender::new(0),
        }
    }

    /// Its name, which no other of the site has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Snapshots are written: of what they need the database keeps its log, if it can. To be called before
    /// [`start`].
    pub fn keep_for_snapshots(&self) {
        self.progress().keep_for_snapshots();
    }

    /// A snapshot is begun: up to where all is applied, and seen by every reader of the database, so that
    /// the pages of the store are right as of here. None: nothing is known, and nothing is stored.
    /// As long as what is returned besides is there, the log from there on is needed.
    #[must_use]
    pub fn begin_snapshot(self: &Arc<Feed>) -> Option<(Bookmark, Needed)> {
        let (bookmark, number) = self.progress().begin_snapshot()?;
        Some((bookmark, Needed { feed: self.clone(), number, became: Became::Nothing }))
    }

    /// Up to where the database need not keep its log any more; none: no further than before.
    fn forget(&self, applied: &Position, bytes: u64) -> Option<Position> {
        let forgotten = self.progress().forget(applied, bytes);
        match forgotten {
            Forgotten::NoFurther => None,
            Forgotten::UpTo(position) => Some(position),
            Forgotten::Released(position) => {
                tracing::warn!(event = "database-log-released", database = self.name(), bytes);
                Some(position)
            }
        }
    }

    /// Begins to follow from here, as another process has left it. To be called before [`start`].
    pub fn begin_at(&self, bookmark: Bookmark) {
        self.progress().begin_at(bookmark);
    }

    /// Whether the database is followed, and all is applied that it had committed when it was
    /// connected to.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.applied.borrow().is_some()
    }

    /// Whether no page is stored because of it: it is not followed yet, or has not been for longer than
    /// the site allows.
    #[must_use]
    pub fn keeps_pages_out(&self) -> bool {
        self.gate.is_closed()
    }

    /// Which following of the database this is.
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Something is missing from what the database says that it has committed, and it was sent in this
    /// following: every page goes, and whoever follows begins anew when it looks next.
    fn doubt(&self, site: &SiteState, generation: u64) {
        self.doubted.store(generation + 1, Ordering::Release);
        self.gate.close(site, self.name());
    }

    fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Acquire) == self.generation() + 1
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A database's log from where a snapshot was begun, as long as that is being written.
pub struct Needed {
    feed: Arc<Feed>,
    number: u64,
    became: Became,
}

impl Needed {
    /// The snapshot is there, in place of the one before: the log is needed from there on until the next.
    pub fn written(mut self) {
        self.became = Became::Written;
    }
}

impl Drop for Needed {
    fn drop(&mut self) {
        self.feed.progress().end_snapshot(self.number, self.became);
    }
}

/// Lets no page in until all of the site's databases are followed. [`start`] does it as well.
pub fn close_gates(site: &SiteState, sources: &ChangeSources) {
    sources.feeds.iter().for_each(|feed| feed.gate.close(site, feed.name()));
}

/// Begins to follow the databases of these sites, all at once. Until all of a site's are followed none of its
/// pages is stored.
///
/// # Errors
/// A database can be reached, and the rules or its settings do not fit: a sentence for the operator.
/// A database that cannot be reached, or has not answered after `patience`, is tried again.
pub async fn start<'s>(
    sites: impl Iterator<Item = (&'s Arc<SiteState>, &'s ChangeSources)>,
    patience: Duration,
    stop: &Told,
) -> Result<(), String> {
    let mut all = JoinSet::new();
    for (site, sources) in sites {
        if let Some(others) = &sources.others {
            others.begin(site);
        }
        for feed in &sources.feeds {
            feed.gate.close(site, feed.name());
            all.spawn(start_one(site.clone(), feed.clone(), patience, stop.clone()));
        }
    }
    while let Some(started) = all.join_next().await {
        started.map_err(|panic| panic.to_string())??;
    }
    Ok(())
}

async fn start_one(
    site: Arc<SiteState>,
    feed: Arc<Feed>,
    patience: Duration,
    stop: Told,
) -> Result<(), String> {
    let questions = feed.questions.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Followed once is enough.
    let Some(questions) = questions else { return Ok(()) };
    let first = timeout(patience, source::connect(&feed.config, Aim::Follow)).await;
    let (name, place) = (&feed.config.name, &feed.config.server.place);
    let wrong = |why: &dyn fmt::Display| format!("{place}, {name}: {why}");
    match &first {
        Ok(Err(broken)) if matches!(broken.then, Then::Unusable | Then::Lost) => {
            return Err(wrong(&broken.text));
        }
        Ok(Ok(connected)) => connected.fits.as_ref().map_err(|why| wrong(why)).copied()?,
        Ok(Err(_)) | Err(_) => {}
    }
    let (entries, waiting) = mpsc::channel(settle::WAITING_MAX);
    let follower = Follower { site: site.clone(), feed: feed.clone(), entries };
    let spawn = |task: Pin<Box<dyn Future<Output = ()> + Send>>| {
        tokio::spawn(until(Running::new(&feed), stop.clone(), task));
    };
    spawn(Box::pin(settle::run(site.clone(), feed.clone(), waiting)));
    spawn(Box::pin(barrier::run(site.clone(), feed.clone(), questions)));
    spawn(Box::pin(gate::watch(site.clone(), feed.clone())));
    spawn(Box::pin(gate::measure(site.clone(), feed.clone())));
    spawn(Box::pin(follower.run(first.ok().and_then(Result::ok))));
    Ok(())
}

/// Runs a task until the server stops.
async fn until(running: Running, mut stop: Told, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
    tokio::select! {
        _ = stop.wait_for(Phase::is_leaving) => {}
        () = task => {}
    }
    // The task is gone with its connections: it was moved into what has ended.
    drop(running);
}

/// A task that follows a database.
struct Running(Arc<Feed>);

impl Running {
    fn new(feed: &Arc<Feed>) -> Running {
        feed.tasks.send_modify(|tasks| *tasks += 1);
        Running(feed.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.tasks.send_modify(|tasks| *tasks -= 1);
    }
}

/// Waits until a site's databases are not followed any more, after the server was told to leave: another
/// process may follow them.
pub async fn ended(sources: &ChangeSources) {
    for feed in &sources.feeds {
        feed.ended().await;
    }
}

/// Tells the other machines that nothing of this site is answered from memory here any more, so that nobody
/// waits for this one. After [`ended`]. By a task of its own, for nobody is held up where the stream is away; it
/// ends when they have been told, or cannot be.
pub fn gone(sources: &ChangeSources) -> JoinHandle<()> {
    let others = sources.others.clone();
    tokio::spawn(async move {
        if let Some(others) = others {
            others.gone().await;
        }
    })
}

impl Feed {
    /// Waits until nothing follows the database.
    async fn ended(&self) {
        // The sender is here: it is not gone.
        let _ = self.tasks.subscribe().wait_for(|tasks| *tasks == 0).await;
    }
}
