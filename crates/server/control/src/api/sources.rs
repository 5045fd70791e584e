//! `GET /v1/sources`: the followed databases and the other nodes of the cluster, each with its lag.
//!
//! Not here: the lag of all databases of a site in one number, which is a metric
//! (`database_lag_us`).

use change_sources::{ClusterNode, NodeState, own_name};
use config::DatabaseKind;
use exchange::site::Site;
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
        databases.extend(site.sources.feeds.iter().map(|feed| {
            json!({
                "site": host,
                "name": feed.name(),
                "kind": SourceKind::of(feed.kind()),
                "server": feed.server(),
                "followed": feed.is_followed(),
                "stores_pages": !feed.keeps_pages_out(),
                "lag_us": feed.lag().map(|lag| lag.as_micros() as u64),
            })
        }));
        let peers = site.sources.others.iter().flat_map(|others| others.nodes());
        nodes.extend(peers.map(|peer| node(host.as_deref(), &peer, now)));
    }
    json!({ "own_name": own_name(), "databases": databases, "nodes": nodes })
}

fn node(host: Option<&str>, node: &ClusterNode, now: Instant) -> Value {
    json!({
        "site": host,
        "name": node.name,
        "state": ReportedState::of(node.state),
        "lag_ms": node.lag.as_millis() as u64,
        "reported_ms_ago": now.duration_since(node.reported).as_millis() as u64,
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
}

impl ReportedState {
    fn of(state: NodeState) -> ReportedState {
        match state {
            NodeState::Connected => ReportedState::Connected,
            NodeState::Silent => ReportedState::Silent,
            NodeState::Stopped => ReportedState::Stopped,
        }
    }
}
