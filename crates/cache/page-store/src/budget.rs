//! Memory accounting: the heap bytes of each structure, and the limits of a store.
//!
//! Every byte that the store holds is counted: payloads, pages, keys, both directions of the dependency
//! index, names, the page map, the ghost table, remembered changes. The sizes are those that a
//! general-purpose allocator reserves (16-byte steps, 8 bytes of overhead), not those requested. Not
//! counted are outstanding leases and fills in progress, which the caller's limit on concurrent requests
//! bounds, and the contents of remembered predicates ([`Limits::predicates_max`]).
//!
//! `tests/heap.rs` checks the typical costs: [`PAGE_BYTES_TYPICAL`], [`EDGE_BYTES_TYPICAL`],
//! [`NAME_BYTES_TYPICAL`].

/// The typical maximum cost in bytes of a page two directories deep, without payload, key bytes and tags.
/// Each further directory costs as much as a tag.
pub const PAGE_BYTES_TYPICAL: usize = 195;

/// The typical maximum cost in bytes of one more tag on a page, if another page has the tag.
pub const EDGE_BYTES_TYPICAL: usize = 18;

/// The typical maximum cost in bytes of one more tag on a page, if no other page has the tag.
pub const NAME_BYTES_TYPICAL: usize = 40;

/// The limits of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum of everything the store holds, in bytes. Pages are evicted to stay within it.
    pub budget_bytes: usize,
    /// The maximum size of one page with its key, in bytes. It is never more than half of the budget.
    pub page_bytes_max: usize,
    /// The maximum number of different tags of one page.
    pub tags_max: usize,
    /// The maximum length of one tag, in bytes.
    pub tag_bytes_max: usize,
    /// The maximum number of variants of one key. One more displaces the oldest.
    pub variants_max: usize,
    /// The maximum number of changed names that are remembered for outstanding leases (rule 4).
    pub changes_remembered_max: usize,
    /// The maximum number of names that may be open (unsettled) at once. A change beyond it opens its whole
    /// site.
    pub opens_max: usize,
    /// The maximum number of changes by predicate that are remembered for outstanding leases. Beyond it,
    /// older renders are refused.
    pub predicates_max: usize,
    /// The maximum number of pages of one owner. One more displaces the oldest.
    pub owner_pages_max: usize,
    /// The maximum number of keys of dropped or marked pages that wait for cache warming; 0 turns it off.
    pub rewarm_pages_max: usize,
    /// The minimum worth of a page for cache warming: its uses, counted up to three, plus two for a page
    /// that has survived an eviction scan.
    pub rewarm_uses_min: u8,
    /// The number of pages that a change drops in one hold of the index lock (about a microsecond each),
    /// before it yields the processor. On a machine with one core, hits wait for that long.
    pub sweep_pages: usize,
}

impl Limits {
    /// The number of dead pages whose edges are removed in one hold of the index lock: a few microseconds
    /// each.
    pub(crate) fn bury_pages(&self) -> usize {
        (self.sweep_pages / 4).max(1)
    }

    /// The number of places that an inactivity scan checks in one hold of the index lock. Each takes some
    /// hundred nanoseconds, or a microsecond if its page leaves.
    pub(crate) fn round_pages(&self) -> usize {
        (self.sweep_pages / 2).max(1)
    }
}

impl Limits {
    /// The default limits for a budget in bytes.
    pub fn new(budget_bytes: usize) -> Self {
        Self {
            budget_bytes,
            page_bytes_max: budget_bytes / 8,
            tags_max: 1_000,
            tag_bytes_max: 1_024,
            variants_max: 32,
            changes_remembered_max: 100_000,
            opens_max: 10_000,
            predicates_max: 16,
            owner_pages_max: 50,
            rewarm_pages_max: 0,
            rewarm_uses_min: 1,
            sweep_pages: 500,
        }
    }
}

/// The heap bytes of an allocation of `bytes`. A [`Payload`](crate::Payload) uses it to report its size.
pub const fn heap(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let rounded = (bytes + 8 + 15) & !15;
    if rounded < 32 { 32 } else { rounded }
}

/// The heap bytes of a page: `fixed_bytes` and `bytes` in its own allocation, those of its key included,
/// plus its payload's.
pub(crate) fn page_bytes(fixed_bytes: usize, bytes: usize, payload_bytes: usize) -> usize {
    heap((fixed_bytes + bytes).next_multiple_of(align_of::<usize>())) + payload_bytes
}

/// A number of heap bytes in three bytes, rounded up: to 16 bytes below 128 MiB, to 4 KiB above. At most 32
/// GiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApproxBytes([u8; 3]);

impl ApproxBytes {
    const FINE: usize = 16;
    const COARSE: usize = 4 << 10;
    /// The bit that marks a value in coarse steps.
    const IS_COARSE: u32 = 1 << 23;

    pub(crate) fn of(bytes: usize) -> ApproxBytes {
        let fine = u32::try_from(bytes.div_ceil(Self::FINE)).ok();
        let steps = fine.filter(|steps| *steps < Self::IS_COARSE).unwrap_or_else(|| {
            let coarse = u32::try_from(bytes.div_ceil(Self::COARSE)).unwrap_or(u32::MAX);
            coarse.min(Self::IS_COARSE - 1) | Self::IS_COARSE
        });
        let [_, high, middle, low] = steps.to_be_bytes();
        ApproxBytes([high, middle, low])
    }

    pub(crate) fn bytes(self) -> usize {
        let [high, middle, low] = self.0;
        let steps = u32::from_be_bytes([0, high, middle, low]);
        match steps & Self::IS_COARSE {
            0 => steps as usize * Self::FINE,
            _ => (steps & !Self::IS_COARSE) as usize * Self::COARSE,
        }
    }
}

/// The heap bytes of a hash table with room for `capacity` entries of `entry_bytes`.
pub(crate) fn table_bytes(capacity: usize, entry_bytes: usize) -> usize {
    let buckets = match capacity {
        0 => return 0,
        1..4 => 4,
        4..8 => 8,
        _ => (capacity * 8 / 7).next_power_of_two(),
    };
    heap(buckets * entry_bytes + buckets + 16)
}

#[cfg(test)]
mod tests {
    use super::ApproxBytes;

    #[test]
    fn bytes_are_rounded_up_and_never_down() {
        let round = |bytes| ApproxBytes::of(bytes).bytes();
        assert_eq!([0, 1, 16, 17, 65_536].map(round), [0, 16, 16, 32, 65_536]);
        assert_eq!(round((128 << 20) - 16), (128 << 20) - 16);
        assert_eq!([128 << 20, (128 << 20) + 1].map(round), [128 << 20, (128 << 20) + 4096]);
        assert_eq!(round(10 << 30), 10 << 30);
        assert_eq!(round(usize::MAX), (32 << 30) - 4096);
    }
}
