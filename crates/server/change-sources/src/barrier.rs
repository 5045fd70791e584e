//! The write barrier: the response to a write is held until everything that was committed before it
//! is applied. So the client's next request gets pages from after the write.
//!
//! After the origin has responded, each of the site's databases is queried for its position on a
//! separate connection. Writes that wait at that moment share the query, but never one that was
//! sent earlier. A transaction is part of the position before its COMMIT is acknowledged, so the
//! position includes all commits of the origin. Rows that are held back (`held_rows`) are released. After
//! the time limit the response is sent with a detail in `Cache-Status`.

use super::reusable_session::ReusableSession;
use super::{ChangeSources, Feed};
use databases::stream_types::Position;
use site_state::SiteState;
use site_state::propagation::Propagation;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The most writes that may wait for a query to be sent.
const ASKING_MAX: usize = 10_000;
/// How long no query is sent after a connection failed.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a barrier waits after a failed query before it queries again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(10);

type Ask = oneshot::Sender<Position>;
/// The sending side of the channel for position queries.
pub type Asks = mpsc::Sender<Ask>;
/// The receiving side of the channel for position queries.
pub type Questions = mpsc::Receiver<Ask>;

/// Creates the channel for position queries.
pub fn asks() -> (Asks, Questions) {
    mpsc::channel(ASKING_MAX)
}

/// Waits until all commits of a site's databases so far are applied, for at most the longest of their
/// time limits.
pub async fn barrier(site: &Arc<SiteState>, sources: &ChangeSources) -> Propagation {
    let Some(bound) = sources.feeds.iter().map(|feed| feed.config.barrier).max() else {
        return Propagation::NotNeeded;
    };
    site.changes().committed(own(site, sources), bound).await
}

/// Waits for the site's databases, each for at most its own time limit.
async fn own(site: &Arc<SiteState>, sources: &ChangeSources) -> Propagation {
    let own = |feed: &Arc<Feed>| one(site.clone(), feed.clone());
    let waiting: Vec<_> =
        sources.feeds.iter().skip(1).map(|feed| tokio::spawn(own(feed))).collect();
    let mut all = match sources.feeds.first() {
        Some(feed) => own(feed).await,
        None => return Propagation::NotNeeded,
    };
    for waited in waiting {
        // After a panic of the task the result is unknown.
        all = all.and(waited.await.unwrap_or(Propagation::TimedOut));
    }
    all
}

/// Waits until all commits of the database so far are applied, at most for the configured time.
async fn one(site: Arc<SiteState>, feed: Arc<Feed>) -> Propagation {
    let bound = feed.config.barrier;
    if bound.is_zero() {
        return Propagation::NotNeeded;
    }
    // A failed query is repeated: a busy database may answer the next one in time.
    let reached = async {
        while feed.reach(&site).await.is_none() {
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
        feed.release_held(&site).await;
    };
    tokio::select! {
        reached = tokio::time::timeout(bound, reached) => match reached {
            Ok(()) => Propagation::Applied,
            Err(_) => Propagation::TimedOut,
        },
        // Nothing is applied here any more once the database is not followed.
        () = feed.ended() => Propagation::TimedOut,
    }
}

impl Feed {
    /// Waits until all commits of the database so far are applied, and records how long that took.
    /// `None`: the query failed.
    async fn reach(&self, site: &SiteState) -> Option<()> {
        let asked = Instant::now();
        let committed = self.committed().await?;
        self.reached(&committed).await?;
        count_lag(site, self, asked.elapsed());
        Some(())
    }

    /// Waits until a position is applied; `None`: the database is not followed any more.
    pub(super) async fn reached(&self, position: &Position) -> Option<()> {
        let mut applied = self.applied.subscribe();
        let reached = applied
            .wait_for(|applied| applied.as_ref().is_some_and(|applied| applied.has_all(position)));
        reached.await.ok().map(drop)
    }

    /// Queries the committed position of the database; `None` if the query failed.
    pub(super) async fn committed(&self) -> Option<Position> {
        let (ask, answer) = oneshot::channel();
        self.asks.try_send(ask).ok()?;
        answer.await.ok()
    }
}

/// Records how long it took until all was applied, or that it took at least this long.
pub(super) fn count_lag(site: &SiteState, feed: &Feed, lag: Duration) {
    let lag_us = lag.as_micros() as u64;
    feed.lag_us.store(lag_us, Ordering::Relaxed);
    feed.lag_at_ms.store(site.clock.monotonic().as_millis() as u64, Ordering::Relaxed);
    site.counters.lag_times.0.add(lag);
    site.counters.database_lag_us.set(lag_us);
    site.counters.database_lag_max_us.raise(lag_us);
}

/// Queries the database whenever a barrier needs its position.
pub async fn run(site: Arc<SiteState>, feed: Arc<Feed>, mut questions: Questions) {
    let mut kept = ReusableSession::default();
    let mut asking = Vec::new();
    while questions.recv_many(&mut asking, ASKING_MAX).await > 0 {
        let before = KnownPositions::of(&feed);
        match kept.ask(&feed, |session| Box::pin(session.committed())).await {
            Ok(position) if before.is_taken_back(&site, &feed, &position) => asking.clear(),
            Ok(position) => {
                for ask in asking.drain(..) {
                    // A barrier that timed out has dropped its receiver.
                    let _ = ask.send(position.clone());
                }
            }
            Err(error) => {
                // The senders are dropped, so each waiting barrier repeats its query or times out.
                let (database, reason) = (&feed.config.name, error.as_str());
                tracing::debug!(event = "database-unasked", database, reason, %error);
                asking.clear();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Positions that were known before a query was sent. Transactions sent or reported earlier were
/// committed then, so the response must include them. If it does not, the log was reset
/// (`RESET MASTER`) and its numbers mean something else. The stream does not notice a reset: the
/// server waits at its end until the new log is longer.
///
/// Example: applied up to 9; the log is reset and 4 transactions are written; the query returns 4.
/// Without this check, a write would be acknowledged although none of the 4 was sent. The applied
/// position is read before the query: in the opposite order, a transaction that arrives in between
/// would look lost. MySQL may send a transaction before it is committed. There, the response is compared with
/// what the server has reported before: when the stream began, to these queries, and as visible to readers.
pub struct KnownPositions {
    /// The generation of the stream that the positions belong to.
    generation: u64,
    applied: Option<Position>,
    /// The most that the database has reported as committed.
    reported: Option<Position>,
}

impl KnownPositions {
    /// Returns what is known before a query is sent.
    pub fn of(feed: &Feed) -> KnownPositions {
        let generation = feed.generation();
        let applied = feed.applied.borrow().clone();
        KnownPositions { generation, applied, reported: feed.reported(generation) }
    }

    /// Returns whether `committed` lacks a known transaction; records it for later queries if not. If it does,
    /// every page is purged, and the follower reconnects.
    pub fn is_taken_back(&self, site: &SiteState, feed: &Feed, committed: &Position) -> bool {
        let is_lost = self.applied.as_ref().is_some_and(|own| own.is_lost_by(committed));
        let reported = self.reported.as_ref();
        let is_taken_back = reported.is_some_and(|before| before.is_taken_back_by(committed));
        if !is_lost && !is_taken_back {
            feed.report(self.generation, committed);
            return false;
        }
        // If the stream has been reopened in the meantime, the new connection checks the position
        // itself.
        let is_current = feed.generation() == self.generation;
        if is_current {
            feed.doubt(site, self.generation);
        }
        is_current
    }
}
