//! How far each machine has read the stream, as it says itself: a hash beside the stream has a field for each.
//! So whoever has told a change knows when it is applied everywhere.
//!
//! A field says how far all is applied, a number that goes up at least once a second, after how many
//! milliseconds of silence the machine answers nothing from memory any more (`lag_max`, and what it takes to
//! notice), and of which start of the server that is. It is waited for as long as it may answer; nobody's clock
//! is compared with another's. [`Readers`] has the interleavings. Not here: who waits, and for how long at most
//! (`others`).

use super::words::own;
use crate::config::{Database, OnLag};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use valkey::{Id, all_fields, remove_field_if, set_field};

/// What it takes to notice that the stream is out of reach, and to let go of the pages, at most.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// How often a machine says that it is there.
const BEAT: Duration = Duration::from_secs(1);
/// After so long, or as long as it may answer, a machine that says nothing is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// How many are forgotten at once.
const FORGOTTEN_AT_ONCE: usize = 64;
/// How many machines are looked at: more are none, and whoever writes is late.
const SEEN_MAX: usize = 1_000;
/// What a machine says first that has taken its leave.
const GONE: &str = "gone";
/// Of a machine that says something else, for which it is waited all the same.
const UNREADABLE: Saying = Saying { read: Read::Nobody, silent_max: Duration::from_secs(60) };

/// The hash beside a stream: a host, which is in the stream's key, has no slash in it.
pub fn hash(key: &str) -> String {
    format!("{key}/read")
}

/// How often this process has said anything.
static BEATS: AtomicU64 = AtomicU64::new(1);

/// What this machine says of itself.
pub struct Own {
    hash: String,
    silent_ms: u128,
    run: Arc<str>,
    said: Option<(Id, Instant)>,
}

impl Own {
    /// Beside this stream of a server that was started with this `run_id`.
    pub fn new(key: &str, config: &Database, run: &Arc<str>) -> Own {
        Own { hash: hash(key), silent_ms: silent_ms(config), run: run.clone(), said: None }
    }

    /// All up to here is applied: the command that says so, if it is time.
    pub fn say(&mut self, applied: Id) -> Option<Vec<u8>> {
        let is_known = self.said.is_some_and(|(said, at)| said == applied && at.elapsed() < BEAT);
        if is_known {
            return None;
        }
        self.said = Some((applied, Instant::now()));
        // Never the same twice, whichever connection it is said by.
        let beat = BEATS.fetch_add(1, Ordering::Relaxed);
        let value = format!("{applied} {beat} {} {}", self.silent_ms, self.run);
        Some(set_field(&self.hash, own(), &value))
    }
}

/// After how long a silence this machine answers nothing from memory any more, in milliseconds.
fn silent_ms(config: &Database) -> u128 {
    let lag_max = match config.on_lag {
        OnLag::BypassAfter(lag_max) => lag_max,
        // As old as the stream is away, by choice.
        OnLag::Serve => Duration::ZERO,
    };
    lag_max.saturating_add(NOTICED_WITHIN).as_millis().min(u64::MAX.into())
}

/// The command by which this machine takes its leave: it answers nothing from memory any more.
pub fn gone(key: &str, config: &Database) -> Vec<u8> {
    set_field(&hash(key), own(), &format!("{GONE} {}", silent_ms(config)))
}

/// Commands that find out whether the account may do all that is done here, and leave nothing: three replies.
pub fn try_all(key: &str) -> Vec<u8> {
    let (hash, nothing) = (hash(key), format!("{GONE} 0"));
    let tried = set_field(&hash, own(), &nothing);
    [tried, all_fields(&hash), remove_field_if(&hash, own(), &nothing)].concat()
}

/// Up to where a machine has applied all.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Read {
    /// Up to here, of a server's start.
    UpTo(Id, Box<str>),
    /// It does not say so in words that are known.
    Nobody,
    /// It does not matter: it has taken its leave.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Saying {
    read: Read,
    silent_max: Duration,
}

/// What a field says; what comes after that is of a later version.
fn saying(text: &str) -> Option<Saying> {
    let mut words = text.split(' ');
    let first = words.next()?;
    let is_gone = first == GONE;
    let up_to = if is_gone { Id::default() } else { first.parse().ok()? };
    if !is_gone {
        let _beat: u64 = words.next()?.parse().ok()?;
    }
    let silent_max = Duration::from_millis(words.next()?.parse().ok()?);
    let read = match is_gone {
        true => Read::Gone,
        false => Read::UpTo(up_to, words.next()?.into()),
    };
    Some(Saying { read, silent_max })
}

/// The other machines, as they were seen. Checked against:
/// - told → a machine begins to follow: it says where it begins *before* it reads, in that order to the
///   server. Either it is seen by whoever has told, or it reads the entry before it answers from memory.
/// - told → a machine applies → it says so → it is cut off: what it has said it has applied.
/// - a machine is cut off → told: it does not move, so it is waited for until it has been silent for as long
///   as it said, and it has closed its gate by then.
/// - a machine that was silent for so long comes back: it says where it is before it reads on, and lets
///   nothing in before it has read on.
/// - the server is started anew, and has lost the hash → told → another machine notices: who was seen and is
///   not there any more, without having taken his leave, is waited for as if he were silent.
/// - the server is started anew with a clock that is behind → told, by a lower id than a machine has read
///   before: what was read of another start of the server counts for nothing.
/// - the stream is deleted, and its ids begin lower than before (the clock was put back, or one was made by
///   hand) → told → the machine notices: who says that he has read further than the stream had come *before*
///   it was told has not read this one, until he says something else.
/// - a machine takes its leave → it is seen by one, and not yet by another: its field stays for as long as
///   somebody could wait for it.
#[derive(Default)]
pub struct Readers {
    seen: HashMap<String, Seen>,
    /// Whether there are more than are looked at.
    is_crowded: bool,
}

/// A machine, by what it said last, and since when it has.
struct Seen {
    text: String,
    saying: Saying,
    since: Instant,
    /// Up to here he says he has read, and it is not of this stream.
    void: Option<Id>,
}

impl Seen {
    fn new(text: String, now: Instant) -> Seen {
        let saying = saying(&text).unwrap_or(UNREADABLE);
        Seen { text, saying, since: now, void: None }
    }

    /// The stream had come to here, a moment after he was seen.
    fn compare(&mut self, last: Id) {
        if let Read::UpTo(id, _) = self.saying.read
            && id > last
        {
            self.void = Some(id);
        }
    }

    /// Whether it may answer from memory.
    fn may_answer(&self, now: Instant) -> bool {
        self.saying.read != Read::Gone && !self.is_silent_for(self.saying.silent_max, now)
    }

    /// Whether nobody waits for it, and nobody will.
    fn is_forgotten(&self, now: Instant) -> bool {
        let silent_max = self.saying.silent_max;
        let least = if self.saying.read == Read::Gone { silent_max } else { FORGOTTEN_AFTER };
        self.is_silent_for(silent_max.max(least), now)
    }

    fn is_silent_for(&self, bound: Duration, now: Instant) -> bool {
        now.duration_since(self.since) > bound
    }

    /// Up to where it has applied all of this start of the server.
    fn read(&self, run: &str) -> Id {
        match &self.saying.read {
            Read::UpTo(id, of) if **of == *run && self.void != Some(*id) => *id,
            Read::UpTo(..) | Read::Nobody | Read::Gone => Id::default(),
        }
    }
}

impl Readers {
    /// Takes in the fields of the hash, and where it is known how far the stream had come a moment later. Returns
    /// the commands that forget those of whom nothing was heard for long.
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
        for (name, value) in fields.filter(|(name, _)| name != own()) {
            let mut one = match self.seen.remove(&name) {
                Some(before) if before.text == value => before,
                before => {
                    let void = before.and_then(|before| before.void);
                    Seen { void, ..Seen::new(value, now) }
                }
            };
            last.into_iter().for_each(|last| one.compare(last));
            if one.is_forgotten(now) && forgotten.len() < FORGOTTEN_AT_ONCE {
                forgotten.push(remove_field_if(&hash(key), &name, &one.text));
            }
            seen.insert(name, one);
        }
        // Those that are not there any more, and have not taken their leave.
        let lost = self.seen.drain().filter(|(_, one)| !one.is_forgotten(now));
        seen.extend(lost.filter(|(_, one)| one.saying.read != Read::Gone));
        if seen.len() > SEEN_MAX {
            seen = seen.into_iter().take(SEEN_MAX).collect();
            self.is_crowded = true;
        }
        self.seen = seen;
        forgotten
    }

    /// Up to where everybody has applied all of this start of the server who may answer from memory; none: there
    /// is nobody.
    pub fn least(&self, run: &str, now: Instant) -> Option<Id> {
        // Of so many not all are known.
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
    fn everybody_who_may_answer_is_waited_for() {
        let (mut readers, now) = (Readers::default(), Instant::now());
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
        // One moves, the other is silent: first for as long as it may answer, then for longer.
        assert_eq!(look(&[("a", "5-0 1 20000 r"), ("b", "9-0 2 20000 r")], 20), (id(5), 0));
        assert_eq!(look(&[("a", "5-0 1 20000 r"), ("b", "9-0 3 20000 r x")], 21), (id(9), 0));
        // It is there again.
        assert_eq!(look(&[("a", "5-0 2 20000 r"), ("b", "9-0 4 20000 r")], 22), (id(5), 0));
        // What cannot be read is waited for, and nobody for ever.
        assert_eq!(look(&[("a", "x"), ("b", "gone 20000")], 23), (id(0), 0));
        assert_eq!(look(&[("a", "x"), ("b", "gone 20000")], 43), (id(0), 0));
        assert_eq!(look(&[("a", "x"), ("b", "gone 20000")], 44), (id(0), 1));
        assert_eq!(look(&[("a", "x")], 84), (None, 0));
        assert_eq!(look(&[("a", "x")], 3_700), (None, 1));
        // It has gone with the hash.
        assert_eq!(look(&[("c", "4-0 1 20000 r"), ("d", "6-0 1 20000 r")], 3_701), (id(4), 0));
        assert_eq!(look(&[("d", "8-0 2 20000 r")], 3_702), (id(4), 0));
        assert_eq!(look(&[("d", "8-0 3 20000 r")], 3_722), (id(8), 0));
        // It has taken its leave, and somebody else has forgotten it.
        assert_eq!(look(&[("d", "gone 20000")], 3_723), (None, 0));
        assert_eq!(look(&[], 3_724), (None, 0));
        // For as long as it may answer, however long that is.
        assert_eq!(look(&[("e", "4-0 1 9000000 r")], 4_000), (id(4), 0));
        assert_eq!(look(&[("e", "4-0 1 9000000 r")], 13_000), (id(4), 0));
        assert_eq!(look(&[("e", "4-0 1 9000000 r")], 13_001), (None, 1));
    }

    #[test]
    fn what_was_read_of_another_server_counts_for_nothing() {
        let (mut readers, now) = (Readers::default(), Instant::now());
        let mut look = |value, run| {
            readers.see("k", vec![field("a", value)], None, now);
            readers.least(run, now)
        };
        assert_eq!(look("9-0 1 20000 r", "r"), Some(Id { ms: 9, number: 0 }));
        assert_eq!(look("9-0 1 20000 r", "s"), Some(Id::default()));
        assert_eq!(look("5-0 2 20000 s", "s"), Some(Id { ms: 5, number: 0 }));
    }

    #[test]
    fn who_says_too_many_names_does_not_hold_up_who_tells() {
        let (mut readers, now) = (Readers::default(), Instant::now());
        let all = || (0..200).map(|n| field(&n.to_string(), "gone 1")).collect();
        assert_eq!(readers.see("k", all(), None, now).len(), 0);
        assert_eq!(readers.least("r", now), None);
        let later = now + Duration::from_secs(1);
        assert_eq!(readers.see("k", all(), None, later).len(), FORGOTTEN_AT_ONCE);
        // Nor takes up memory without a bound; of so many it is not known who has read what.
        for round in 0..5 {
            let many = (0..2_000).map(|n| field(&format!("{round}-{n}"), "9-0 1 20000 r"));
            readers.see("k", many.collect(), None, later);
            assert!(readers.seen.len() <= SEEN_MAX);
            assert_eq!(readers.least("r", later), Some(Id::default()));
        }
    }

    #[test]
    fn what_was_read_of_a_stream_that_is_gone_counts_for_nothing() {
        let (mut readers, now) = (Readers::default(), Instant::now());
        let id = |ms| Id { ms, number: 0 };
        let mut see = |value: &str, last: Option<u64>| {
            readers.see("k", vec![field("a", value)], last.map(id), now);
            readers.least("r", now)
        };
        assert_eq!(see("90-0 1 20000 r", Some(90)), Some(id(90)));
        // Deleted, and at 50: he goes on saying the same until he notices, and then less.
        assert_eq!(see("90-0 2 20000 r", Some(50)), Some(id(0)));
        assert_eq!(see("90-0 3 20000 r", None), Some(id(0)));
        assert_eq!(see("90-0 3 20000 r", Some(120)), Some(id(0)));
        assert_eq!(see("51-0 4 20000 r", None), Some(id(51)));
        assert_eq!(see("130-0 5 20000 r", Some(130)), Some(id(130)));
    }

    /// The value of a command that sets a field.
    fn value(command: Vec<u8>) -> String {
        let said = String::from_utf8(command).expect("text");
        said.trim_end().rsplit("\r\n").next().expect("a value").to_owned()
    }

    /// A stream as it is configured; nothing connects to it.
    fn stream() -> Arc<Database> {
        let text = "site.origin = \"http://127.0.0.1:1\"\nstream.url = \"redis://localhost\"";
        let file = toml::from_str(text).expect("a configuration");
        crate::config::resolve(&file).expect("it can be used").stream.expect("a stream")
    }

    #[test]
    fn what_is_said_is_understood() {
        let config = stream();
        let mut own = Own::new("k", &config, &"ab12".into());
        let at = Id { ms: 3, number: 1 };
        let said = value(own.say(at).expect("it is said"));
        let silent_max = Duration::from_secs(20);
        let read = Read::UpTo(at, "ab12".into());
        assert_eq!(saying(&said), Some(Saying { read, silent_max }));
        assert!(own.say(at).is_none(), "not again at once");
        assert!(own.say(Id { ms: 4, number: 0 }).is_some());
        let left = value(gone("k", &config));
        assert_eq!(saying(&left), Some(Saying { read: Read::Gone, silent_max }));
    }

    /// A connection that begins anew where the one before has ended says something else: it is there.
    #[test]
    fn another_connection_says_something_else() {
        let config = stream();
        let say = || {
            let mut own = Own::new("k", &config, &"ab12".into());
            value(own.say(Id { ms: 3, number: 1 }).expect("it is said"))
        };
        assert_ne!(say(), say());
    }
}
