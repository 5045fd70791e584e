//! `GET /v1/ready`: whether visitors should be sent here. What was left of an earlier process is put in
//! or given up, every database is followed, and Pagewell is not about to end. `GET /v1/health` says
//! less: that it answers.
//!
//! A database that is away for a moment takes nothing from it: only when no page is kept any more, for
//! the lag allowed is over, the answer is no. Not here: PHP, which may be away while pages are served.

use crate::phase::Phase;
use crate::site::Site;
use std::sync::Arc;

/// Why not yet, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// Pagewell was told to stop.
    Stopping,
    /// Another process is taking over, or has.
    HandedOver,
    /// The pages of an earlier process are still being put in.
    SnapshotLoading,
    /// A database is not followed, so that no page is kept.
    DatabaseNotFollowed,
}

impl NotReady {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NotReady::Stopping => "stopping",
            NotReady::HandedOver => "handed-over",
            NotReady::SnapshotLoading => "snapshot-loading",
            NotReady::DatabaseNotFollowed => "database-not-followed",
        }
    }
}

/// Everything that speaks against it, of all sites of the process; nothing: it is ready.
pub(super) fn why_not(door: &Arc<Site>, phase: Phase) -> Vec<NotReady> {
    let any = |holds: fn(&Site) -> bool| door.all_or(None).any(|site| holds(site));
    let reasons = [
        (NotReady::Stopping, phase == Phase::Stopping),
        (NotReady::HandedOver, phase.is_leaving() && phase != Phase::Stopping),
        (NotReady::SnapshotLoading, any(is_loading)),
        (NotReady::DatabaseNotFollowed, any(is_unfollowed)),
    ];
    reasons.into_iter().filter(|(_, holds)| *holds).map(|(reason, _)| reason).collect()
}

fn is_loading(site: &Site) -> bool {
    site.snapshots.as_ref().is_some_and(|snapshots| !snapshots.is_taken_up())
}

fn is_unfollowed(site: &Site) -> bool {
    site.sources.feeds.iter().any(|feed| feed.keeps_pages_out())
}

/// As it is told.
pub(super) fn told(reasons: &[NotReady]) -> serde_json::Value {
    let names: Vec<_> = reasons.iter().map(|reason| reason.as_str()).collect();
    serde_json::json!({ "ready": names.is_empty(), "reasons": names })
}
