//! Follows the databases of a site for changes (change data capture). A committed row change purges
//! the pages that depend on it, whichever program made the change.
//!
//! | file | contents |
//! |---|---|
//! | `reusable_session` | a reused connection for queries |
//! | `follow` | connects, reads, applies, counts; resumes after a break without a gap |
//! | `progress` | the positions up to which changes are applied, and settled |
//! | `held_rows` | releases rows that are held back |
//! | `partner_search` | looks up rows in the database, for automatic dependencies |
//! | `row_changes` | applies changed rows, for automatic dependencies |
//! | `settle` | queries which transactions are visible to all readers, and settles changes |
//! | `gate` | stops storing pages while a database is not followed, or lags too far |
//! | `check` | the database part of `pagewell check` and `pagewell changes suggest` |
//! | `barrier` | holds the response to a write until its changes are applied |
//! | `settled` | waits until all that was committed is applied and settled, with no bound |
//!
//! Invariants: a position covers only applied changes. Where a gap cannot be excluded, every page
//! of the site is purged before any later change is applied. Not here: rules (`change_feed`), the kinds of
//! databases (`databases`), the stream of a cluster (`cluster`), transport and failures of a connection
//! (`database_links`).

mod barrier;
pub mod check;
mod follow;
mod gate;
mod held_rows;
mod partner_search;
mod progress;
mod reusable_session;
mod row_changes;
mod settle;
mod settled;
mod stream_ahead;

pub use barrier::barrier;
pub use settled::{SettledWait, settled};

use barrier::{Asks, Questions};
use cluster::Peers;
use config::{Config, Database, DatabaseKind};
use database_links::fault::Recovery;
use databases::stream_types::{Aim, Bookmark, Position, RowDetail};
use follow::Follower;
use gate::Gate;
use held_rows::{HeldRows, ReleaseAsks, release_asks};
use progress::{Became, DiscardLimit, Progress};
use site_state::SiteState;
use site_state::cluster::Cluster;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// The sources of changes other than the site's own responses: its databases, and the other nodes
/// of its cluster.
pub struct ChangeSources {
    /// The databases whose changes invalidate pages, and the stream by which other nodes publish theirs.
    pub feeds: Vec<Arc<Feed>>,
    /// The other nodes, if there are any.
    pub peers: Option<Arc<Peers>>,
}

impl ChangeSources {
    /// Creates the sources of the configuration. Nothing is followed before [`start`].
    #[must_use]
    pub fn new(config: &Config) -> ChangeSources {
        let followed = config.databases.iter().chain(&config.cluster);
        ChangeSources {
            feeds: followed.map(|one| Arc::new(Feed::new(one.clone()))).collect(),
            peers: config.cluster.clone().map(|stream| Arc::new(Peers::new(stream))),
        }
    }

    /// The interface by which changes reach the other nodes.
    #[must_use]
    pub fn cluster(&self) -> Option<Arc<dyn Cluster>> {
        self.peers.clone().map(|peers| peers as Arc<dyn Cluster>)
    }

    /// The longest lag of the databases now, in microseconds; 0 before the first measurement.
    #[must_use]
    pub fn lag_us(&self) -> u64 {
        let lags = self.feeds.iter().filter_map(|feed| feed.lag_now());
        lags.max().unwrap_or_default().as_micros() as u64
    }

    /// The number of changes that have not been sent to the other nodes yet.
    #[must_use]
    pub fn pending_publications(&self) -> u64 {
        self.peers.as_ref().map_or(0, |peers| peers.pending())
    }
}

/// The value of a lag that was not measured yet.
const NOT_MEASURED: u64 = u64::MAX;

/// The lag of a database, as it was measured last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredLag {
    /// The time from a query of the committed position until all of it was applied.
    pub lag: Duration,
    /// When that was, by the site's monotonic clock.
    pub measured_at: Duration,
}

/// A followed database, as the other modules of a site use it.
pub struct Feed {
    config: Arc<Database>,
    /// The maximum time for the look-ups of a transaction.
    lookup_time_max: Duration,
    /// The position up to which changes are applied; `None` while the database is not followed.
    applied: watch::Sender<Option<Position>>,
    progress: Mutex<Progress>,
    /// Counts how often the settled position may have advanced.
    settled: watch::Sender<u64>,
    asks: Asks,
    release_asks: ReleaseAsks,
    /// The receivers of `asks` and `release_asks`, until the database is followed.
    questions: Mutex<Option<(Questions, HeldRows)>>,
    gate: Gate,
    /// Counts the breaks of the stream. Its value identifies the current connection to the stream.
    generation: AtomicU64,
    /// The generation (plus one) in which the server was found to have reset its log; 0: none.
    doubted: AtomicU64,
    /// The most that the server has reported as committed, and the generation in which it has.
    reported: Mutex<Option<(u64, Position)>>,
    /// The lag that was measured last, in microseconds; [`NOT_MEASURED`] before the first measurement.
    lag_us: AtomicU64,
    /// When that was, in milliseconds of the site's monotonic clock. For operators: it is written
    /// after the lag, so for an instant it may be that of the measurement before.
    lag_at_ms: AtomicU64,
    /// The number of running tasks that follow this database.
    tasks: watch::Sender<usize>,
}

impl Feed {
    /// Creates the state for a database. Nothing is followed before [`start`].
    #[must_use]
    pub fn new(config: Arc<Database>) -> Feed {
        let ((asks, questions), (release_asks, held)) = (barrier::asks(), release_asks());
        let (applied, _) = watch::channel(None);
        Feed {
            config,
            lookup_time_max: partner_search::lookup_time_max(),
            applied,
            progress: Mutex::default(),
            settled: watch::Sender::new(0),
            asks,
            release_asks,
            questions: Mutex::new(Some((questions, held))),
            gate: Gate::default(),
            generation: AtomicU64::new(0),
            doubted: AtomicU64::new(0),
            reported: Mutex::default(),
            lag_us: AtomicU64::new(NOT_MEASURED),
            lag_at_ms: AtomicU64::new(0),
            tasks: watch::Sender::new(0),
        }
    }

    /// Returns the database's name, which is unique within the site.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns the protocol of the database.
    #[must_use]
    pub fn kind(&self) -> &DatabaseKind {
        &self.config.server.kind
    }

    /// Returns the address of the database server.
    #[must_use]
    pub fn server(&self) -> String {
        self.config.server.place.to_string()
    }

    /// Returns the lag that was measured last: the time from a query of the committed position until
    /// all of it was applied. `None` before the first measurement.
    #[must_use]
    pub fn lag(&self) -> Option<MeasuredLag> {
        let lag_us = self.lag_us.load(Ordering::Relaxed);
        let measured_at = Duration::from_millis(self.lag_at_ms.load(Ordering::Relaxed));
        let lag = Duration::from_micros(lag_us);
        (lag_us != NOT_MEASURED).then_some(MeasuredLag { lag, measured_at })
    }

    /// Records that snapshots are written. The database then keeps its log from the position of the
    /// newest snapshot, if it can. Must be called before [`start`].
    pub fn keep_for_snapshots(&self) {
        self.progress().keep_for_snapshots();
    }

    /// Begins a snapshot and returns the position that it is exact for: all changes up to it are
    /// applied and visible to every reader. Returns `None` if no position is known; the gate is
    /// closed then. The database keeps its log from this position as long as the returned
    /// [`LogRetention`] exists.
    #[must_use]
    pub fn begin_snapshot(self: &Arc<Feed>) -> Option<(Bookmark, LogRetention)> {
        let (bookmark, number) = self.progress().begin_snapshot()?;
        Some((bookmark, LogRetention { feed: self.clone(), number, became: Became::Nothing }))
    }

    /// Returns the position up to which the database may discard its log. `None`: it must not
    /// discard more than before. `bytes` is the most log that may be kept for snapshots.
    fn forget(&self, applied: &Position, bytes: u64) -> Option<Position> {
        let forgotten = self.progress().forget(applied, bytes);
        match forgotten {
            DiscardLimit::NoFurther => None,
            DiscardLimit::UpTo(position) => Some(position),
            DiscardLimit::Released(position) => {
                tracing::warn!(event = "database-log-released", database = self.name(), bytes);
                Some(position)
            }
        }
    }

    /// Sets the position to start from, which another process has saved. Must be called before
    /// [`start`].
    pub fn begin_at(&self, bookmark: Bookmark) {
        self.progress().begin_at(bookmark);
    }

    /// Returns whether the database is followed and everything is applied that was committed when
    /// the connection was opened.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.applied.borrow().is_some()
    }

    /// Returns whether this database prevents pages from being stored. It does until it is first
    /// followed, and while its lag or an interruption exceeds the site's limit.
    #[must_use]
    pub fn keeps_pages_out(&self) -> bool {
        self.gate.is_closed()
    }

    /// Returns the detail in which the database's rows are followed.
    fn detail(&self, site: &SiteState) -> RowDetail {
        if site.footprints.follows(self.name()) { RowDetail::Values } else { RowDetail::Tags }
    }

    /// Returns the number of the current connection to the stream.
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the most that the server has reported as committed in this generation.
    fn reported(&self, generation: u64) -> Option<Position> {
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.as_ref().filter(|(of, _)| *of == generation).map(|(_, position)| position.clone())
    }

    /// Records a position that the server has reported as committed, unless more was reported already.
    fn report(&self, generation: u64, committed: &Position) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_less = |(of, known): &(u64, Position)| {
            *of > generation || *of == generation && known.has_all(committed)
        };
        if !reported.as_ref().is_some_and(is_less) {
            *reported = Some((generation, committed.clone()));
        }
    }

    /// Handles a committed transaction that the current connection has not received: every page is
    /// purged, and the follower reconnects at its next check.
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

/// Keeps a database's log from the position of a snapshot while that snapshot is being written.
pub struct LogRetention {
    feed: Arc<Feed>,
    number: u64,
    became: Became,
}

impl LogRetention {
    /// Records that the snapshot has replaced the one before. The log is needed from its position
    /// until the next snapshot is complete.
    pub fn written(mut self) {
        self.became = Became::Written;
    }
}

impl Drop for LogRetention {
    fn drop(&mut self) {
        self.feed.progress().end_snapshot(self.number, self.became);
    }
}

/// Prevents storing until all of the site's databases are followed. [`start`] does it as well.
pub fn close_gates(site: &SiteState, sources: &ChangeSources) {
    sources.feeds.iter().for_each(|feed| feed.gate.close(site, feed.name()));
}

/// Starts following the databases of these sites, all concurrently. None of a site's pages is
/// stored until all of its databases are followed.
///
/// # Errors
/// A database is reachable, but its rules or its settings do not fit: a sentence for the operator.
/// A database that is unreachable, or does not respond within `first_timeout`, is no error. The follower
/// tries it again.
pub async fn start<'s>(
    sites: impl Iterator<Item = (&'s Arc<SiteState>, &'s ChangeSources)>,
    first_timeout: Duration,
    stop: &PhaseWatch,
) -> Result<(), String> {
    let mut all = JoinSet::new();
    for (site, sources) in sites {
        if let Some(peers) = &sources.peers {
            peers.begin(site);
        }
        for feed in &sources.feeds {
            feed.gate.close(site, feed.name());
            all.spawn(start_one(site.clone(), feed.clone(), first_timeout, stop.clone()));
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
    first_timeout: Duration,
    stop: PhaseWatch,
) -> Result<(), String> {
    let questions = feed.questions.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A database is followed only once.
    let Some((questions, held)) = questions else { return Ok(()) };
    let aim = Aim::Follow(feed.detail(&site));
    let first = timeout(first_timeout, databases::source::connect(&feed.config, aim)).await;
    let (name, place) = (&feed.config.name, &feed.config.server.place);
    let wrong = |why: &dyn fmt::Display| format!("{place}, {name}: {why}");
    match &first {
        Ok(Err(broken)) if matches!(broken.then, Recovery::Unusable | Recovery::Lost) => {
            return Err(wrong(&broken.text));
        }
        Ok(Ok(connected)) => connected.fits.as_ref().map_err(|why| wrong(why)).copied()?,
        Ok(Err(_)) | Err(_) => {}
    }
    let (entries, waiting) = mpsc::channel(settle::WAITING_MAX);
    let follower = Follower::new(site.clone(), feed.clone(), entries, held);
    let spawn = |task: Pin<Box<dyn Future<Output = ()> + Send>>| {
        tokio::spawn(until(Running::new(&feed), stop.clone(), task));
    };
    spawn(Box::pin(settle::run(site.clone(), feed.clone(), waiting)));
    spawn(Box::pin(barrier::run(site.clone(), feed.clone(), questions)));
    spawn(Box::pin(gate::watch(site.clone(), feed.clone())));
    spawn(Box::pin(follower.run(first.ok().and_then(Result::ok))));
    Ok(())
}

/// Runs a task until the server stops.
async fn until(
    running: Running,
    mut stop: PhaseWatch,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    tokio::select! {
        _ = stop.wait_for(Phase::is_leaving) => {}
        () = task => {}
    }
    // The task was moved into the `select!`, so its connections are closed by now.
    drop(running);
}

/// Counts a task that follows a database while that task runs.
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

/// Waits until a site's databases are no longer followed, after the process has begun to leave.
/// Then another process may follow them.
pub async fn ended(sources: &ChangeSources) {
    for feed in &sources.feeds {
        feed.ended().await;
    }
}

/// Informs the other nodes that this process no longer answers from its cache, so that they do not
/// wait for it. Call it after [`ended`]. It runs as a separate task, so that an unreachable stream
/// delays nothing. The task ends when the nodes are informed, or cannot be.
pub fn gone(sources: &ChangeSources) -> JoinHandle<()> {
    let peers = sources.peers.clone();
    tokio::spawn(async move {
        if let Some(peers) = peers {
            peers.gone().await;
        }
    })
}

impl Feed {
    /// Waits until no task follows the database.
    async fn ended(&self) {
        // The sender is a field of `self`, so it cannot be closed.
        let _ = self.tasks.subscribe().wait_for(|tasks| *tasks == 0).await;
    }
}
