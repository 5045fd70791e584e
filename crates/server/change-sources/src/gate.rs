//! Stops storing pages while a database is not followed yet, or has been interrupted for too long.
//!
//! Each database of a site has its own gate. A page is stored only when all gates are open.
//!
//! A closed gate is an open change of every page: lookups find nothing, and renders are not stored.
//! A hit pays nothing for this check. The gate opens when the database is followed again and
//! everything committed until then is applied. The change then settles like any other. Lag closes
//! the gate as well: a query every second (`barrier`) measures how long a committed position takes
//! to be applied. The gate opens when everything is applied that was committed when it closed.
//!
//! Lock: `closed`, held while a change is opened or taken out, never across an `await`.

use super::Feed;
use super::barrier::count_lag;
use super::source::Position;
use config::OnLag;
use page_store::{ChangeTarget, OpenChange};
use site_state::SiteState;
use site_state::history::ChangeSource;
use site_state::history::shown::cut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a followed database is queried for its position.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The gate of one database of a site.
#[derive(Default)]
pub struct Gate {
    closed: Mutex<ClosedGate>,
    /// Whether `until` is set, readable without the lock.
    is_behind: AtomicBool,
}

#[derive(Default)]
struct ClosedGate {
    /// The open change of every page while the gate is closed.
    by: Option<OpenChange>,
    /// The position that must be applied before the gate opens, if the stream has lagged behind.
    until: Option<Position>,
}

impl Gate {
    /// Purges every page, and prevents storing; does nothing if the gate is closed. `name` is the
    /// database's.
    pub fn close(&self, site: &SiteState, name: &str) {
        self.close_unless(site, name, || false);
    }

    /// The same unless `followed` returns true. It is called under the lock, because a follower
    /// announces itself before it checks the gate.
    fn close_unless(&self, site: &SiteState, name: &str, followed: impl Fn() -> bool) -> Attempt {
        let mut closed = self.lock();
        if closed.by.is_some() || followed() {
            return Attempt::NotNow;
        }
        closed.by = Some(
            site.changes()
                .open(&[ChangeTarget::Everything], ChangeSource::Gap { database: cut(name) }),
        );
        Attempt::Closed
    }

    /// Returns whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.lock().by.is_some()
    }

    /// Opens the gate. Returns its open change, which the caller must settle; `None` if it was
    /// open.
    pub fn open(&self) -> Option<OpenChange> {
        self.open_with(&mut self.lock())
    }

    fn open_with(&self, closed: &mut ClosedGate) -> Option<OpenChange> {
        closed.until = None;
        self.is_behind.store(false, Ordering::Release);
        closed.by.take()
    }

    /// Opens the gate if the stream had lagged behind and `applied` shows that it has caught up.
    pub fn open_at(&self, applied: &Position) -> Option<OpenChange> {
        if !self.is_behind.load(Ordering::Acquire) {
            return None;
        }
        // Check and opening share one lock. Otherwise a close in between, for another reason, would
        // be lost.
        let mut closed = self.lock();
        let is_reached = closed.until.as_ref().is_some_and(|until| applied.has_all(until));
        if is_reached { self.open_with(&mut closed) } else { None }
    }

    fn open_when(&self, until: Position) {
        let mut closed = self.lock();
        if closed.by.is_some() {
            closed.until = Some(until);
            self.is_behind.store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ClosedGate> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of an attempt to close the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// It was open and is now closed.
    Closed,
    /// It was closed already, or must stay open.
    NotNow,
}

/// Closes the gate whenever the database was not followed for as long as the site allows.
pub async fn watch(site: Arc<SiteState>, feed: Arc<Feed>) {
    let OnLag::BypassAfter(lag_max) = feed.config.on_lag else { return };
    let mut applied = feed.applied.subscribe();
    loop {
        // The sender is a field of the site, which this task holds.
        let _ = applied.wait_for(Option::is_none).await;
        let followed = tokio::time::timeout(lag_max, applied.wait_for(Option::is_some));
        if followed.await.is_ok() {
            continue;
        }
        if feed.gate.close_unless(&site, feed.name(), || feed.applied.borrow().is_some())
            == Attempt::Closed
        {
            let (database, lag_max_ms) = (&feed.config.name, lag_max.as_millis() as u64);
            tracing::error!(event = "database-away", database, lag_max_ms);
        }
        let _ = applied.wait_for(Option::is_some).await;
    }
}

/// Measures the lag of a followed database, and closes the gate if it exceeds the site's limit, or
/// one second if the limit is lower.
pub async fn measure(site: Arc<SiteState>, feed: Arc<Feed>) {
    let lag_max = match feed.config.on_lag {
        OnLag::BypassAfter(lag_max) => lag_max.max(ASK_EVERY),
        OnLag::Serve => Duration::MAX,
    };
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        if tokio::time::timeout(lag_max, feed.reach(&site)).await.is_ok() || !feed.is_followed() {
            continue;
        }
        // The lag exceeds the limit. Its exact value is not measured.
        count_lag(&site, &feed, lag_max + Duration::from_micros(1));
        if feed.gate.close_unless(&site, feed.name(), || false) == Attempt::Closed {
            let (database, lag_max_ms) = (&feed.config.name, lag_max.as_millis() as u64);
            tracing::error!(event = "database-behind", database, lag_max_ms);
        }
        let until = loop {
            match feed.committed().await {
                Some(position) => break position,
                None => tokio::time::sleep(ASK_EVERY).await,
            }
        };
        feed.gate.open_when(until);
    }
}
