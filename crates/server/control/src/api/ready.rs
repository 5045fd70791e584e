//! `GET /v1/ready`: whether a load balancer should send requests here. It requires that restoring
//! the old snapshot has ended, every database is followed, and Pagewell is not about to stop.
//! `GET /v1/health` reports only that the process answers.
//!
//! A short interruption of a database does not change the answer. It becomes "not ready" when pages
//! are no longer stored, because the allowed lag is exceeded; until then `proven_ms_ago` grows. Not here: PHP, which may be
//! unreachable while pages are served from the cache.

use crate::attention::{is_stuck, is_unfollowed};
use delivery::site::Site;
use std::sync::Arc;
use telemetry::phase::Phase;

/// The reasons for not being ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// Pagewell is shutting down.
    Stopping,
    /// Another process is taking over, or has taken over (zero-downtime restart).
    HandedOver,
    /// The pages of an earlier process are still being restored.
    SnapshotLoading,
    /// A database is not followed, so no page is stored.
    DatabaseNotFollowed,
    /// The stream has accepted no change of this node for longer than `lag_max`, so the other nodes
    /// of the cluster may show old pages.
    ClusterNotPublished,
}

impl NotReady {
    /// Returns the name of the reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NotReady::Stopping => "stopping",
            NotReady::HandedOver => "handed-over",
            NotReady::SnapshotLoading => "snapshot-loading",
            NotReady::DatabaseNotFollowed => "database-not-followed",
            NotReady::ClusterNotPublished => "cluster-not-published",
        }
    }
}

/// Returns all reasons for not being ready, over all sites; empty if Pagewell is ready.
pub(super) fn why_not(default_site: &Arc<Site>, phase: Phase) -> Vec<NotReady> {
    let any = |holds: fn(&Site) -> bool| default_site.all_sites().any(|site| holds(site));
    let reasons = [
        (NotReady::Stopping, phase == Phase::Stopping),
        (NotReady::HandedOver, phase.is_leaving() && phase != Phase::Stopping),
        (NotReady::SnapshotLoading, any(is_loading)),
        (NotReady::DatabaseNotFollowed, any(is_unfollowed)),
        (NotReady::ClusterNotPublished, any(is_stuck)),
    ];
    reasons.into_iter().filter(|(_, holds)| *holds).map(|(reason, _)| reason).collect()
}

fn is_loading(site: &Site) -> bool {
    site.snapshots.as_ref().is_some_and(|snapshots| !snapshots.is_taken_up())
}

/// Returns the answer as JSON.
pub(super) fn reasons_json(reasons: &[NotReady]) -> serde_json::Value {
    let names: Vec<_> = reasons.iter().map(|reason| reason.as_str()).collect();
    serde_json::json!({ "ready": names.is_empty(), "reasons": names })
}

/// Returns the answer, with the age of the oldest proof that a source has no change which is not
/// applied; without it if nothing is followed.
pub(super) fn answer(default_site: &Arc<Site>, reasons: &[NotReady]) -> serde_json::Value {
    let feeds = default_site.all_sites().flat_map(|site| &site.sources.feeds);
    let oldest = feeds.filter_map(|feed| feed.proof_age()).max();
    let mut answer = reasons_json(reasons);
    if let Some(age) = oldest {
        answer["proven_ms_ago"] = (age.as_millis() as u64).into();
    }
    answer
}
