//! An item stored under a key, and the trait of the store that holds the items.
//!
//! An item has a value, the client's flags, a number for `cas`, an expiry time, and the state of the meta
//! commands (stale, token won). An [`Item`] is cheap to copy. The store serialises concurrent edits of a key;
//! nothing here locks. Times are in milliseconds; memcached's own are in seconds.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A point in time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// An expiry time as a client sends it (protocol.txt, "Expiration times").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The item does not expire; it may be evicted.
    Never,
    /// The item expires in so many seconds, at most thirty days.
    After(u32),
    /// The item expires at this time, in seconds since 1970.
    At(u32),
    /// The item expires immediately.
    Past,
}

impl Expiry {
    /// Thirty days in seconds. A larger number is a time since 1970.
    const AFTER_MAX: i32 = 60 * 60 * 24 * 30;

    /// The expiry time for a number in a command.
    pub(crate) fn of(seconds: i32) -> Expiry {
        match seconds {
            0 => Expiry::Never,
            ..0 => Expiry::Past,
            1..=Self::AFTER_MAX => Expiry::After(seconds.unsigned_abs()),
            _ => Expiry::At(seconds.unsigned_abs()),
        }
    }

    /// The time at which an item with this expiry, set at `now`, ends; `None` if it does not expire.
    pub fn end(self, now: Moment) -> Option<Moment> {
        match self {
            Expiry::Never => None,
            Expiry::After(seconds) => Some(Moment(now.0 + u64::from(seconds) * 1_000)),
            Expiry::At(second) => Some(Moment(u64::from(second) * 1_000)),
            Expiry::Past => Some(Moment(0)),
        }
    }
}

/// Whether and when an item was last read. The copies of an item share it.
#[derive(Debug, Default)]
pub struct LastRead {
    fetched: AtomicBool,
    at: AtomicU64,
}

impl LastRead {
    /// The state of an item that was stored at `now` and has not been read.
    pub fn new(now: Moment) -> Arc<LastRead> {
        Arc::new(LastRead { fetched: AtomicBool::new(false), at: AtomicU64::new(now.0) })
    }

    pub(crate) fn fetched(&self) -> bool {
        self.fetched.load(Ordering::Relaxed)
    }

    pub(crate) fn seconds_since(&self, now: Moment) -> u64 {
        now.0.saturating_sub(self.at.load(Ordering::Relaxed)) / 1_000
    }

    /// Records a read. The atomics are written only if they change, so that their cache lines stay shared
    /// between cores.
    pub(crate) fn fetch(&self, now: Moment) {
        if !self.fetched() {
            self.fetched.store(true, Ordering::Relaxed);
        }
        if self.seconds_since(now) > 0 {
            self.at.store(now.0, Ordering::Relaxed);
        }
    }
}

/// An item stored under a key.
#[derive(Clone, Debug)]
pub struct Item {
    /// The value of the item.
    pub value: Bytes,
    /// The flags that the client has set.
    pub flags: u32,
    /// A number that is unique among all states of all items.
    pub cas: u64,
    /// The time at which the item expires; `None` if it does not.
    pub ends: Option<Moment>,
    /// The time at which the item was stored.
    pub stored: Moment,
    /// Whether the item is marked as stale (`md` with `I`) and should be computed again.
    pub stale: bool,
    /// Whether a client has received the token to compute the item again.
    pub won: bool,
    /// Whether the key was sent in base64.
    pub binary_key: bool,
    /// Whether and when the item was last read.
    pub seen: Arc<LastRead>,
}

impl Item {
    /// A new item, which has no `cas` number yet.
    pub(crate) fn new(value: Bytes, flags: u32, ends: Option<Moment>, now: Moment) -> Item {
        let (cas, stale, won, binary_key, seen) = (0, false, false, false, LastRead::new(now));
        Item { value, flags, cas, ends, stored: now, stale, won, binary_key, seen }
    }

    /// An item with another value and the same expiry time, client flags and `cas` number. Everything else is
    /// reset.
    pub(crate) fn remade(&self, value: Bytes, now: Moment) -> Item {
        Item { cas: self.cas, ..Item::new(value, self.flags, self.ends, now) }
    }

    /// Whether the item has expired at `now`.
    pub fn has_ended(&self, now: Moment) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }

    /// The remaining lifetime in seconds, rounded up; `None` if the item does not expire.
    pub(crate) fn seconds_left(&self, now: Moment) -> Option<u64> {
        self.ends.map(|ends| ends.0.saturating_sub(now.0).div_ceil(1_000))
    }
}

/// The page metadata of an item (`ms` with `P` and `L`). memcached ignores both flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The token of `P`: the tags of the page.
    pub tags: Option<Box<[u8]>>,
    /// The token of `L`: the lease of the page.
    pub lease: Option<Box<[u8]>>,
}

/// The edit to apply to an item.
#[derive(Debug)]
pub enum Edit<'s> {
    /// Leave the item unchanged.
    Keep,
    /// Create or replace the item, with its page metadata. It gets a new `cas` number.
    Put(Item, &'s Page),
    /// Change the item: another expiry time, another value computed from the old one, or a mark.
    Change(Item, NewCas),
    /// Remove the item, because a client requests it. Also used if there is no item.
    Remove,
    /// Remove the item, because its replacement is too large.
    Discard,
}

/// Whether a changed item gets a new `cas` number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewCas {
    /// The item gets a new number.
    Yes,
    /// The item keeps its number.
    No,
}

/// The result of an edit.
#[derive(Debug)]
pub enum EditResult {
    /// The edit was applied. The item as it is now, if there is one.
    Done(Option<Item>),
    /// The edit was rejected. The previous item, if there was one, has been removed.
    Not(SetRefusal),
}

/// The reason why an item is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetRefusal {
    /// The data that the page depends on has changed since its lease, or may have.
    Changed,
    /// There is no memory for it.
    NoRoom,
    /// The page metadata is invalid.
    Unreadable,
    /// The page is compressed or not text: its client flags are not 0.
    Encoded,
}

impl SetRefusal {
    /// The name of the reason, for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            SetRefusal::Changed => "changed",
            SetRefusal::NoRoom => "no-room",
            SetRefusal::Unreadable => "unreadable",
            SetRefusal::Encoded => "encoded",
        }
    }
}

/// A store of items.
pub trait Items {
    /// The item stored under `key`; `None` if there is none, or if it has expired at `now`.
    fn get(&self, key: &[u8], now: Moment) -> Option<Item>;

    /// Calls `edit` with the item under `key` (`None` if there is none, or if it has expired), and applies the
    /// result. No other edit of this key happens in between. The store assigns the `cas` numbers.
    fn edit<'s>(
        &self,
        key: &[u8],
        now: Moment,
        edit: &mut dyn FnMut(Option<&Item>) -> Edit<'s>,
    ) -> EditResult;

    /// `flush_all`: items stored up to the time `at` are removed from that time on.
    fn flush(&self, at: Moment, now: Moment);

    /// Statistics for `stats`: names and values.
    fn stats(&self, now: Moment) -> Vec<(&'static str, String)>;

    /// The version that `version` reports.
    fn version(&self) -> &str;
}
