//! The store's figures: what it holds, in bytes by kind, and what happened to it.
//!
//! Hits are not counted here: a hit touches nothing that all hits share. The server counts them per
//! connection. Everything is read in one hold of the index lock, so the figures agree with each other.

use crate::lease::Number;
use crate::refused::Refused;

/// What happened since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages stored.
    pub stored: u64,
    /// Of these, in place of a page of the same variant.
    pub replaced: u64,
    /// Pages of an earlier process put in again.
    pub restored: u64,
    /// Pages given another payload in their place.
    pub swapped: u64,
    /// Pages put out by a newer variant of their key, because there were too many.
    pub variants_displaced: u64,
    /// Renders refused, by reason, in the order of [`Refused::ALL`].
    pub refused: [u64; Refused::ALL.len()],
    /// Pages evicted for space.
    pub evicted: u64,
    /// Pages dropped because nobody had asked for them for long.
    pub unused: u64,
    /// Pages dropped by changes.
    pub dropped: u64,
    /// Pages marked by changes.
    pub marked: u64,
    /// Pages put out by a newer page of their owner, because it had too many.
    pub owner_displaced: u64,
    /// Pages removed by the caller.
    pub removed: u64,
    /// Pages removed because the origin has given a later answer that is not stored.
    pub superseded: u64,
    /// Changes applied, those that were opened among them.
    pub changes: u64,
    /// Changes by predicate among these.
    pub changes_by_predicate: u64,
    /// Changes that were opened.
    pub opened: u64,
    /// Opened changes that were settled.
    pub settled: u64,
    /// Opened changes that were let go unsettled; their names stay open until the abandoned are settled.
    pub abandoned: u64,
    /// Opened changes that opened their whole site, because too many names were open.
    pub opened_whole_site: u64,
    /// Times that a change was forgotten although a lease was older, for want of room.
    pub floor_raised: u64,
}

impl Counters {
    pub(crate) fn refuse(&mut self, reason: Refused) {
        self.refused[reason as usize] += 1;
    }
}

/// What the store holds, in bytes of heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Pages: payloads, keys, the structures around them.
    pub pages: usize,
    /// The dependency index: edges at both ends, names, remembered changes.
    pub dependencies: usize,
    /// The page map.
    pub map: usize,
    /// Queues, places, the table of keys that left, keys that wait to be rendered anew.
    pub eviction: usize,
}

impl Bytes {
    /// All of it.
    pub fn total(&self) -> usize {
        self.pages + self.dependencies + self.map + self.eviction
    }
}

/// The store's figures at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The number of the last change.
    pub number: Number,
    /// Renders with older leases cannot be stored.
    pub floor: Number,
    /// Pages held.
    pub pages: usize,
    /// Pages that are gone but whose edges are not tidied up yet.
    pub dead: usize,
    /// Names held: tags, URLs, paths, sites.
    pub names: usize,
    /// Dependencies held: pairs of a page and a name.
    pub edges: usize,
    /// Names whose last change is remembered for a render still out, and predicates.
    pub changes_remembered: usize,
    /// Keys that wait to be rendered anew.
    pub to_rewarm: usize,
    /// How many times names are open (unsettled).
    pub opens: usize,
    /// Leases out.
    pub leases: usize,
    /// The oldest lease out, if there is any.
    pub oldest_lease: Option<Number>,
    /// What is held, in bytes.
    pub bytes: Bytes,
    /// What happened.
    pub counters: Counters,
}

impl Stats {
    /// How many renders were refused for `reason`.
    pub fn refused(&self, reason: Refused) -> u64 {
        self.counters.refused[reason as usize]
    }
}
