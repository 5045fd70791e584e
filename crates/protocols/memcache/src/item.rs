//! What is kept under a key, and what somebody who keeps it has to be able to do.
//!
//! A value, the client's flags and a number for `cas`; when it ends; and what the meta commands leave on it
//! (stale, somebody has won). An [`Item`] is cheap to copy. The keeper tells concurrent edits of a key
//! apart; nothing here locks. Times are milliseconds; memcached's own are seconds.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A point in time: milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// How long an item is to last, as a client says it (protocol.txt, "Expiration times").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Until it is evicted.
    Never,
    /// So many seconds from now, up to thirty days.
    After(u32),
    /// At this second since 1970.
    At(u32),
    /// It has ended already.
    Past,
}

impl Expiry {
    /// Thirty days: more seconds than this are a time since 1970.
    const AFTER_MAX: i32 = 60 * 60 * 24 * 30;

    /// What a number in a command means.
    pub(crate) fn of(seconds: i32) -> Expiry {
        match seconds {
            0 => Expiry::Never,
            ..0 => Expiry::Past,
            1..=Self::AFTER_MAX => Expiry::After(seconds.unsigned_abs()),
            _ => Expiry::At(seconds.unsigned_abs()),
        }
    }

    /// When an item ends that is told this at `now`; `None` for never.
    pub fn end(self, now: Moment) -> Option<Moment> {
        match self {
            Expiry::Never => None,
            Expiry::After(seconds) => Some(Moment(now.0 + u64::from(seconds) * 1_000)),
            Expiry::At(second) => Some(Moment(u64::from(second) * 1_000)),
            Expiry::Past => Some(Moment(0)),
        }
    }
}

/// Whether and when an item was asked for; shared by the copies of an item.
#[derive(Debug, Default)]
pub struct Seen {
    fetched: AtomicBool,
    at: AtomicU64,
}

impl Seen {
    /// Not asked for yet, stored at `now`.
    pub fn new(now: Moment) -> Arc<Seen> {
        Arc::new(Seen { fetched: AtomicBool::new(false), at: AtomicU64::new(now.0) })
    }

    pub(crate) fn fetched(&self) -> bool {
        self.fetched.load(Ordering::Relaxed)
    }

    pub(crate) fn seconds_since(&self, now: Moment) -> u64 {
        now.0.saturating_sub(self.at.load(Ordering::Relaxed)) / 1_000
    }

    /// Written only when it changes: what is read much stays shared between the cores.
    pub(crate) fn fetch(&self, now: Moment) {
        if !self.fetched() {
            self.fetched.store(true, Ordering::Relaxed);
        }
        if self.seconds_since(now) > 0 {
            self.at.store(now.0, Ordering::Relaxed);
        }
    }
}

/// What is kept under a key.
#[derive(Clone, Debug)]
pub struct Item {
    /// The value.
    pub value: Bytes,
    /// The client's flags.
    pub flags: u32,
    /// A number that no other state of any item has.
    pub cas: u64,
    /// When it ends, if it does.
    pub ends: Option<Moment>,
    /// When it was stored.
    pub stored: Moment,
    /// It was marked stale (`md` with `I`), and is to be made anew.
    pub stale: bool,
    /// Somebody was told to make it anew.
    pub won: bool,
    /// Its key was given in base64.
    pub binary_key: bool,
    /// Whether it was asked for.
    pub seen: Arc<Seen>,
}

impl Item {
    /// A new item of `value`, which has no `cas` yet.
    pub(crate) fn new(value: Bytes, flags: u32, ends: Option<Moment>, now: Moment) -> Item {
        let (cas, stale, won, binary_key, seen) = (0, false, false, false, Seen::new(now));
        Item { value, flags, cas, ends, stored: now, stale, won, binary_key, seen }
    }

    /// Another value in its place, made of it: with its end and the client's flags, and nothing else that
    /// was known of it.
    pub(crate) fn remade(&self, value: Bytes, now: Moment) -> Item {
        Item { cas: self.cas, ..Item::new(value, self.flags, self.ends, now) }
    }

    /// Whether it has ended at `now`.
    pub fn has_ended(&self, now: Moment) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }

    /// Seconds it still has, each begun one counted; `None` for no end.
    pub(crate) fn seconds_left(&self, now: Moment) -> Option<u64> {
        self.ends.map(|ends| ends.0.saturating_sub(now.0).div_ceil(1_000))
    }
}

/// What is said about a page beside its value (`ms` with `P` and `L`); memcached takes no notice of either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The token of `P`.
    pub tags: Option<Box<[u8]>>,
    /// The token of `L`.
    pub lease: Option<Box<[u8]>>,
}

/// What becomes of an item.
#[derive(Debug)]
pub enum Edit<'s> {
    /// It stays as it is.
    Keep,
    /// This takes its place, or is there from now on; and what is said about it. It gets a new `cas`.
    Put(Item, &'s Page),
    /// It stays, changed: another end, another value made of it, marked. With a new `cas` if that is said.
    Change(Item, NewCas),
    /// It goes, because a client wants that; asked for where nothing is as well.
    Remove,
    /// It goes, because what was to take its place is too large.
    Discard,
}

/// Whether a changed item counts as another one for `cas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewCas {
    /// It does.
    Yes,
    /// It is the same.
    No,
}

/// What an edit came to.
#[derive(Debug)]
pub enum Edited {
    /// Done; the item as it is now, if it is there.
    Done(Option<Item>),
    /// Not done; what was there is not there any more, if something was.
    Not(NotKept),
}

/// Why something is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// What it was made from has changed in the meantime, or may have.
    Changed,
    /// There is no room for it.
    NoRoom,
    /// What it says about itself cannot be read.
    Unreadable,
    /// It is a page, and compressed or no text: its flags are not 0.
    Encoded,
}

impl NotKept {
    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NotKept::Changed => "changed",
            NotKept::NoRoom => "no-room",
            NotKept::Unreadable => "unreadable",
            NotKept::Encoded => "encoded",
        }
    }
}

/// Who keeps the items.
pub trait Items {
    /// The item under `key`, if there is one that has not ended at `now`.
    fn get(&self, key: &[u8], now: Moment) -> Option<Item>;

    /// Asks `edit` what becomes of the item under `key` (`None` where there is none, or it has ended), and
    /// does it. Nobody else edits this key in between. Numbers for `cas` are given here.
    fn edit<'s>(
        &self,
        key: &[u8],
        now: Moment,
        edit: &mut dyn FnMut(Option<&Item>) -> Edit<'s>,
    ) -> Edited;

    /// `flush_all`: what is there at `at` is not, from then on.
    fn flush(&self, at: Moment, now: Moment);

    /// Figures for `stats`: name and value.
    fn stats(&self, now: Moment) -> Vec<(&'static str, String)>;

    /// What `version` says.
    fn version(&self) -> &str;
}
