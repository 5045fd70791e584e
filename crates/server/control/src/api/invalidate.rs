//! `POST /v1/invalidate`: purges pages, or marks them stale, by tag, URL or prefix.
//!
//! All names of a call form one change in each of its sites. The call returns when no request to
//! this node can get an old page any more. In a cluster it waits for the other nodes as well, for
//! at most `barrier`. An invalid call changes nothing: an unknown key, a malformed URL, or a call
//! without names is an error.

use super::ControlError;
use delivery::site::Site;
use history::ChangeSource;
use history::shown::cut;
use page_store::{AppliedChange, ChangeTarget, Strength};
use serde::{Deserialize, Serialize};
use site_state::page_name::{path_and_query, prefix};
use site_state::pending_changes::PendingBatch;
use std::net::SocketAddr;
use std::sync::Arc;

/// The body of a call.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Invalidate {
    /// Tags (surrogate keys) whose pages are invalidated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Absolute URLs, or paths with their query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Paths, or URLs without a query. Each stands for itself and everything below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Invalidates every page of the site.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Marks pages stale instead of purging them. Marked pages are served only where stale use is
    /// allowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub soft: bool,
    /// Limits the call to the site with this host or alias; the default is every site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// The result of a call.
#[derive(Debug, Deserialize, Serialize)]
pub struct InvalidationResult {
    /// The number of the invalidation; the highest one if there are several sites.
    pub number: u64,
    /// The number of purged pages.
    pub dropped: u64,
    /// The number of pages that this call has marked stale.
    #[serde(default)]
    pub marked: u64,
    /// Whether the other nodes of the `[cluster]` are not known to have applied the change within
    /// `barrier`, for example because the stream is unreachable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// Executes an invalidation to its end, even if the client disconnects.
pub(super) async fn execute(
    default_site: &Arc<Site>,
    call: Invalidate,
    peer: Option<SocketAddr>,
) -> Result<serde_json::Value, ControlError> {
    let default_site = default_site.clone();
    let carried_out = async move {
        let pending = PendingBatch::begin(default_site.all_sites().map(|site| site.state())).await;
        let site = default_site.clone();
        // Purging a million pages takes a while, so it runs on a blocking thread.
        let done = tokio::task::spawn_blocking(move || invalidate(&site, &call, peer));
        let told = done.await;
        let others = pending.acknowledge().await;
        told.map(|told| (told, others))
    };
    let done = tokio::spawn(carried_out).await.and_then(|done| done);
    let (told, others) = done.map_err(|panic| ControlError::Unreadable(panic.to_string()))?;
    told.map(|mut told| {
        others.say_in(&mut told);
        told
    })
}

/// Executes a call.
///
/// # Errors
/// The call is invalid; nothing was changed.
fn invalidate(
    site: &Arc<Site>,
    call: &Invalidate,
    peer: Option<SocketAddr>,
) -> Result<serde_json::Value, ControlError> {
    let by = ChangeSource::Control { peer: peer.map(|peer| cut(&peer.ip().to_string())) };
    let lists = [&call.tags, &call.urls, &call.prefixes];
    if lists.iter().all(|list| list.is_empty()) && !call.all {
        let text = "name tags, urls, prefixes, or all: {\"tags\":[\"news:4\"]}";
        return Err(ControlError::Unreadable(text.into()));
    }
    if call.tags.iter().any(String::is_empty) {
        return Err(ControlError::Unreadable("a tag is empty: no page has that".into()));
    }
    let read = |list: &[String], reader: fn(&str) -> Result<String, String>| {
        let read: Result<Vec<_>, _> = list.iter().map(|url| reader(url)).collect();
        read.map_err(ControlError::Unreadable)
    };
    let (urls, prefixes) = (read(&call.urls, path_and_query)?, read(&call.prefixes, prefix)?);
    let mut targets: Vec<ChangeTarget<'_>> = Vec::new();
    targets.extend(call.tags.iter().map(|tag| ChangeTarget::Tag(tag.as_bytes())));
    if call.all {
        targets.push(ChangeTarget::Everything);
    }
    let strength = if call.soft { Strength::Mark } else { Strength::Drop };
    let chosen = call
        .site
        .as_deref()
        .map(|host| site.named(host).ok_or_else(|| ControlError::SiteUnknown(host.to_owned())));
    let mut told = InvalidationResult { number: 0, dropped: 0, marked: 0, late: false };
    for site in site.selected_or_all(chosen.transpose()?) {
        let applied = change(site, &targets, (&urls, &prefixes), strength, by.clone());
        told.number = told.number.max(applied.number.get());
        told.dropped += applied.dropped;
        told.marked += applied.marked;
    }
    serde_json::to_value(told).map_err(|error| ControlError::Unreadable(error.to_string()))
}

/// Applies the change to one site.
fn change(
    site: &Arc<Site>,
    targets: &[ChangeTarget<'_>],
    (urls, prefixes): (&[String], &[String]),
    strength: Strength,
    by: ChangeSource,
) -> AppliedChange {
    let mut targets = targets.to_vec();
    // Pages are stored under normalised URLs, so the given ones are normalised too.
    let form = site.config.rules.form();
    let urls: Vec<_> = urls.iter().map(|url| form.normal(url).page).collect();
    let prefixes: Vec<_> = prefixes.iter().map(|path| form.normal(path).page).collect();
    targets.extend(urls.iter().map(|page| ChangeTarget::Url(page.as_bytes())));
    targets.extend(prefixes.iter().map(|path| ChangeTarget::Prefix(path.as_bytes())));
    site.changes().apply(&targets, strength, by)
}
