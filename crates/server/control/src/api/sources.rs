//! `GET /v1/sources`: the followed databases and the other nodes of the cluster, each with its lag and
//! the age of these figures.
//!
//! Where a connection is down, the lag is null: the last one says nothing about now. While the next
//! measurement is overdue, the lag is the age of the last proof (`change_sources`). Not here: the lag of
//! all databases of a site in one number, which is a metric (`database_lag_us`).

use change_sources::Feed;
use cluster::{ClusterNode, HostName, NodeState, own_name};
use config::DatabaseKind;
use delivery::site::Site;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// Returns the databases and nodes of all sites.
pub(super) fn sources(default_site: &Arc<Site>) -> Value {
    let (mut databases, mut nodes) = (Vec::new(), Vec::new());
    let now = Instant::now();
    for site in default_site.all_sites() {
        let host = &site.config.hosts.canonical;
        databases.extend(site.sources.feeds.iter().map(|feed| database(site, feed)));
        let peers = site.sources.peers.iter().flat_map(|peers| peers.nodes());
        nodes.extend(peers.map(|peer| node(host.as_deref(), &peer, now)));
    }
    json!({
        "own_name": own_name(),
        "own_host_name": HostName::own().map(HostName::as_str),
        "databases": databases,
        "nodes": nodes,
    })
}

fn database(site: &Site, feed: &Feed) -> Value {
    let (lag, now, is_followed) = (feed.lag(), site.clock.monotonic(), feed.is_followed());
    let lag_now = feed.lag_now().filter(|_| is_followed);
    json!({
        "site": site.config.hosts.canonical,
        "name": feed.name(),
        "kind": SourceKind::of(feed.kind()),
        "server": feed.server(),
        "followed": is_followed,
        "stores_pages": !feed.keeps_pages_out(),
        "lag_us": lag_now.map(|lag| lag.as_micros() as u64),
        "measured_ms_ago":
            lag.map(|lag| now.saturating_sub(lag.measured_at).as_millis() as u64),
        "proven_ms_ago": feed.proof_age().map(|age| age.as_millis() as u64),
    })
}

fn node(host: Option<&str>, node: &ClusterNode, now: Instant) -> Value {
    json!({
        "site": host,
        "name": node.name,
        "host_name": node.host_name.as_ref().map(HostName::as_str),
        "state": ReportedState::of(node.state),
        "lag_ms": node.lag.map(|lag| lag.as_millis() as u64),
        "reported_ms_ago": now.duration_since(node.reported).as_millis() as u64,
        "read_ms_ago": now.duration_since(node.read).as_millis() as u64,
    })
}

/// The protocol of a database, as the answer names it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum SourceKind {
    MariaDb,
    PostgreSql,
    /// The stream of a cluster.
    Cluster,
}

impl SourceKind {
    fn of(kind: &DatabaseKind) -> SourceKind {
        match kind {
            DatabaseKind::MariaDb => SourceKind::MariaDb,
            DatabaseKind::Postgres(_) => SourceKind::PostgreSql,
            DatabaseKind::Valkey(_) => SourceKind::Cluster,
        }
    }
}

/// The state of a node, as the answer names it.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum ReportedState {
    Connected,
    Silent,
    Stopped,
    Unknown,
}

impl ReportedState {
    fn of(state: NodeState) -> ReportedState {
        match state {
            NodeState::Connected => ReportedState::Connected,
            NodeState::Silent => ReportedState::Silent,
            NodeState::Stopped => ReportedState::Stopped,
            NodeState::Unknown => ReportedState::Unknown,
        }
    }
}
