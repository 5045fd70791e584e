//! What things cost: the bytes that the heap takes for them, and the limits of a store.
//!
//! Every byte the store holds is counted: payloads, pages, keys, both directions of the dependency index,
//! names, the page map, the ghost table, remembered changes. Sizes are those that a general-purpose
//! allocator hands out (16-byte steps, 8 bytes of its own), not those asked for. What is not counted: leases
//! out and fills in progress, whose number the caller's limit on concurrent requests bounds, and what
//! remembered predicates hold ([`Limits::predicates_max`]).
//!
//! The cost lines, shown by `tests/heap.rs`: see [`PAGE_BYTES_TYPICAL`], [`EDGE_BYTES_TYPICAL`],
//! [`NAME_BYTES_TYPICAL`].

use crate::page::fixed_bytes;

/// What a page two directories deep costs beside its payload, its key's bytes and its tags: at most this many
/// bytes, typically. Each directory more costs as much as a tag.
pub const PAGE_BYTES_TYPICAL: usize = 195;

/// What one more tag on a page costs, where the tag exists: at most this many bytes, typically.
pub const EDGE_BYTES_TYPICAL: usize = 18;

/// What one more tag on a page costs that no other page has: at most this many bytes, typically.
pub const NAME_BYTES_TYPICAL: usize = 40;

/// The bounds of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Everything the store holds, in bytes. Pages are evicted to stay within.
    pub budget_bytes: usize,
    /// One page with its key, in bytes; never more than half of the budget, whatever is set here.
    pub page_bytes_max: usize,
    /// Different tags of one page.
    pub tags_max: usize,
    /// Bytes of one tag.
    pub tag_bytes_max: usize,
    /// Variants of one key; one more displaces the oldest.
    pub variants_max: usize,
    /// Changed names that are remembered for renders still out (rule 4).
    pub changes_remembered_max: usize,
    /// Names that may be open (unsettled) at once; over it, a change opens its whole site.
    pub opens_max: usize,
    /// Changes by predicate that are remembered for renders still out; over it, older renders are refused.
    pub predicates_max: usize,
    /// Pages of one owner; one more displaces the oldest.
    pub owner_pages_max: usize,
    /// Keys of pages dropped or marked that are kept to be rendered anew; 0 keeps none.
    pub rewarm_pages_max: usize,
    /// Uses from which a page is worth rendering anew; they are counted to three, and two more for a page
    /// that has stayed through an eviction.
    pub rewarm_uses_min: u8,
    /// Pages that a change drops in one hold of the index lock (about a microsecond each), and before it lets
    /// others have the processor: with one core, hits wait for so long.
    pub sweep_pages: usize,
}

impl Limits {
    /// Pages whose edges are taken out in one hold: a few microseconds each.
    pub(crate) fn bury_pages(&self) -> usize {
        (self.sweep_pages / 4).max(1)
    }

    /// Places looked at in one hold for pages that nobody asks for: some hundred nanoseconds each, a
    /// microsecond where the page leaves.
    pub(crate) fn round_pages(&self) -> usize {
        (self.sweep_pages / 2).max(1)
    }
}

impl Limits {
    /// The defaults for a budget in bytes.
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

/// What the heap takes for an allocation of `bytes`; for a [`Payload`](crate::Payload) to count itself with.
pub const fn heap(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let rounded = (bytes + 8 + 15) & !15;
    if rounded < 32 { 32 } else { rounded }
}

/// What the heap takes for a page with so many bytes in it, its key's among them, and its payload.
pub(crate) fn page_bytes<P>(bytes: usize, payload_bytes: usize) -> usize {
    heap((fixed_bytes::<P>() + bytes).next_multiple_of(align_of::<usize>())) + payload_bytes
}

/// Bytes of heap in three bytes, rounded up: to what allocators hand out, from 128 MiB to 4 KiB. At most 32 GiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roughly([u8; 3]);

impl Roughly {
    const FINE: usize = 16;
    const COARSE: usize = 4 << 10;
    /// Set where the steps are the coarse ones.
    const IS_COARSE: u32 = 1 << 23;

    pub(crate) fn of(bytes: usize) -> Roughly {
        let fine = u32::try_from(bytes.div_ceil(Self::FINE)).ok();
        let steps = fine.filter(|steps| *steps < Self::IS_COARSE).unwrap_or_else(|| {
            let coarse = u32::try_from(bytes.div_ceil(Self::COARSE)).unwrap_or(u32::MAX);
            coarse.min(Self::IS_COARSE - 1) | Self::IS_COARSE
        });
        let [_, high, middle, low] = steps.to_be_bytes();
        Roughly([high, middle, low])
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

/// What the heap takes for a hash table with room for `capacity` entries of `entry_bytes`.
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
    use super::Roughly;

    #[test]
    fn bytes_are_rounded_up_and_never_down() {
        let round = |bytes| Roughly::of(bytes).bytes();
        assert_eq!([0, 1, 16, 17, 65_536].map(round), [0, 16, 16, 32, 65_536]);
        assert_eq!(round((128 << 20) - 16), (128 << 20) - 16);
        assert_eq!([128 << 20, (128 << 20) + 1].map(round), [128 << 20, (128 << 20) + 4096]);
        assert_eq!(round(10 << 30), 10 << 30);
        assert_eq!(round(usize::MAX), (32 << 30) - 4096);
    }
}
