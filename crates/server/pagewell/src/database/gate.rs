//! No page is stored while the database has not been followed for too long, or not yet.
//!
//! Each database of a site has its own; a page is stored when all are open.
//!
//! Closed, it is a change of every page that stays open: lookups find nothing, renders are passed on
//! and not stored, and neither costs a hit anything. It is opened when the database is followed again
//! and everything committed meanwhile is applied; the change then settles like any other.
//!
//! Falling behind closes it as well: a question every second (`barrier`) shows how long what was committed
//! then takes to be applied. It is opened when all is applied that was committed when it was closed.
//!
//! Lock: `closed`, held while a change is opened or taken out, never across an `await`.

use super::Feed;
use super::barrier::count_lag;
use super::source::Position;
use crate::config::OnLag;
use crate::site::Site;
use crate::why::Cause;
use crate::why::shown::cut;
use page_store::{ChangeTarget, OpenChange};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a database that is followed is asked how far it is.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The gate of one database of a site.
#[derive(Default)]
pub struct Gate {
    closed: Mutex<Closed>,
    /// Whether `until` is set: a look without the lock.
    is_behind: AtomicBool,
}

#[derive(Default)]
struct Closed {
    /// The change of every page, while it is closed.
    by: Option<OpenChange>,
    /// What has to be applied for it to be opened, where the stream had fallen behind.
    until: Option<Position>,
}

impl Gate {
    /// Drops every page, and lets none in; nothing if that is so already. `name` is the database's.
    pub fn close(&self, site: &Site, name: &str) {
        self.close_unless(site, name, || false);
    }

    /// The same unless `followed`, which is asked under the lock: whoever begins to follow says so
    /// first, and looks at the gate afterwards.
    fn close_unless(&self, site: &Site, name: &str, followed: impl Fn() -> bool) -> Attempt {
        let mut closed = self.lock();
        if closed.by.is_some() || followed() {
            return Attempt::NotNow;
        }
        closed.by =
            Some(site.open(&[ChangeTarget::Everything], Cause::Gap { database: cut(name) }));
        Attempt::Closed
    }

    /// Whether no page is let in.
    pub fn is_closed(&self) -> bool {
        self.lock().by.is_some()
    }

    /// The open change, if the gate is closed: whoever takes it settles it.
    pub fn open(&self) -> Option<OpenChange> {
        self.open_with(&mut self.lock())
    }

    fn open_with(&self, closed: &mut Closed) -> Option<OpenChange> {
        closed.until = None;
        self.is_behind.store(false, Ordering::Release);
        closed.by.take()
    }

    /// The same where the stream had fallen behind and has caught up.
    pub fn open_at(&self, applied: &Position) -> Option<OpenChange> {
        if !self.is_behind.load(Ordering::Acquire) {
            return None;
        }
        // In one hold: who closes it in between, for another reason, would find it closed.
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

    fn lock(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of an attempt to close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// It is closed, and was not before.
    Closed,
    /// It was closed, or is not to be.
    NotNow,
}

/// Closes the gate whenever the database was not followed for as long as the site allows.
pub async fn watch(site: Arc<Site>, feed: Arc<Feed>) {
    let OnLag::BypassAfter(lag_max) = feed.config.on_lag else { return };
    let mut applied = feed.applied.subscribe();
    loop {
        // The sender is in the site, which is held here.
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

/// Measures how far behind a database is that is followed, and closes the gate where that is more than
/// the site allows; never for less than it takes to ask.
pub async fn measure(site: Arc<Site>, feed: Arc<Feed>) {
    let lag_max = match feed.config.on_lag {
        OnLag::BypassAfter(lag_max) => lag_max.max(ASK_EVERY),
        OnLag::Serve => Duration::MAX,
    };
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        if tokio::time::timeout(lag_max, feed.reach(&site)).await.is_ok() || !feed.is_followed() {
            continue;
        }
        // More than that; how much, it will be known when nobody asks any more.
        count_lag(&site, lag_max + Duration::from_micros(1));
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
