//! Parses the replies to `XINFO STREAM` and `INFO`, as far as a reader of the stream needs them: the end of the
//! stream, how many entries were removed, and which server process answered. Unknown fields are ignored. Not
//! here: when to send these commands.

use crate::place::{Id, Place};
use crate::reply::Reply;

/// The end of a stream, from the reply to `XINFO STREAM`. `None` if the reply has another structure, or comes
/// from a server before version 7, which does not count the entries ever added. A stream that does not exist
/// has the position zero.
#[must_use]
pub fn extent(reply: &Reply) -> Option<Place> {
    let list = match reply {
        Reply::List(list) => list,
        Reply::Error(text) if text.contains("no such key") => {
            return Some(Place::default());
        }
        _ => return None,
    };
    let value = |name: &str| {
        let mut pairs = list.chunks_exact(2);
        let found =
            pairs.find(|pair| matches!(&pair[0], Reply::Bytes(key) if key == name.as_bytes()));
        found.map(|pair| &pair[1])
    };
    let count = |name| match value(name) {
        Some(Reply::Integer(count)) => u64::try_from(*count).ok(),
        _ => None,
    };
    let id = |name| -> Option<Id> {
        match value(name) {
            Some(Reply::Bytes(id)) => str::from_utf8(id).ok()?.parse().ok(),
            _ => None,
        }
    };
    let (length, added) = (count("length")?, count("entries-added")?);
    let (last, deleted) = (id("last-generated-id")?, id("max-deleted-entry-id")?);
    Some(Place { id: last, added, gone: added.checked_sub(length)?, deleted })
}

/// Properties of a server, from the reply to `INFO`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The `run_id`: another one after each start of the server.
    pub run: String,
    /// The `role`: `master`, or a role that does not accept writes.
    pub role: String,
    /// The `maxmemory_policy`: which keys are evicted when memory is short.
    pub policy: String,
    /// The `maxmemory` in bytes; 0 means no limit.
    pub memory_max: u64,
}

impl Server {
    /// Parses the text of a reply to `INFO`. Missing fields are empty or 0.
    #[must_use]
    pub fn read(text: &str) -> Server {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| *key == name).map_or("", |(_, value)| value.trim())
        };
        Server {
            run: value("run_id").to_owned(),
            role: value("role").to_owned(),
            policy: value("maxmemory_policy").to_owned(),
            memory_max: value("maxmemory").parse().unwrap_or(0),
        }
    }

    /// Whether the server may evict keys that have no expiry time, and with them the stream.
    #[must_use]
    pub fn evicts_anything(&self) -> bool {
        self.memory_max > 0 && self.policy.starts_with("allkeys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_stream() {
        let word = |text: &str| Reply::Bytes(text.into());
        let said = |added| {
            Reply::List(vec![
                word("length"),
                Reply::Integer(3),
                word("last-generated-id"),
                word("7-1"),
                word("max-deleted-entry-id"),
                word("5-0"),
                word("entries-added"),
                Reply::Integer(added),
            ])
        };
        let deleted = Id { ms: 5, number: 0 };
        let place = Place { id: Id { ms: 7, number: 1 }, added: 10, gone: 7, deleted };
        assert_eq!(extent(&said(10)), Some(place));
        assert_eq!(extent(&said(2)), None);
        assert_eq!(extent(&Reply::List(vec![word("length"), Reply::Integer(1)])), None);
        let missing = extent(&Reply::Error("ERR no such key".into()));
        assert_eq!(missing, Some(Place::default()));
        assert_eq!(extent(&Reply::Error("NOPERM".into())), None);
    }

    #[test]
    fn of_a_server() {
        let text = "# Server\r\nrun_id:ab12\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\nrole:master\r\n";
        let server = Server::read(text);
        assert_eq!((server.run.as_str(), server.role.as_str()), ("ab12", "master"));
        assert!(server.evicts_anything());
        assert!(!Server::read("maxmemory:0\r\nmaxmemory_policy:allkeys-lru").evicts_anything());
        assert!(!Server::read("").evicts_anything());
    }
}
