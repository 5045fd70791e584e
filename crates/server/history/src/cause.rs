//! The source of a change: it answers "what purged this page?".
//!
//! A cause accompanies its change from its origin to the history of changes. It decides only which
//! other processes receive the change.

use super::shown::{cut, masked};
use config::CLUSTER;
use footprint::RowText;
use reasons::Reason;
use serde_json::{Value, json};

/// The most tables of one transaction that are named.
pub const TABLES_MAX: usize = 8;

/// The source of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeSource {
    /// A call of the control interface.
    Control {
        /// The client's address; `None` over a Unix socket.
        peer: Option<Box<str>>,
    },
    /// The response of the site to this request: a write, or a response that announces a change.
    Response {
        /// The method of the request.
        method: Box<str>,
        /// Its URL, without the values in its query.
        url: Box<str>,
    },
    /// A purge request on the site's own port.
    Purge {
        /// The method of the purge request.
        method: Box<str>,
        /// The address of the client.
        peer: Option<Box<str>>,
    },
    /// A transaction of a database.
    Database {
        /// The name of the database.
        database: Box<str>,
        /// The tables whose rows it changed, at most [`TABLES_MAX`].
        tables: Vec<Box<str>>,
        /// The first row that touched a statement of a page, with automatic dependencies.
        row: Option<Box<RowText>>,
    },
    /// A database was not followed, so changes may have been missed.
    Gap {
        /// The name of the database.
        database: Box<str>,
    },
    /// Another node of the cluster, or an entry that was added to the stream by hand.
    Cluster {
        /// The publisher's name for itself; empty if the entry has none.
        from: Box<str>,
        /// The host name of the node, if it is known.
        host_name: Option<Box<str>>,
    },
    /// A command on the memcached port.
    Memcached,
    /// The owner of the private copies: a write, a login or a logout.
    Client,
    /// A later response of the origin for the page.
    Superseded {
        /// The status code of the response.
        status: u16,
        /// Why the response does not replace the page in the cache.
        reason: Reason,
    },
    /// A reload of the configuration that changes the meaning of stored pages.
    Reload,
    /// The machine's clock was set back, so items with an expiry time would live longer.
    Clock,
    /// The previous process of a zero-downtime restart, which still has requests in flight.
    Predecessor,
}

impl ChangeSource {
    /// Creates the cause for a response to this request.
    pub fn response(method: &http::Method, url: &str) -> ChangeSource {
        ChangeSource::Response { method: cut(method.as_str()), url: masked(url) }
    }

    /// Creates the cause for a transaction that changed these tables.
    pub fn database<'t>(database: &str, tables: impl Iterator<Item = &'t str>) -> ChangeSource {
        let tables = tables.take(TABLES_MAX).map(cut).collect();
        ChangeSource::Database { database: cut(database), tables, row: None }
    }

    /// The same cause with the row that touched a statement of a page.
    #[must_use]
    pub fn with_row(mut self, changed: Option<RowText>) -> ChangeSource {
        if let ChangeSource::Database { row, .. } = &mut self {
            *row = changed.map(|RowText { row, columns }| {
                Box::new(RowText { row: cut(&row).into(), columns: cut(&columns).into() })
            });
        }
        self
    }

    /// The table and the columns whose change touched a statement of a page.
    pub fn columns(&self) -> Option<&str> {
        match self {
            ChangeSource::Database { row: Some(row), .. } => Some(&row.columns),
            _ => None,
        }
    }

    /// Returns whether the change is published to the other nodes. That holds for changes which
    /// only this node received. The other nodes follow the databases themselves, and the remaining
    /// causes concern this process alone.
    pub fn is_for_others(&self) -> bool {
        match self {
            ChangeSource::Control { .. }
            | ChangeSource::Response { .. }
            | ChangeSource::Purge { .. }
            | ChangeSource::Memcached
            | ChangeSource::Client => true,
            ChangeSource::Database { .. }
            | ChangeSource::Gap { .. }
            | ChangeSource::Cluster { .. }
            | ChangeSource::Superseded { .. }
            | ChangeSource::Reload
            | ChangeSource::Clock
            | ChangeSource::Predecessor => false,
        }
    }

    /// Returns whether the change is forwarded to the successor process. Changes from the cluster's
    /// stream are not: the successor reads them itself, from the position that this process has
    /// reached. It begins only after this process has stopped following the stream, so the follower
    /// must not wait for it.
    pub fn is_for_successor(&self) -> bool {
        !matches!(self, ChangeSource::Cluster { .. })
    }

    /// Returns the kind of the cause as one word.
    pub fn kind(&self) -> &'static str {
        match self {
            ChangeSource::Control { .. } => "control",
            ChangeSource::Response { .. } => "response",
            ChangeSource::Purge { .. } => "purge",
            ChangeSource::Database { .. } => "database",
            ChangeSource::Gap { .. } => "gap",
            ChangeSource::Cluster { .. } => "cluster",
            ChangeSource::Memcached => "memcached",
            ChangeSource::Client => "client",
            ChangeSource::Superseded { .. } => "superseded",
            ChangeSource::Reload => "reload",
            ChangeSource::Clock => "clock",
            ChangeSource::Predecessor => "predecessor",
        }
    }

    /// Returns a description for people.
    pub fn text(&self) -> String {
        let from = |peer: &Option<Box<str>>| match peer {
            Some(peer) => format!(" from {peer}"),
            None => String::new(),
        };
        match self {
            ChangeSource::Control { peer } => {
                format!("a call of the control interface{}", from(peer))
            }
            ChangeSource::Response { method, url } => format!("the response to {method} {url}"),
            ChangeSource::Purge { method, peer } => format!("a {method} request{}", from(peer)),
            ChangeSource::Database { database, row: Some(row), .. } => {
                // The row ends with the table, with which the columns begin.
                let columns = row.columns.find(" (").map_or("", |at| &row.columns[at..]);
                format!("the database {database}: {}{columns}", row.row)
            }
            ChangeSource::Database { database, tables, row: None } => match &tables[..] {
                [] => format!("the database {database}"),
                [table] => format!("the database {database}: table {table}"),
                tables => format!("the database {database}: tables {}", tables.join(", ")),
            },
            ChangeSource::Gap { database } if &**database == CLUSTER => {
                "a time in which the stream was not followed".into()
            }
            ChangeSource::Gap { database } => {
                format!("a time in which the database {database} was not followed")
            }
            ChangeSource::Cluster { from, .. } if from.is_empty() => {
                "an entry of the stream".into()
            }
            ChangeSource::Cluster { from, host_name: Some(host) } => {
                format!("the node {host} ({from})")
            }
            ChangeSource::Cluster { from, host_name: None } => format!("the node {from}"),
            ChangeSource::Memcached => "the memcached port".into(),
            ChangeSource::Client => "the client whose private copy it was".into(),
            ChangeSource::Superseded { status, reason } => {
                format!("a later answer of the origin ({status}, {reason})")
            }
            ChangeSource::Reload => "a reload of the configuration".into(),
            ChangeSource::Clock => "the machine's clock, which was set back".into(),
            ChangeSource::Predecessor => "a request in flight of the replaced process".into(),
        }
    }

    /// Returns a description for programs.
    pub fn json(&self) -> Value {
        let mut value = json!({ "kind": self.kind(), "text": self.text() });
        match self {
            ChangeSource::Control { peer } => value["peer"] = json!(peer),
            ChangeSource::Response { method, url } => {
                value["method"] = json!(method);
                value["url"] = json!(url);
            }
            ChangeSource::Purge { method, peer } => {
                value["method"] = json!(method);
                value["peer"] = json!(peer);
            }
            ChangeSource::Database { database, tables, row } => {
                value["database"] = json!(database);
                value["tables"] = json!(tables);
                if let Some(row) = row {
                    value["row"] = json!(row.row);
                    value["columns"] = json!(row.columns);
                }
            }
            ChangeSource::Gap { database } => value["database"] = json!(database),
            ChangeSource::Cluster { from, host_name } => {
                value["from"] = json!(from);
                value["host_name"] = json!(host_name);
            }
            ChangeSource::Superseded { status, reason } => {
                value["status"] = json!(status);
                value["reason"] = json!(reason.as_str());
            }
            ChangeSource::Memcached
            | ChangeSource::Client
            | ChangeSource::Reload
            | ChangeSource::Clock
            | ChangeSource::Predecessor => {}
        }
        value
    }
}
