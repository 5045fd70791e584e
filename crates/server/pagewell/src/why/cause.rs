//! Who made a change: the answer to "what dropped this page?". A cause goes
//! with a change from where it is made to the memory of changes, and decides
//! nothing.

use super::shown::{cut, masked};
use crate::config::STREAM;
use serde_json::{Value, json};

/// How many tables of one transaction are named.
pub const TABLES_MAX: usize = 8;

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A call of the control interface.
    Control {
        /// From where; none over a Unix socket.
        peer: Option<Box<str>>,
    },
    /// A response of the site to this request: a write, or one that says what has changed.
    Response {
        /// The request's method.
        method: Box<str>,
        /// Its address, without values in its query.
        url: Box<str>,
    },
    /// A request to purge, where visitors are served.
    Purge {
        /// Its method.
        method: Box<str>,
        /// From where.
        peer: Option<Box<str>>,
    },
    /// A transaction of a database.
    Database {
        /// The database's name.
        database: Box<str>,
        /// The tables whose rows it changed, [`TABLES_MAX`] at most.
        tables: Vec<Box<str>>,
    },
    /// A database is not followed: nobody knows what changes.
    Gap {
        /// The database's name.
        database: Box<str>,
    },
    /// Another machine, or somebody by hand, by way of the stream.
    Stream {
        /// Who tells it, as it says itself; empty where it does not.
        from: Box<str>,
    },
    /// The memcached port.
    Memcached,
    /// A visitor whose own copies these are: he has written, signed in or out.
    Visitor,
    /// The origin has given a later answer for the page.
    Superseded {
        /// The answer's status.
        status: u16,
        /// Why the answer is not stored in the page's place.
        reason: &'static str,
    },
    /// The configuration was read again, and pages mean something else.
    Reload,
    /// The machine's clock was set back, and what was kept for a time would be kept for longer.
    Clock,
    /// The process whose place this one has taken, and which still has requests in hand.
    Predecessor,
}

impl Cause {
    /// By a response to this request.
    pub fn response(method: &http::Method, url: &str) -> Cause {
        Cause::Response { method: cut(method.as_str()), url: masked(url) }
    }

    /// By a transaction that changed these tables.
    pub fn database<'t>(database: &str, tables: impl Iterator<Item = &'t str>) -> Cause {
        let tables = tables.take(TABLES_MAX).map(cut).collect();
        Cause::Database { database: cut(database), tables }
    }

    /// Whether the other machines are to be told: what was said to this one alone. What a database says they
    /// hear themselves, and the rest is about this process.
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

    /// Whether the process that has taken over is to be told: what all machines hear it hears itself, from the
    /// place up to which this one has applied it. It does not begin before this one has ended to follow, so
    /// that who follows must not wait for it.
    pub fn is_for_successor(&self) -> bool {
        !matches!(self, Cause::Stream { .. })
    }

    /// Its kind, in a word.
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

    /// For people.
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

    /// For programs.
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
