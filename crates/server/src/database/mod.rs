//! A site's database, followed for changes: a committed row change drops the pages that depend on it,
//! whoever made it.
//!
//! | file | |
//! |---|---|
//! | `connection` | a login, statements, the packets of the stream |
//! | `schema` | tables, columns and foreign keys, as the rules need them |
//! | `follow` | the stream: connects, reads, applies, counts; comes back after a break, without a gap |
//! | `apply` | a transaction → what it touches → a change of the store, still open |
//! | `settle` | asks the database what everybody sees, and settles |
//! | `gate` | no page is stored while the database has not been followed for too long |
//! | `barrier` | holds the answer to a write until it is applied |
//!
//! Invariants: a position counts only what was applied; where a gap cannot be excluded, every page of
//! the site is dropped before anything else is applied. Not here: rules (`change_feed`), the stream's
//! bytes (`mysql_replication`).

mod apply;
mod barrier;
mod connection;
mod follow;
mod gate;
mod schema;
mod settle;

pub use barrier::Waited;

use crate::config::Database;
use crate::site::Site;
use barrier::{Asks, Questions};
use gate::Gate;
use mysql_replication::position::GtidList;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, watch};

/// A database that is followed, as the rest of a site sees it.
pub struct Feed {
    config: Arc<Database>,
    /// How far its changes are applied; none while it is not followed.
    applied: watch::Sender<Option<GtidList>>,
    asks: Asks,
    questions: Mutex<Option<Questions>>,
    gate: Gate,
}

impl Feed {
    /// For this database; nothing is followed before [`start`].
    #[must_use]
    pub fn new(config: Arc<Database>) -> Feed {
        let (asks, questions) = barrier::asks();
        let (applied, _) = watch::channel(None);
        let questions = Mutex::new(Some(questions));
        Feed { config, applied, asks, questions, gate: Gate::default() }
    }
}

/// Begins to follow a site's database. Until it is followed no page is stored.
///
/// # Errors
/// The database can be reached, and the rules or its settings do not fit: a sentence for the operator.
/// A database that cannot be reached is tried again.
pub async fn start(site: &Arc<Site>, stop: &watch::Receiver<bool>) -> Result<(), String> {
    let Some(feed) = &site.feed else { return Ok(()) };
    let questions = feed.questions.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Followed once is enough.
    let Some(questions) = questions else { return Ok(()) };
    feed.gate.close(site);
    let first = follow::connect(&feed.config).await;
    match &first {
        Err(follow::Broken::Unusable(why)) => return Err(format!("{}: {why}", feed.config.place)),
        Ok(connected) => connected.fits().map_err(|why| format!("{}: {why}", feed.config.place))?,
        Err(_) => {}
    }
    let (entries, waiting) = mpsc::channel(settle::WAITING_MAX);
    tokio::spawn(until(stop.clone(), settle::run(site.clone(), waiting)));
    tokio::spawn(until(stop.clone(), barrier::run(feed.config.clone(), questions)));
    tokio::spawn(until(stop.clone(), gate::watch(site.clone())));
    tokio::spawn(until(stop.clone(), follow::run(site.clone(), entries, first.ok())));
    Ok(())
}

/// Runs a task until the server stops.
async fn until(mut stop: watch::Receiver<bool>, task: impl Future<Output = ()>) {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        () = task => {}
    }
}
