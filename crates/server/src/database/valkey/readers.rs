//! How far each machine has read the stream, as it says itself: a hash beside the stream has a field for each.
//! So whoever has told a change knows when it is applied everywhere.
//!
//! A field says how far all is applied, a number that goes up at least once a second, and after how many
//! milliseconds of silence the machine answers nothing from memory any more (`lag_max`, and what it takes to
//! notice). It is waited for as long as it may answer; nobody's clock is compared with another's. [`Readers`]
//! has the interleavings. Not here: who waits, and for how long at most (`others`).

use super::words::own;
use crate::config::{Database, OnLag};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use valkey::{Id, remove_field_if, set_field};

/// What it takes to notice that the stream is out of reach, and to let go of the pages, at most.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// How often a machine says that it is there.
const BEAT: Duration = Duration::from_secs(1);
/// After so long a machine that says nothing is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// What a machine says that has taken its leave.
const GONE: &str = "gone";
/// Of a machine that says something else, for which it is waited all the same.
const UNREADABLE: Saying =
    Saying { read: Id { ms: 0, number: 0 }, silent_max: Duration::from_secs(60) };

/// The hash beside a stream.
pub fn hash(key: &str) -> String {
    format!("{key}:read")
}

/// How often this process has said anything.
static BEATS: AtomicU64 = AtomicU64::new(1);

/// What this machine says of itself.
pub struct Own {
    hash: String,
    silent_ms: u128,
    said: Option<(Id, Instant)>,
}

impl Own {
    /// Beside this stream.
    pub fn new(key: &str, config: &Database) -> Own {
        let lag_max = match config.on_lag {
            OnLag::BypassAfter(lag_max) => lag_max,
            // As old as the stream is away, by choice.
            OnLag::Serve => Duration::ZERO,
        };
        let silent_ms = lag_max.saturating_add(NOTICED_WITHIN).as_millis().min(u64::MAX.into());
        Own { hash: hash(key), silent_ms, said: None }
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
        let value = format!("{applied} {beat} {}", self.silent_ms);
        Some(set_field(&self.hash, own(), &value))
    }
}

/// The command by which this machine takes its leave: it answers nothing from memory any more.
pub fn gone(key: &str) -> Vec<u8> {
    set_field(&hash(key), own(), GONE)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Saying {
    read: Id,
    silent_max: Duration,
}

fn saying(text: &str) -> Option<Saying> {
    let mut words = text.split(' ');
    let read = words.next()?.parse().ok()?;
    let _beat: u64 = words.next()?.parse().ok()?;
    let silent_max = Duration::from_millis(words.next()?.parse().ok()?);
    words.next().is_none().then_some(Saying { read, silent_max })
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
#[derive(Default)]
pub struct Readers {
    seen: HashMap<String, (String, Instant)>,
}

impl Readers {
    /// Up to where everybody has applied who may answer from memory; none: there is nobody. Besides the
    /// commands that forget those of whom nothing was heard for long.
    pub fn look(
        &mut self,
        key: &str,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
        now: Instant,
    ) -> (Option<Id>, Vec<Vec<u8>>) {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let fields = fields.into_iter().map(|(name, value)| (text(name), text(value)));
        let mut seen = HashMap::new();
        let (mut least, mut forgotten) = (None, Vec::new());
        for (name, value) in fields.filter(|(name, _)| name != own()) {
            let before = self.seen.remove(&name).filter(|(before, _)| *before == value);
            let since = before.map_or(now, |(_, since)| since);
            if value == GONE || now.duration_since(since) > FORGOTTEN_AFTER {
                forgotten.push(remove_field_if(&hash(key), &name, &value));
            }
            if value != GONE {
                seen.insert(name, (value, since));
            }
        }
        // Those that are not there any more, and have not taken their leave.
        seen.extend(self.seen.drain());
        seen.retain(|_, (_, since)| now.duration_since(*since) <= FORGOTTEN_AFTER);
        for (value, since) in seen.values() {
            let Saying { read, silent_max } = saying(value).unwrap_or(UNREADABLE);
            if now.duration_since(*since) <= silent_max {
                least = Some(least.map_or(read, |least: Id| least.min(read)));
            }
        }
        self.seen = seen;
        (least, forgotten)
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
            let (least, forgotten) = readers.look("k", fields, now + Duration::from_secs(seconds));
            (least, forgotten.len())
        };
        assert_eq!(look(&[], 0), (None, 0));
        assert_eq!(look(&[(own(), "1-0 1 20000")], 0), (None, 0));
        assert_eq!(look(&[("a", "5-0 1 20000"), ("b", "7-0 1 20000")], 0), (id(5), 0));
        // One moves, the other is silent: first for as long as it may answer, then for longer.
        assert_eq!(look(&[("a", "5-0 1 20000"), ("b", "9-0 2 20000")], 20), (id(5), 0));
        assert_eq!(look(&[("a", "5-0 1 20000"), ("b", "9-0 3 20000")], 21), (id(9), 0));
        // It is there again.
        assert_eq!(look(&[("a", "5-0 2 20000"), ("b", "9-0 4 20000")], 22), (id(5), 0));
        // What cannot be read is waited for, and nobody for ever.
        assert_eq!(look(&[("a", "x"), ("b", GONE)], 23), (id(0), 1));
        assert_eq!(look(&[("a", "x")], 84), (None, 0));
        assert_eq!(look(&[("a", "x")], 3_700), (None, 1));
        // It has gone with the hash.
        assert_eq!(look(&[("c", "4-0 1 20000"), ("d", "6-0 1 20000")], 3_701), (id(4), 0));
        assert_eq!(look(&[("d", "8-0 2 20000")], 3_702), (id(4), 0));
        assert_eq!(look(&[("d", "8-0 3 20000")], 3_722), (id(8), 0));
        assert_eq!(look(&[("d", GONE)], 3_723), (None, 1));
    }

    #[test]
    fn what_is_said_is_understood() {
        let config = crate::config::stream_for_tests("redis://localhost");
        let mut own = Own::new("k", &config);
        let at = Id { ms: 3, number: 1 };
        let said = own.say(at).expect("it is said");
        let said = String::from_utf8(said).expect("text");
        let value = said.trim_end().rsplit("\r\n").next().expect("a value").to_owned();
        let silent_max = Duration::from_secs(20);
        assert_eq!(saying(&value), Some(Saying { read: at, silent_max }));
        assert!(own.say(at).is_none(), "not again at once");
        assert!(own.say(Id { ms: 4, number: 0 }).is_some());
    }
}
