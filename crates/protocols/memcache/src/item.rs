//! An item stored under a key, and the trait of the store that holds the items.
//!
//! An item has a value, the client's flags, a number for `cas` and an expiry time. An [`Item`] is cheap to copy.
//! The store serialises concurrent edits of a key; nothing here locks. Times are in milliseconds; memcached's
//! own are in seconds.

use bytes::Bytes;

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
}

impl Item {
    /// A new item, which has no `cas` number yet.
    pub(crate) fn new(value: Bytes, flags: u32, ends: Option<Moment>, now: Moment) -> Item {
        Item { value, flags, cas: 0, ends, stored: now }
    }

    /// An item with another value, stored at `now`, and the same expiry time, client flags and `cas` number.
    pub(crate) fn remade(&self, value: Bytes, now: Moment) -> Item {
        Item { cas: self.cas, ..Item::new(value, self.flags, self.ends, now) }
    }

    /// Whether the item has expired at `now`.
    pub fn has_ended(&self, now: Moment) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }
}

/// The edit to apply to an item.
#[derive(Debug)]
pub enum Edit {
    /// Leave the item unchanged.
    Keep,
    /// Create or replace the item. It gets a new `cas` number.
    Put(Item),
    /// Change the item: another expiry time, or another value computed from the old one.
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
    fn edit(
        &self,
        key: &[u8],
        now: Moment,
        edit: &mut dyn FnMut(Option<&Item>) -> Edit,
    ) -> EditResult;

    /// `flush_all`: items stored up to the time `at` are removed from that time on.
    fn flush(&self, at: Moment, now: Moment);

    /// Statistics for `stats`: names and values.
    fn stats(&self, now: Moment) -> Vec<(&'static str, String)>;

    /// The version that `version` reports.
    fn version(&self) -> &str;
}
