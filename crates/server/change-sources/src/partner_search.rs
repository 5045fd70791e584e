//! Look-ups of the partners of changed rows in the database, for automatic dependencies.
//!
//! A database sends a transaction before other connections see its rows. A look-up at that moment would miss
//! partners of the same transaction. So the first look-up waits until the transaction is visible. Invariant: a
//! look-up sees at least the transaction whose rows are checked; otherwise the partners are not known, and count as
//! present. The number of look-ups and the time for all of them are limited.

use super::Feed;
use super::reusable_session::{Asking, ReusableSession};
use super::settle::visible;
use super::stream_ahead::StreamAhead;
use databases::source::{PartnerQuery, Session};
use databases::stream_types::{Position, VisibilityMarker};
use footprint::schema::SqlSchema;
use footprint::{Lookup, NearestLookup, SqlRow};
use statements::footprints::{FindPartners, NearestRows};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The maximum number of look-ups for a transaction.
const LOOKUPS_MAX: u32 = 200;
/// The maximum time for the look-ups of a transaction.
const LOOKUP_TIME_MAX: Duration = Duration::from_millis(50);
/// How long no look-up is made after one failed or took too long. So a slow table does not make the follower lag.
const RETRY: Duration = Duration::from_secs(1);
/// The pause between two visibility queries.
const PAUSE: Duration = Duration::from_micros(500);

/// The maximum time for the look-ups of a transaction: the product's, or in a build for tests the milliseconds in
/// `PAGEWELL_LOOKUP_TIME_MS`, if that is set.
pub(super) fn lookup_time_max() -> Duration {
    #[cfg(feature = "lookup-time-by-choice")]
    if let Some(time_ms) =
        std::env::var("PAGEWELL_LOOKUP_TIME_MS").ok().and_then(|text| text.parse().ok())
    {
        return Duration::from_millis(time_ms);
    }
    LOOKUP_TIME_MAX
}

/// The rows that a look-up found; `None` if they are not known.
type FoundRows = Option<Vec<SqlRow<'static>>>;

/// The connection for look-ups.
#[derive(Default)]
pub struct PartnerSession {
    kept: ReusableSession,
    /// No look-up is made before this time.
    not_before: Option<Instant>,
}

impl PartnerSession {
    /// Opens the connection, if it is not open: the time for look-ups may be too short for a login.
    pub async fn open(&mut self, feed: &Feed) {
        if let Err(error) = self.kept.open(feed).await {
            let (database, reason) = (feed.name(), error.as_str());
            tracing::debug!(event = "database-unasked", database, reason, %error);
        }
    }
}

/// The look-ups for one transaction.
pub struct PartnerSearch<'f> {
    feed: &'f Feed,
    session: &'f mut PartnerSession,
    /// Identifies the transaction in a visibility query; `None`: there is no such query.
    mark: Option<VisibilityMarker>,
    left: u32,
    /// The end of the time; `None` before the first look-up.
    until: Option<Instant>,
    progress: SearchProgress,
    /// The stream, if transactions after this one may be read ahead.
    stream: Option<&'f mut StreamAhead>,
}

/// The progress of the look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchProgress {
    /// The transaction may not be visible yet.
    Begun,
    /// It is visible.
    Visible,
    /// The time is over, or the database did not answer, now or a moment ago.
    Ended,
}

impl<'f> PartnerSearch<'f> {
    /// Look-ups for the transaction that `mark` identifies, on a connection that is kept for the next ones.
    pub fn new(
        feed: &'f Feed,
        session: &'f mut PartnerSession,
        mark: Option<VisibilityMarker>,
    ) -> PartnerSearch<'f> {
        let is_paused = session.not_before.is_some_and(|time| Instant::now() < time);
        let progress = if is_paused { SearchProgress::Ended } else { SearchProgress::Begun };
        PartnerSearch {
            feed,
            session,
            mark,
            left: LOOKUPS_MAX,
            until: None,
            progress,
            stream: None,
        }
    }

    /// Allows look-ups of the rows near changed rows: they need the transactions after this one.
    pub fn read_ahead_in(&mut self, stream: &'f mut StreamAhead) {
        self.stream = Some(stream);
    }

    /// Looks up the rows near changed rows. Rows that a later transaction may have put there are not known.
    async fn look_up_nearest(
        &mut self,
        schema: &SqlSchema,
        lookups: &[NearestLookup],
    ) -> NearestRows {
        let count = u32::try_from(lookups.len()).unwrap_or(u32::MAX);
        let is_ended = self.progress == SearchProgress::Ended || self.left < count;
        if is_ended || self.stream.is_none() {
            return Vec::new();
        }
        self.left -= count;
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.feed.lookup_time_max);
        let queries = lookups.iter().map(|lookup| PartnerQuery::nearest(schema, lookup));
        let found = match timeout_at(until, self.ask_nearest(queries.collect())).await {
            Ok(Ok(found)) => found,
            Ok(Err(reason)) => {
                self.end(reason);
                return Vec::new();
            }
            Err(_) => {
                self.end("timeout");
                return Vec::new();
            }
        };
        let (Some((mut all, end)), Some(stream)) = (found, &mut self.stream) else {
            return Vec::new();
        };
        if !stream.read_to(&end, until).await {
            return Vec::new();
        }
        for (lookup, rows) in lookups.iter().zip(&mut all) {
            let is_known = |rows: &Vec<SqlRow<'_>>| {
                !stream.changes().any(|later| lookup.is_in_doubt(rows, later))
            };
            *rows = rows.take().filter(is_known);
        }
        all
    }

    /// Runs the look-ups and asks for the position after them, on one connection.
    async fn ask_nearest(
        &mut self,
        queries: Vec<PartnerQuery>,
    ) -> Result<Option<(NearestRows, Position)>, &'static str> {
        self.until_visible().await?;
        let queries: Arc<[PartnerQuery]> = queries.into();
        let session = &mut self.session.kept;
        let found = session.ask(self.feed, |session| find_nearest(session, queries.clone())).await;
        found.map_err(|error| error.as_str())
    }

    /// Waits until the transaction is visible, once.
    async fn until_visible(&mut self) -> Result<(), &'static str> {
        if self.progress == SearchProgress::Begun {
            self.wait_until_visible().await?;
            self.progress = SearchProgress::Visible;
        }
        Ok(())
    }

    async fn look_up(&mut self, query: PartnerQuery) -> FoundRows {
        if self.progress == SearchProgress::Ended || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.feed.lookup_time_max);
        match timeout_at(until, self.ask(query)).await {
            Ok(Ok(found)) => found,
            Ok(Err(reason)) => self.end(reason),
            Err(_) => self.end("timeout"),
        }
    }

    fn end(&mut self, reason: &str) -> FoundRows {
        self.progress = SearchProgress::Ended;
        self.session.not_before = Some(Instant::now() + RETRY);
        tracing::debug!(event = "partners-unknown", database = self.feed.name(), reason);
        None
    }

    async fn ask(&mut self, query: PartnerQuery) -> Result<FoundRows, &'static str> {
        self.until_visible().await?;
        let query = Arc::new(query);
        let found = self.session.kept.ask(self.feed, |session| find(session, query.clone())).await;
        found.map_err(|error| error.as_str())
    }

    async fn wait_until_visible(&mut self) -> Result<(), &'static str> {
        let Some(mark) = &self.mark else { return Err("no-mark") };
        loop {
            let session = &mut self.session.kept;
            let seen = session.ask(self.feed, |session| visible(session, mark.clone())).await;
            match seen.map_err(|error| error.as_str())? {
                Some(seen) if seen.shows(mark) => return Ok(()),
                Some(_) => sleep(PAUSE).await,
                None => return Err("visibility-unknown"),
            }
        }
    }
}

impl FindPartners for PartnerSearch<'_> {
    fn find<'a>(
        &'a mut self,
        schema: &'a SqlSchema,
        lookup: &'a Lookup,
    ) -> Pin<Box<dyn Future<Output = FoundRows> + Send + 'a>> {
        Box::pin(self.look_up(PartnerQuery::new(schema, lookup)))
    }

    fn find_nearest<'a>(
        &'a mut self,
        schema: &'a SqlSchema,
        lookups: &'a [NearestLookup],
    ) -> Pin<Box<dyn Future<Output = NearestRows> + Send + 'a>> {
        Box::pin(self.look_up_nearest(schema, lookups))
    }
}

fn find_nearest(
    session: &mut Session,
    queries: Arc<[PartnerQuery]>,
) -> Asking<'_, Option<(NearestRows, Position)>> {
    Box::pin(async move { session.find_nearest(&queries).await })
}

fn find(session: &mut Session, query: Arc<PartnerQuery>) -> Asking<'_, FoundRows> {
    Box::pin(async move { session.find(&query).await })
}
