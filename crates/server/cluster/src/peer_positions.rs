//! The positions up to which each node has applied the stream. Each node writes its own to a field
//! of a hash beside the stream, so that a publisher knows when a change is applied everywhere.
//!
//! A field is the node's process, its value five words. A publisher waits for a node as long as that
//! node may still answer. Clocks of different machines are never compared. [`PeerPositions`] lists
//! the interleavings. Not here: the waiting writes, and their limit (`peers`).
//!
//! | word | while the node runs | after it has stopped |
//! |---|---|---|
//! | the applied position | 1 | `gone` |
//! | a number that grows at least once a second | 2 | |
//! | how many milliseconds without contact the node may answer from its cache (`lag_max` plus the time to notice) | 3 | 2 |
//! | the server's `run_id` | 4 | |
//! | the host name; absent in older versions | 5 | 3 |

use super::entry_format::own;
use super::nodes::{ClusterNode, HostName, NodeState};
use config::{Database, OnLag};
use database_links::proof_times::ask_every;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use valkey::{Id, all_fields, remove_field_if, set_field};

/// The longest time a node takes to notice that the stream is unreachable and to stop using its
/// pages.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// After this time without an update a node is not listed any more, or after the time it may answer,
/// if longer.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// The most nodes that are removed at once.
const FORGOTTEN_AT_ONCE: usize = 64;
/// The most nodes that are tracked. If there are more, writes are reported as late.
const SEEN_MAX: usize = 1_000;
/// The first word of the field of a node that has stopped in an orderly way.
const GONE: &str = "gone";
/// The entry of a node whose field cannot be parsed. Publishers wait for it all the same.
const UNREADABLE: Saying =
    Saying { read: PeerPosition::Nobody, silent_max: Duration::from_secs(60), host_name: None };

/// Returns the key of the hash beside a stream. A stream's key never looks like this, because the
/// host in it has no slash.
pub fn hash(key: &str) -> String {
    format!("{key}/read")
}

/// Counts the updates that this process has written.
static BEATS: AtomicU64 = AtomicU64::new(1);

/// The field that this node writes about itself.
pub struct OwnField {
    hash: String,
    silent_ms: u128,
    /// How often the field is updated.
    beat: Duration,
    run: Arc<str>,
    said: Option<(Id, Instant)>,
}

impl OwnField {
    /// Creates the state for a stream of a server with this `run_id`.
    pub fn new(key: &str, config: &Database, run: &Arc<str>) -> OwnField {
        let (silent_ms, beat) = (silent_ms(config), ask_every(config));
        OwnField { hash: hash(key), silent_ms, beat, run: run.clone(), said: None }
    }

    /// Returns the command that writes the applied position, if it has changed or an update is due.
    pub fn say(&mut self, applied: Id) -> Option<Vec<u8>> {
        let is_known =
            self.said.is_some_and(|(said, at)| said == applied && at.elapsed() < self.beat);
        if is_known {
            return None;
        }
        self.said = Some((applied, Instant::now()));
        // Never the same value twice, whichever connection writes it.
        let beat = BEATS.fetch_add(1, Ordering::Relaxed);
        let value = format!("{applied} {beat} {} {}{}", self.silent_ms, self.run, host_word());
        Some(set_field(&self.hash, own(), &value))
    }
}

/// Returns the last word of this node's field, with the blank before it; empty without a host name.
fn host_word() -> String {
    HostName::own().map_or(String::new(), |name| format!(" {}", name.as_str()))
}

/// Returns how long after losing contact this node stops answering from the cache, in milliseconds.
fn silent_ms(config: &Database) -> u128 {
    let lag_max = match config.on_lag {
        OnLag::BypassAfter(lag_max) => lag_max,
        // With `on_lag = serve`, pages as old as the outage are the site's choice.
        OnLag::Serve => Duration::ZERO,
    };
    lag_max.saturating_add(NOTICED_WITHIN).as_millis().min(u64::MAX.into())
}

/// Returns the command by which this node announces that it no longer answers from the cache.
pub fn gone(key: &str, config: &Database) -> Vec<u8> {
    set_field(&hash(key), own(), &format!("{GONE} {}{}", silent_ms(config), host_word()))
}

/// Returns commands that test the account's permissions and leave nothing behind. They have three
/// replies.
pub fn try_all(key: &str) -> Vec<u8> {
    let (hash, nothing) = (hash(key), format!("{GONE} 0"));
    let tried = set_field(&hash, own(), &nothing);
    [tried, all_fields(&hash), remove_field_if(&hash, own(), &nothing)].concat()
}

/// The position up to which a node has applied the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PeerPosition {
    /// Up to this ID, in this run of the server.
    UpTo(Id, Box<str>),
    /// Unknown: the field cannot be parsed.
    Nobody,
    /// Irrelevant: the node has stopped in an orderly way.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Saying {
    read: PeerPosition,
    silent_max: Duration,
    host_name: Option<HostName>,
}

/// Parses a field. Additional words, which a later version may write, are ignored.
fn saying(text: &str) -> Option<Saying> {
    let mut words = text.split(' ');
    let first = words.next()?;
    let is_gone = first == GONE;
    let up_to = if is_gone { Id::default() } else { first.parse().ok()? };
    if !is_gone {
        let _beat: u64 = words.next()?.parse().ok()?;
    }
    let silent_max = Duration::from_millis(words.next()?.parse().ok()?);
    let read =
        if is_gone { PeerPosition::Gone } else { PeerPosition::UpTo(up_to, words.next()?.into()) };
    Some(Saying { read, silent_max, host_name: words.next().and_then(HostName::checked) })
}

/// The other nodes, as last seen. Checked interleavings:
/// - Publish → a node begins to follow. It writes its position *before* it reads, in this order.
///   Either the publisher sees it, or it reads the entry before it answers from the cache.
/// - Publish → a node applies the entry → it writes its position → it is cut off. The written
///   position is applied.
/// - A node is cut off → publish. Its position does not move, so the publisher waits until the node
///   has been silent for its own limit. By then it has closed its gate.
/// - A node returns after such a silence. It writes its position before it reads on, and stores
///   nothing before it has read on.
/// - The server restarts and loses the hash → publish → another node notices. A node that has
///   disappeared without an announcement counts as silent.
/// - The server restarts with a clock that is behind → publish, with an ID below one that a node
///   has read. Positions from another run of the server are ignored.
/// - The stream is deleted and its IDs restart lower (clock set back, or an ID set by hand) →
///   publish → the node notices. A position beyond the end of the stream *before* the entry was
///   added is ignored until the node writes another.
/// - Another server becomes the primary (a failover) → one node moves to it → another publishes to the
///   former one, and stops waiting for the node that has left → it moves too. It publishes a change of
///   every page to the new server, after that node has begun to follow it (`peers`). If only its
///   follower has moved, its own field in the former server stays the same, so it connects again.
/// - A node stops → one publisher has seen its announcement, another has not. The field stays as
///   long as any publisher could wait for the node.
/// - A node crashes → a publisher has seen its field unchanged for longer than the node may answer, and
///   removes the field → another has seen the last change later, and waits on. A process that starts
///   now does not wait, which is right: the node does not answer any more.
#[derive(Default)]
pub struct PeerPositions {
    seen: HashMap<String, PeerState>,
    /// Whether there are more nodes than can be tracked.
    is_crowded: bool,
    /// The field of this node, and when it last changed, or when the connection began.
    own: Option<(String, Instant)>,
}

/// A node: its field, and when that last changed.
struct PeerState {
    text: String,
    saying: Saying,
    since: Instant,
    /// A position that the node reports, but that is not of this stream.
    void: Option<Id>,
    /// Whether [`PeerPositions::take_lost`] has returned it.
    is_lost: bool,
}

impl PeerState {
    fn new(text: String, now: Instant) -> PeerState {
        let saying = saying(&text).unwrap_or(UNREADABLE);
        PeerState { text, saying, since: now, void: None, is_lost: false }
    }

    /// Compares the node's position with the end of the stream, which was read a moment later.
    fn compare(&mut self, last: Id) {
        if let PeerPosition::UpTo(id, _) = self.saying.read
            && id > last
        {
            self.void = Some(id);
        }
    }

    /// Returns whether the node may answer from its cache.
    fn may_answer(&self, now: Instant) -> bool {
        self.saying.read != PeerPosition::Gone && !self.is_silent_for(self.saying.silent_max, now)
    }

    /// Returns whether no publisher has to wait for the node any more, so that its field can be
    /// removed. Otherwise each later process would wait for it again.
    fn is_over(&self, now: Instant) -> bool {
        self.is_silent_for(self.saying.silent_max, now)
    }

    /// Returns whether the node is not listed any more.
    fn is_forgotten(&self, now: Instant) -> bool {
        let silent_max = self.saying.silent_max;
        let least =
            if self.saying.read == PeerPosition::Gone { silent_max } else { FORGOTTEN_AFTER };
        self.is_silent_for(silent_max.max(least), now)
    }

    fn is_silent_for(&self, bound: Duration, now: Instant) -> bool {
        now.duration_since(self.since) > bound
    }

    /// Returns the position up to which the node has applied this run of the server.
    fn read(&self, run: &str) -> Id {
        match &self.saying.read {
            PeerPosition::UpTo(id, of) if **of == *run && self.void != Some(*id) => *id,
            PeerPosition::UpTo(..) | PeerPosition::Nobody | PeerPosition::Gone => Id::default(),
        }
    }
}

impl PeerPositions {
    /// Processes the fields of the hash. `last` is the end of the stream a moment later, where it
    /// was read. Returns commands that remove nodes which have been silent for long.
    pub fn see(
        &mut self,
        key: &str,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
        last: Option<Id>,
        now: Instant,
    ) -> Vec<Vec<u8>> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (mut seen, mut forgotten) = (HashMap::new(), Vec::new());
        self.is_crowded = fields.len() > SEEN_MAX;
        let fields = fields.into_iter().take(SEEN_MAX);
        let fields = fields.map(|(name, value)| (text(name), text(value)));
        self.own.get_or_insert((String::new(), now));
        for (name, value) in fields {
            if name == own() {
                self.own = self.own.take().filter(|(before, _)| *before == value);
                self.own.get_or_insert((value, now));
                continue;
            }
            let mut one = match self.seen.remove(&name) {
                Some(before) if before.text == value => before,
                before => {
                    let void = before.and_then(|before| before.void);
                    PeerState { void, ..PeerState::new(value, now) }
                }
            };
            last.into_iter().for_each(|last| one.compare(last));
            if one.is_over(now) && forgotten.len() < FORGOTTEN_AT_ONCE {
                forgotten.push(remove_field_if(&hash(key), &name, &one.text));
            }
            seen.insert(name, one);
        }
        // Nodes whose field has disappeared without an announcement.
        let lost = self.seen.drain().filter(|(_, one)| !one.is_forgotten(now));
        seen.extend(lost.filter(|(_, one)| one.saying.read != PeerPosition::Gone));
        if seen.len() > SEEN_MAX {
            seen = seen.into_iter().take(SEEN_MAX).collect();
            self.is_crowded = true;
        }
        self.seen = seen;
        forgotten
    }

    /// Returns whether a node has become silent without an announcement since the last call. It may
    /// have taken writes that it could not publish.
    pub fn take_lost(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        for one in self.seen.values_mut() {
            let is_lost = one.saying.read != PeerPosition::Gone && !one.may_answer(now);
            is_any |= is_lost && !std::mem::replace(&mut one.is_lost, is_lost);
        }
        is_any
    }

    /// Forgets the field of this node, which another server may have.
    pub fn begin_connection(&mut self) {
        self.own = None;
    }

    /// Returns whether this node's own field does not change any more: it follows another server,
    /// which the address leads to since a failover.
    pub fn is_followed_elsewhere(&self, now: Instant) -> bool {
        self.own.as_ref().is_some_and(|(_, since)| now.duration_since(*since) > NOTICED_WITHIN)
    }

    /// Returns the nodes for operators. `lag` returns the age of the oldest published change that a
    /// node with this position has not applied.
    pub fn nodes(&self, run: &str, now: Instant, lag: impl Fn(Id) -> Duration) -> Vec<ClusterNode> {
        let node = |(name, one): (&String, &PeerState)| {
            let state = match one.saying.read {
                PeerPosition::Gone => NodeState::Stopped,
                _ if one.may_answer(now) => NodeState::Connected,
                _ => NodeState::Silent,
            };
            let lag = (state == NodeState::Connected).then(|| lag(one.read(run)));
            let host_name = one.saying.host_name.clone();
            ClusterNode {
                name: name.clone(),
                host_name,
                state,
                lag,
                reported: one.since,
                read: now,
            }
        };
        self.seen.iter().map(node).collect()
    }

    /// Returns the position that all nodes which may answer from their cache have applied in this
    /// run of the server; `None`: there is no such node.
    pub fn least(&self, run: &str, now: Instant) -> Option<Id> {
        // With too many nodes, some are not tracked.
        let crowd = self.is_crowded.then(Id::default);
        let answering = self.seen.values().filter(|one| one.may_answer(now));
        answering.map(|one| one.read(run)).chain(crowd).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    }

    #[test]
    fn a_node_whose_own_field_stays_the_same_follows_another_server() {
        let (mut readers, now) = (PeerPositions::default(), Instant::now());
        let mut look = |value: Option<&str>, seconds| {
            let at = now + Duration::from_secs(seconds);
            readers.see(
                "k",
                value.map(|value| field(own(), value)).into_iter().collect(),
                None,
                at,
            );
            let is_elsewhere = readers.is_followed_elsewhere(at);
            if is_elsewhere {
                readers.begin_connection();
            }
            is_elsewhere
        };
        assert!(!look(Some("1-0 1 20000 r"), 0) && !look(Some("1-0 2 20000 r"), 8));
        assert!(!look(Some("1-0 2 20000 r"), 18) && look(Some("1-0 2 20000 r"), 19));
        // A new connection begins from the start, also where the field is absent.
        assert!(!look(None, 19) && !look(None, 29) && look(None, 30));
    }

    #[test]
    fn each_node_that_may_answer_is_waited_for() {
        let (mut readers, now) = (PeerPositions::default(), Instant::now());
        let id = |ms| Some(Id { ms, number: 0 });
        let mut look = |fields: &[(&str, &str)], seconds| {
            let fields = fields.iter().map(|(name, value)| field(name, value)).collect();
            let at = now + Duration::from_secs(seconds);
            let forgotten = readers.see("k", fields, None, at);
            (readers.least("r", at), forgotten.len())
        };
        assert_eq!(look(&[], 0), (None, 0));
        assert_eq!(look(&[(own(), "1-0 1 20000 r")], 0), (None, 0));
        assert_eq!(look(&[("a", "5-0 1 20000 r"), ("b", "7-0 1 20000 r")], 0), (id(5), 0));
        // One node moves, the other is silent: first for as long as it may answer, then for longer. Then its
        // field is removed, so that no later process waits for it.
        assert_eq!(look(&[("a", "5-0 1 20000 r"), ("b", "9-0 2 20000 r")], 20), (id(5), 0));
        assert_eq!(look(&[("a", "5-0 1 20000 r"), ("b", "9-0 3 20000 r x")], 21), (id(9), 1));
        // The silent node is back.
        assert_eq!(look(&[("a", "5-0 2 20000 r"), ("b", "9-0 4 20000 r")], 22), (id(5), 0));
        // An unreadable field is waited for, but not for ever.
        assert_eq!(look(&[("a", "x"), ("b", "gone 20000")], 23), (id(0), 0));
        assert_eq!(look(&[("a", "x"), ("b", "gone 20000")], 43), (id(0), 0));
        assert_eq!(look(&[("a", "x"), ("b", "gone 20000")], 44), (id(0), 1));
        assert_eq!(look(&[("a", "x")], 84), (None, 1));
        assert_eq!(look(&[("a", "x")], 3_700), (None, 1));
        // The node disappeared with the hash.
        assert_eq!(look(&[("c", "4-0 1 20000 r"), ("d", "6-0 1 20000 r")], 3_701), (id(4), 0));
        assert_eq!(look(&[("d", "8-0 2 20000 r")], 3_702), (id(4), 0));
        assert_eq!(look(&[("d", "8-0 3 20000 r")], 3_722), (id(8), 0));
        // The node stopped in an orderly way, and another publisher has removed its field.
        assert_eq!(look(&[("d", "gone 20000")], 3_723), (None, 0));
        assert_eq!(look(&[], 3_724), (None, 0));
        // A node is waited for as long as it may answer, however long that is.
        assert_eq!(look(&[("e", "4-0 1 9000000 r")], 4_000), (id(4), 0));
        assert_eq!(look(&[("e", "4-0 1 9000000 r")], 13_000), (id(4), 0));
        assert_eq!(look(&[("e", "4-0 1 9000000 r")], 13_001), (None, 1));
    }

    #[test]
    fn positions_of_another_server_do_not_count() {
        let (mut readers, now) = (PeerPositions::default(), Instant::now());
        let mut look = |value, run| {
            readers.see("k", vec![field("a", value)], None, now);
            readers.least(run, now)
        };
        assert_eq!(look("9-0 1 20000 r", "r"), Some(Id { ms: 9, number: 0 }));
        assert_eq!(look("9-0 1 20000 r", "s"), Some(Id::default()));
        assert_eq!(look("5-0 2 20000 s", "s"), Some(Id { ms: 5, number: 0 }));
    }

    #[test]
    fn a_node_with_too_many_names_does_not_delay_the_publisher() {
        let (mut readers, now) = (PeerPositions::default(), Instant::now());
        let all = || (0..200).map(|n| field(&n.to_string(), "gone 1")).collect();
        assert_eq!(readers.see("k", all(), None, now).len(), 0);
        assert_eq!(readers.least("r", now), None);
        let later = now + Duration::from_secs(1);
        assert_eq!(readers.see("k", all(), None, later).len(), FORGOTTEN_AT_ONCE);
        // Memory is bounded too. With so many nodes it is not known which have applied what.
        for round in 0..5 {
            let many = (0..2_000).map(|n| field(&format!("{round}-{n}"), "9-0 1 20000 r"));
            readers.see("k", many.collect(), None, later);
            assert!(readers.seen.len() <= SEEN_MAX);
            assert_eq!(readers.least("r", later), Some(Id::default()));
        }
    }

    #[test]
    fn positions_of_a_deleted_stream_do_not_count() {
        let (mut readers, now) = (PeerPositions::default(), Instant::now());
        let id = |ms| Id { ms, number: 0 };
        let mut see = |value: &str, last: Option<u64>| {
            readers.see("k", vec![field("a", value)], last.map(id), now);
            readers.least("r", now)
        };
        assert_eq!(see("90-0 1 20000 r", Some(90)), Some(id(90)));
        // The stream is deleted and restarts at 50. The node writes its old position until it
        // notices.
        assert_eq!(see("90-0 2 20000 r", Some(50)), Some(id(0)));
        assert_eq!(see("90-0 3 20000 r", None), Some(id(0)));
        assert_eq!(see("90-0 3 20000 r", Some(120)), Some(id(0)));
        assert_eq!(see("51-0 4 20000 r", None), Some(id(51)));
        assert_eq!(see("130-0 5 20000 r", Some(130)), Some(id(130)));
    }

    #[test]
    fn nodes_are_listed_with_their_lag() {
        let (mut readers, now) = (PeerPositions::default(), Instant::now());
        let fields =
            [("a", "5-0 1 20000 r"), ("b", "9-0 1 20000 r web-1 x"), ("c", "gone 20000 web-2")];
        let fields = || fields.iter().map(|(name, value)| field(name, value)).collect();
        readers.see("k", fields(), None, now);
        let mut list = |seconds| {
            let at = now + Duration::from_secs(seconds);
            readers.see("k", fields(), None, at);
            let lag = |read: Id| Duration::from_millis(9 - read.ms);
            let mut nodes = readers.nodes("r", at, lag);
            nodes.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            let names: Vec<_> = nodes.iter().map(|one| one.host_name.as_ref()).collect();
            assert_eq!(
                names.into_iter().map(|name| name.map(HostName::as_str)).collect::<Vec<_>>(),
                [None, Some("web-1"), Some("web-2")]
            );
            let shown = |node: ClusterNode| (node.state, node.lag.map(|lag| lag.as_millis()));
            nodes.into_iter().map(shown).collect::<Vec<_>>()
        };
        let (connected, silent) = (NodeState::Connected, NodeState::Silent);
        let stopped = NodeState::Stopped;
        assert_eq!(list(1), [(connected, Some(4)), (connected, Some(0)), (stopped, None)]);
        assert_eq!(list(21), [(silent, None), (silent, None), (stopped, None)]);
    }

    /// Returns the value in a command that sets a field.
    fn value(command: Vec<u8>) -> String {
        let said = String::from_utf8(command).expect("text");
        said.trim_end().rsplit("\r\n").next().expect("a value").to_owned()
    }

    /// A stream as it is configured; nothing connects to it.
    fn stream() -> Arc<Database> {
        let text = "site.origin = \"http://127.0.0.1:1\"\ncluster.url = \"redis://localhost\"";
        let file = toml::from_str(text).expect("a configuration");
        config::resolve(&file).expect("it can be used").cluster.expect("a stream")
    }

    #[test]
    fn a_written_position_is_read_back() {
        let config = stream();
        let mut own = OwnField::new("k", &config, &"ab12".into());
        let at = Id { ms: 3, number: 1 };
        let said = value(own.say(at).expect("it is said"));
        let silent_max = Duration::from_secs(20);
        let read = PeerPosition::UpTo(at, "ab12".into());
        let host_name = || HostName::own().cloned();
        assert_eq!(saying(&said), Some(Saying { read, silent_max, host_name: host_name() }));
        assert!(own.say(at).is_none(), "not again at once");
        assert!(own.say(Id { ms: 4, number: 0 }).is_some());
        let left = value(gone("k", &config));
        let read = PeerPosition::Gone;
        assert_eq!(saying(&left), Some(Saying { read, silent_max, host_name: host_name() }));
    }

    /// A field of an older version has no host name, and a wrong one does not make it unreadable.
    #[test]
    fn the_host_name_is_optional() {
        let host_name = |text: &str| saying(text).expect("a field").host_name;
        for none in ["9-0 1 20000 r", "gone 20000", "9-0 1 20000 r <b>", "gone 20000 \u{e9}"] {
            assert_eq!(host_name(none), None, "{none}");
        }
        assert_eq!(host_name("9-0 1 20000 r web-1"), HostName::checked("web-1"));
    }

    /// After a reconnect the node writes another value, which shows that it is alive.
    #[test]
    fn another_connection_says_something_else() {
        let config = stream();
        let say = || {
            let mut own = OwnField::new("k", &config, &"ab12".into());
            value(own.say(Id { ms: 3, number: 1 }).expect("it is said"))
        };
        assert_ne!(say(), say());
    }
}
