//! The source of a change: it answers "what purged this page?".
//!
//! A cause accompanies its change from its origin to the history of changes. It decides only which
//! other processes receive the change.

use super::shown::{cut, masked};
use config::STREAM;
use serde_json::{Value, json};

/// The most tables of one transaction that are named.
pub const TABLES_MAX: usize = 8;

/// The source of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
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
    },
    /// A database was not followed, so changes may have been missed.
    Gap {
        /// The name of the database.
        database: Box<str>,
    },
    /// Another node of the cluster, or an entry that was added to the stream by hand.
    Stream {
        /// The publisher's name for itself; empty if the entry has none.
        from: Box<str>,
    },
    /// A command on the memcached port.
    Memcached,
    /// The owner of the private copies: a write, a login or a logout.
    Visitor,
    /// A later response of the origin for the page.
    Superseded {
        /// The status code of the response.
        status: u16,
        /// Why the response does not replace the page in the cache.
        reason: &'static str,
    },
    /// A reload of the configuration that changes the meaning of stored pages.
    Reload,
    /// The machine's clock was set back, so items with an expiry time would live longer.
    Clock,
    /// The previous process of a zero-downtime restart, which still has requests in flight.
    Predecessor,
}

impl Cause {
    /// Creates the cause for a response to this request.
    pub fn response(method: &http::Method, url: &str) -> Cause {
        Cause::Response { method: cut(method.as_str()), url: masked(url) }
    }

    /// Creates the cause for a transaction that changed these tables.
    pub fn database<'t>(database: &str, tables: impl Iterator<Item = &'t str>) -> Cause {
        let tables = tables.take(TABLES_MAX).map(cut).collect();
        Cause::Database { database: cut(database), tables }
    }

    /// Returns whether the change is published to the other nodes. That holds for changes which
    /// only this node received. The other nodes follow the databases themselves, and the remaining
    /// causes concern this process alone.
    pub fn is_for_others(&self) -> bool {
        match self {
            Cause::Control { .. }
            | Cause::Response { .. }
            | Cause::Purge { .. }
            | Cause::Memcached
            | Cause::Visitor => true,
            Cause::Database { .. }
            | Cause::Gap { .. }
            | Cause::Stream { .. }
            | Cause::Superseded { .. }
            | Cause::Reload
            | Cause::Clock
            | Cause::Predecessor => false,
        }
    }

    /// Returns whether the change is forwarded to the successor process. Changes from the cluster's
    /// stream are not: the successor reads them itself, from the position that this process has
    /// reached. It begins only after this process has stopped following the stream, so the follower
    /// must not wait for it.
    pub fn is_for_successor(&self) -> bool {
        !matches!(self, Cause::Stream { .. })
    }

    /// Returns the kind of the cause as one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::Control { .. } => "control",
            Cause::Response { .. } => "response",
            Cause::Purge { .. } => "purge",
            Cause::Database { .. } => "database",
            Cause::Gap { .. } => "gap",
            Cause::Stream { .. } => "stream",
            Cause::Memcached => "memcached",
            Cause::Visitor => "visitor",
            Cause::Superseded { .. } => "superseded",
            Cause::Reload => "reload",
            Cause::Clock => "clock",
            Cause::Predecessor => "predecessor",
        }
    }

    /// Returns a description for people.
    pub fn text(&self) -> String {
        let from = |peer: &Option<Box<str>>| match peer {
            Some(peer) => format!(" from {peer}"),
            None => String::new(),
        };
        match self {
            Cause::Control { peer } => format!("a call of the control interface{}", from(peer)),
            Cause::Response { method, url } => format!("the response to {method} {url}"),
            Cause::Purge { method, peer } => format!("a {method} request{}", from(peer)),
            Cause::Database { database, tables } => match &tables[..] {
                [] => format!("the database {database}"),
                [table] => format!("the database {database}: table {table}"),
                tables => format!("the database {database}: tables {}", tables.join(", ")),
            },
            Cause::Gap { database } if &**database == STREAM => {
                "a time in which the stream was not followed".into()
            }
            Cause::Gap { database } => {
                format!("a time in which the database {database} was not followed")
            }
            Cause::Stream { from } if from.is_empty() => "an entry of the stream".into(),
            Cause::Stream { from } => format!("another Pagewell, {from}"),
            Cause::Memcached => "the memcached port".into(),
            Cause::Visitor => "the visitor whose copy it was".into(),
            Cause::Superseded { status, reason } => {
                format!("a later answer of the origin ({status}, {reason})")
            }
            Cause::Reload => "a reload of the configuration".into(),
            Cause::Clock => "the machine's clock, which was set back".into(),
            Cause::Predecessor => "a request in hand of the process whose place was taken".into(),
        }
    }

    /// Returns a description for programs.
    pub fn json(&self) -> Value {
        let mut value = json!({ "kind": self.kind(), "text": self.text() });
        match self {
            Cause::Control { peer } => value["peer"] = json!(peer),
            Cause::Response { method, url } => {
                value["method"] = json!(method);
                value["url"] = json!(url);
            }
            Cause::Purge { method, peer } => {
                value["method"] = json!(method);
                value["peer"] = json!(peer);
            }
            Cause::Database { database, tables } => {
                value["database"] = json!(database);
                value["tables"] = json!(tables);
            }
            Cause::Gap { database } => value["database"] = json!(database),
            Cause::Stream { from } => value["from"] = json!(from),
            Cause::Superseded { status, reason } => {
                value["status"] = json!(status);
                value["reason"] = json!(reason);
            }
            Cause::Memcached
            | Cause::Visitor
            | Cause::Reload
            | Cause::Clock
            | Cause::Predecessor => {}
        }
        value
    }
}
