//! Statistics of the store: bytes by kind, and counts of events.
//!
//! Hits are not counted here, because a hit writes nothing that all hits share; the server counts them per
//! connection. All values are read in one hold of the index lock, so they are consistent.

use crate::lease::Number;
use crate::refused::StoreRefusal;

/// Counts of events since the store was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of pages stored.
    pub stored: u64,
    /// Pages stored in place of a page of the same variant.
    pub replaced: u64,
    /// Pages of an earlier process restored.
    pub restored: u64,
    /// Pages whose payload was replaced.
    pub swapped: u64,
    /// Pages displaced by a newer variant of their key, because the key had too many.
    pub variants_displaced: u64,
    /// Renders refused, by reason, in the order of [`StoreRefusal::ALL`].
    pub refused: [u64; StoreRefusal::ALL.len()],
    /// Pages evicted for space.
    pub evicted: u64,
    /// The number of inactive pages removed.
    pub inactive: u64,
    /// Pages dropped by changes.
    pub dropped: u64,
    /// Pages marked by changes.
    pub marked: u64,
    /// Pages displaced by a newer page of their owner, because the owner had too many.
    pub owner_displaced: u64,
    /// Pages removed by the caller.
    pub removed: u64,
    /// Pages removed because the origin has given a later response that is not stored.
    pub superseded: u64,
    /// Changes applied, including those that were opened.
    pub changes: u64,
    /// Changes by predicate, which `changes` includes.
    pub changes_by_predicate: u64,
    /// Changes that were opened.
    pub opened: u64,
    /// Opened changes that were settled.
    pub settled: u64,
    /// Opened changes that were dropped unsettled. Their names stay open until the abandoned changes are
    /// settled.
    pub abandoned: u64,
    /// Opened changes that opened their whole site, because too many names were open.
    pub opened_whole_site: u64,
    /// Changes forgotten, to stay within a limit, although a lease was older.
    pub floor_raised: u64,
}

impl Counters {
    pub(crate) fn refuse(&mut self, reason: StoreRefusal) {
        self.refused[reason as usize] += 1;
    }
}

/// The heap bytes of the store by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Pages: payloads, keys, and the structures around them.
    pub pages: usize,
    /// The dependency index: edges at both ends, names, remembered changes.
    pub dependencies: usize,
    /// The map of the pages.
    pub map: usize,
    /// Queues, places, the ghost table, and keys that wait for cache warming.
    pub eviction: usize,
    /// The part of `eviction` that was reserved, and never written: no memory of the machine.
    pub untouched: usize,
}

impl Bytes {
    /// The sum of all kinds: what counts towards the budget.
    pub fn total(&self) -> usize {
        self.pages + self.dependencies + self.map + self.eviction
    }

    /// The sum of all kinds without what was never written: what the machine has given.
    pub fn used(&self) -> usize {
        self.total() - self.untouched
    }
}

/// The statistics of the store at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The number of the last change.
    pub number: Number,
    /// The floor: renders with older leases cannot be stored.
    pub floor: Number,
    /// Pages in the store.
    pub pages: usize,
    /// Dead pages: removed, but their edges are not tidied up yet.
    pub dead: usize,
    /// Names in the store: tags, URLs, paths, sites.
    pub names: usize,
    /// Dependencies in the store: pairs of a page and a name.
    pub edges: usize,
    /// Names whose last change is remembered for an outstanding lease, and remembered predicates.
    pub changes_remembered: usize,
    /// Keys that wait for cache warming.
    pub to_rewarm: usize,
    /// The sum of the open counts of all names (unsettled changes).
    pub opens: usize,
    /// The number of outstanding leases.
    pub leases: usize,
    /// The oldest outstanding lease, if there is one.
    pub oldest_lease: Option<Number>,
    /// The bytes by kind.
    pub bytes: Bytes,
    /// The counts of events.
    pub counters: Counters,
}

impl Stats {
    /// The number of renders refused for `reason`.
    pub fn refused(&self, reason: StoreRefusal) -> u64 {
        self.counters.refused[reason as usize]
    }
}
