//! Which nodes cannot publish their changes. A node to which the server refuses an entry says so in a
//! hash beside the stream, which may still accept a write (a foreign entry with the highest ID, an
//! account without `XADD`). The others then have no proof that they know all changes (`gate`), and
//! stop using their pages `lag_max` after their last proof.
//!
//! | the node that cannot publish | the hash | the other nodes |
//! |---|---|---|
//! | `XADD` is refused | its field, with a number that grows with each attempt | no proof |
//! | everything is published | no field | proofs again |
//! | it is killed | the field stays the same | no proof for longer than `lag_max`: every page is purged; then any node removes the field |
//! | the server refuses every write | nothing | no node can report itself, so none has a proof |
//! | it cannot reach the server | nothing | with `unpublished = "refuse"`: purge when it has become silent |
//!
//! Interleaving: the field is removed after the last entry was added, and a proof reads the hash before
//! the end of the stream. So a proof that finds no field includes the entries. A field that is removed
//! because it is not renewed has closed the gate of each node that was running; a node that starts
//! afterwards, and finds no field, cannot know more than without the hash.

use super::entry_format::own;
use super::peer_positions::PeerPositions;
use config::{Database, DatabaseKind, UnpublishedWrites};
use database_links::proof_times::proof_max;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use valkey::{command, remove_field_if, set_field};

/// How long an announcement that is not renewed still counts, in addition to `lag_max`. The gate
/// closes within this time.
const KILLED_WITHIN: Duration = Duration::from_secs(10);
/// The most announcements that are tracked. If there are more, there is no proof.
const SEEN_MAX: usize = 1_000;
/// The most announcements that are removed at once.
const REMOVED_AT_ONCE: usize = 64;

/// Returns the key of the hash beside a stream.
pub fn hash(key: &str) -> String {
    format!("{key}/unpublished")
}

/// Returns the command by which this node announces that it cannot publish. `attempt` grows.
pub fn announce(key: &str, attempt: u64) -> Vec<u8> {
    set_field(&hash(key), own(), &attempt.to_string())
}

/// Returns the command that withdraws the announcement.
pub fn withdraw(key: &str) -> Vec<u8> {
    command(&[b"HDEL", hash(key).as_bytes(), own().as_bytes()])
}

/// The fields of a hash.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// The reports of the nodes about themselves.
#[derive(Debug, Default)]
pub struct NodeReports {
    /// The nodes that cannot publish.
    pub unpublished: Fields,
    /// The position of each node (`peer_positions`).
    pub positions: Fields,
}

/// Whether other nodes have changes that they have not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpublishedChanges {
    /// As far as they report, no.
    Nothing,
    /// A node cannot publish its changes.
    Pending,
    /// A node has become silent, and may have such changes.
    Lost,
}

/// The reports of the other nodes of a cluster, as last read.
pub struct PeerReports {
    key: String,
    writes: UnpublishedWrites,
    counts_for: Duration,
    /// The announcements, each with the time of its last change.
    seen: HashMap<Vec<u8>, (Vec<u8>, Instant)>,
    positions: PeerPositions,
}

impl PeerReports {
    /// Creates the state for a cluster's stream; `None` if this is a database, or pages are served
    /// without a limit.
    pub fn new(config: &Database) -> Option<PeerReports> {
        let DatabaseKind::Valkey(stream) = &config.server.kind else { return None };
        Some(PeerReports {
            key: stream.key.clone(),
            writes: stream.unpublished,
            counts_for: proof_max(config)? + KILLED_WITHIN,
            seen: HashMap::new(),
            positions: PeerPositions::default(),
        })
    }

    /// Returns commands that remove announcements which do not count any more: their processes have ended.
    /// Otherwise each node that starts would count them again.
    #[must_use]
    pub fn removals(&self, now: Instant) -> Vec<Vec<u8>> {
        let is_over = |since: Instant| now.duration_since(since) > self.counts_for;
        let over = self.seen.iter().filter(|(_, (_, since))| is_over(*since));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let remove = |(name, (value, _)): (&Vec<u8>, &(Vec<u8>, Instant))| {
            remove_field_if(&hash(&self.key), &text(name), &text(value))
        };
        over.take(REMOVED_AT_ONCE).map(remove).collect()
    }

    /// Returns what follows from the reports that were read at `now`.
    pub fn judge(&mut self, reports: NodeReports, now: Instant) -> UnpublishedChanges {
        let is_crowded = reports.unpublished.len() > SEEN_MAX;
        let mut seen = HashMap::new();
        for (name, value) in reports.unpublished.into_iter().take(SEEN_MAX) {
            if *name == *own().as_bytes() {
                continue;
            }
            let before = self.seen.remove(&name).filter(|(before, _)| *before == value);
            seen.insert(name, before.unwrap_or((value, now)));
        }
        self.seen = seen;
        let counts = |since: &Instant| now.duration_since(*since) <= self.counts_for;
        let is_pending = is_crowded || self.seen.values().any(|(_, since)| counts(since));
        self.positions.see(&self.key, reports.positions, None, now);
        let is_lost = self.positions.take_lost(now) && self.writes == UnpublishedWrites::Refuse;
        if is_lost {
            UnpublishedChanges::Lost
        } else if is_pending {
            UnpublishedChanges::Pending
        } else {
            UnpublishedChanges::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Config, resolve};

    fn peers(more: &str) -> PeerReports {
        let text = format!(
            "site.origin = \"http://127.0.0.1:1\"\ncluster.url = \"redis://localhost\"\n{more}"
        );
        let file = toml::from_str(&text).expect("a configuration");
        let config: Config = resolve(&file).expect("it can be used");
        PeerReports::new(&config.cluster.expect("a stream")).expect("there is a limit")
    }

    fn fields(all: &[(&str, &str)]) -> Fields {
        all.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
    }

    #[test]
    fn an_announcement_counts_until_every_gate_has_closed() {
        let (mut peers, begun) = (peers(""), Instant::now());
        let mut judge = |all: &[(&str, &str)], seconds| {
            let read = NodeReports { unpublished: fields(all), positions: Fields::new() };
            peers.judge(read, begun + Duration::from_secs(seconds))
        };
        assert_eq!(judge(&[], 0), UnpublishedChanges::Nothing);
        assert_eq!(judge(&[(own(), "1")], 1), UnpublishedChanges::Nothing, "this node itself");
        assert_eq!(judge(&[("a", "1")], 2), UnpublishedChanges::Pending);
        assert_eq!(judge(&[("a", "9")], 30), UnpublishedChanges::Pending, "it is renewed");
        assert_eq!(judge(&[("a", "9")], 50), UnpublishedChanges::Pending);
        assert_eq!(judge(&[("a", "9")], 51), UnpublishedChanges::Nothing, "the node was killed");
        assert_eq!(judge(&[("a", "10")], 52), UnpublishedChanges::Pending);
        assert_eq!(judge(&[], 53), UnpublishedChanges::Nothing);
    }

    #[test]
    fn an_announcement_that_does_not_count_is_removed_for_nodes_that_start() {
        let (mut peers, begun) = (peers(""), Instant::now());
        let mut removals = |all: &[(&str, &str)], seconds| {
            let (now, read) = (
                begun + Duration::from_secs(seconds),
                NodeReports { unpublished: fields(all), positions: Fields::new() },
            );
            peers.judge(read, now);
            peers.removals(now)
        };
        assert!(removals(&[("a", "1"), (own(), "1")], 0).is_empty());
        assert!(removals(&[("a", "1"), ("b", "1"), (own(), "1")], 20).is_empty(), "it counts");
        let removed = removals(&[("a", "1"), ("b", "1"), (own(), "1")], 21);
        assert_eq!(removed, [remove_field_if("pagewell/unpublished", "a", "1")]);
        assert!(removals(&[("a", "2"), ("b", "2")], 42).is_empty(), "they are renewed");
        assert!(removals(&[], 99).is_empty());
    }

    #[test]
    fn a_silent_node_is_lost_once_where_writes_are_refused() {
        for (more, lost) in [
            ("", UnpublishedChanges::Nothing),
            ("cluster.unpublished = \"refuse\"", UnpublishedChanges::Lost),
        ] {
            let (mut peers, begun) = (peers(more), Instant::now());
            let mut judge = |all: &[(&str, &str)], seconds| {
                let read = NodeReports { unpublished: Fields::new(), positions: fields(all) };
                peers.judge(read, begun + Duration::from_secs(seconds))
            };
            assert_eq!(
                judge(&[("a", "1-0 1 20000 r"), ("b", "gone 20000")], 0),
                UnpublishedChanges::Nothing
            );
            assert_eq!(judge(&[("a", "1-0 2 20000 r")], 20), UnpublishedChanges::Nothing);
            // Another node has removed the field already.
            assert_eq!(judge(&[], 40), UnpublishedChanges::Nothing);
            assert_eq!(judge(&[], 41), lost);
            assert_eq!(judge(&[], 42), UnpublishedChanges::Nothing);
        }
    }
}
