//! No page is stored while the database has not been followed for too long, or not yet.
//!
//! Each database of a site has its own; a page is stored when all are open.
//!
//! Closed, it is a change of every page that stays open: lookups find nothing, renders are passed on
//! and not stored, and neither costs a hit anything. It is opened when the database is followed again
//! and everything committed meanwhile is applied; the change then settles like any other.
//!
//! Lock: `closed`, held while a change is opened or taken out, never across an `await`.

use super::Feed;
use crate::config::OnLag;
use crate::site::Site;
use page_store::{Opened, Target};
use std::sync::{Arc, Mutex, PoisonError};

/// The gate of one database of a site.
#[derive(Default)]
pub struct Gate {
    closed: Mutex<Option<Opened>>,
}

impl Gate {
    /// Drops every page, and lets none in; nothing if that is so already.
    pub fn close(&self, site: &Site) {
        self.close_unless(site, || false);
    }

    /// The same unless `followed`, which is asked under the lock: whoever begins to follow says so
    /// first, and looks at the gate afterwards.
    fn close_unless(&self, site: &Site, followed: impl Fn() -> bool) -> Closed {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.is_some() || followed() {
            return Closed::NotNow;
        }
        *closed = Some(site.open(&[Target::Everything], "database"));
        Closed::Now
    }

    /// The open change, if the gate is closed: whoever takes it settles it.
    pub fn open(&self) -> Option<Opened> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What came of an attempt to close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    /// It is closed, and was not before.
    Now,
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
        if feed.gate.close_unless(&site, || feed.applied.borrow().is_some()) == Closed::Now {
            let (database, lag_max_ms) = (&feed.config.name, lag_max.as_millis() as u64);
            tracing::error!(event = "database-away", database, lag_max_ms);
        }
        let _ = applied.wait_for(Option::is_some).await;
    }
}
