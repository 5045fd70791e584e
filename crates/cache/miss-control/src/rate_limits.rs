//! The rate of requests of each client under each limit, and of each ticket: GCRA (generic cell rate algorithm) in a table
//! of fixed size.
//!
//! An entry is 16 bytes: a 64-bit tag, and the time at which the client has its whole burst again. A request is
//! allowed while that time is less than the burst away, and moves it on by one interval; a refused request moves
//! nothing. 8 entries are a set. In a full set, the entry whose limit ends first gives way; if that had not ended,
//! it is counted. The hash is keyed: no client can choose its set. IPv6 addresses count by /64.
//!
//! The sketch in [`ClientTable`](crate::ClientTable) cannot serve: it overestimates, so other clients would refuse a
//! request here. This table forgets instead: under more clients than entries, one may get a new burst.
//! A lock guards a part of the sets, for a few comparisons; no other lock is taken under it.

use crate::clients::address_number;
use crate::pace::{RequestRate, nanoseconds};
use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ENTRIES: usize = 8;
/// The most parts, each with a lock.
const PARTS_MAX: usize = 64;

#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u64,
    /// When the whole burst is available again, in nanoseconds. 0: empty.
    full_at: u64,
}

type EntrySet = [Entry; ENTRIES];

/// The rates of all clients.
pub struct RateTable<S> {
    hasher: S,
    parts: Box<[Mutex<Box<[EntrySet]>>]>,
    replaced: AtomicU64,
}

impl<S> fmt::Debug for RateTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateTable").finish_non_exhaustive()
    }
}

impl<S: BuildHasher> RateTable<S> {
    /// An empty table for about so many clients (`limits.rate_limit_entries`). `hasher` has a secret key.
    pub fn new(hasher: S, entries: usize) -> RateTable<S> {
        let sets = (entries / ENTRIES).max(1);
        let parts = sets.min(PARTS_MAX);
        let part =
            || Mutex::new(vec![EntrySet::default(); sets.div_ceil(parts)].into_boxed_slice());
        let parts = std::iter::repeat_with(part).take(parts).collect();
        RateTable { hasher, parts, replaced: AtomicU64::new(0) }
    }

    /// Counts a request of a client under the limit with this number. A client without an address counts as one.
    ///
    /// # Errors
    /// The client has reached the limit: the time until its next request is allowed.
    pub fn count(
        &self,
        client: (u64, Option<IpAddr>),
        rate: RequestRate,
        now: Duration,
    ) -> Result<(), Duration> {
        let now = nanoseconds(now);
        self.with_set(client, |set, tag, known| {
            let found = known.unwrap_or_else(|| {
                let ends_first = (0..ENTRIES).min_by_key(|at| set[*at].full_at).unwrap_or_default();
                if set[ends_first].full_at > now {
                    self.replaced.fetch_add(1, Ordering::Relaxed);
                }
                ends_first
            });
            let full_at = known.map_or(now, |at| set[at].full_at);
            let full_at = rate.count(full_at, now).map_err(Duration::from_nanos)?;
            set[found] = Entry { tag, full_at };
            Ok(())
        })
    }

    /// Whether a request of a client would be allowed. It is not counted.
    ///
    /// # Errors
    /// As for [`count`](Self::count).
    pub fn check(
        &self,
        client: (u64, Option<IpAddr>),
        rate: RequestRate,
        now: Duration,
    ) -> Result<(), Duration> {
        let now = nanoseconds(now);
        self.with_set(client, |set, _, known| {
            let full_at = known.map_or(now, |at| set[at].full_at);
            rate.count(full_at, now).map(drop).map_err(Duration::from_nanos)
        })
    }

    /// Locks the set of a client. `look` gets the set, the client's tag, and its place in the set if it is there.
    fn with_set<T>(
        &self,
        (limit, address): (u64, Option<IpAddr>),
        look: impl FnOnce(&mut EntrySet, u64, Option<usize>) -> T,
    ) -> T {
        let number =
            address.map(|address| (address.to_canonical().is_ipv6(), address_number(address)));
        let hash = self.hasher.hash_one((limit, number));
        let part = &self.parts[(hash >> 32) as usize % self.parts.len()];
        let mut sets = part.lock().unwrap_or_else(PoisonError::into_inner);
        let at = hash as u32 as usize % sets.len();
        let set = &mut sets[at];
        let tag = self.hasher.hash_one((hash, limit, number));
        let known = set.iter().position(|entry| entry.tag == tag && entry.full_at != 0);
        look(set, tag, known)
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let sets = |part: &Mutex<Box<[EntrySet]>>| {
            size_of_val(&**part.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.parts.iter().map(sets).sum()
    }

    /// How often a client was forgotten before its limit ended, because its set was full.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::RandomState;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn table(entries: usize) -> RateTable<RandomState> {
        RateTable::new(RandomState::new(), entries)
    }

    fn v4(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    fn v6(network: u64, interface: u64) -> Option<IpAddr> {
        let bits = u128::from(network) << 64 | u128::from(interface);
        Some(IpAddr::V6(Ipv6Addr::from_bits(bits)))
    }

    const TEN_A_MINUTE: RequestRate = RequestRate { interval: Duration::from_secs(6), burst: 5 };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_burst_is_allowed_and_then_the_rate() {
        let table = table(64);
        let count = |seconds: u64| table.count((1, v4(7)), TEN_A_MINUTE, at(seconds));
        for n in 0..5 {
            assert_eq!(count(100), Ok(()), "{n}");
        }
        assert_eq!(count(100), Err(at(6)));
        assert_eq!(count(103), Err(at(3)), "a refused request costs nothing");
        let check = |seconds: u64| table.check((1, v4(7)), TEN_A_MINUTE, at(seconds));
        assert_eq!([check(103), check(106), check(106)], [Err(at(3)), Ok(()), Ok(())]);
        assert_eq!(table.check((1, v4(8)), TEN_A_MINUTE, at(100)), Ok(()));
        assert_eq!((count(106), count(106)), (Ok(()), Err(at(6))));
        assert_eq!(count(50), Err(at(6)), "the clock was set back");
        assert_eq!(count(1_000), Ok(()));
        let allowed = (1_000..2_000).filter(|second| count(*second).is_ok()).count();
        assert_eq!(allowed, 4 + 999 / 6);
    }

    #[test]
    fn clients_and_limits_count_alone_and_a_64_network_as_one() {
        let table = table(4_096);
        let rate = RequestRate { interval: at(60), burst: 1 };
        let count = |limit, address| table.count((limit, address), rate, at(1)).is_ok();
        assert!(count(1, v4(1)) && !count(1, v4(1)));
        assert!(count(1, v4(2)) && count(2, v4(1)) && count(1, None) && !count(1, None));
        assert!(count(1, v6(9, 1)) && !count(1, v6(9, 2)) && count(1, v6(10, 1)));
        let mapped = Some(Ipv4Addr::from_bits(2).to_ipv6_mapped().into());
        assert!(table.count((1, mapped), rate, at(1)).is_err());
    }

    #[test]
    fn a_million_addresses_take_no_more_memory_and_never_hide_a_busy_one() {
        let table = table(65_536);
        let sets: usize = table.parts.iter().map(|part| part.lock().unwrap().len()).sum();
        assert_eq!(sets * size_of::<EntrySet>(), 1 << 20);
        let slow = RequestRate { interval: at(60), burst: 30 };
        let victim = v4(0);
        (0..30).for_each(|_| table.count((1, victim), slow, at(0)).unwrap());
        for number in 1..=1_000_000 {
            let _ = table.count((1, v4(number)), slow, at(1));
        }
        assert!(table.replaced() > 900_000);
        // Its limit ends last, so the others give way to each other.
        assert!(table.count((1, victim), slow, at(1)).is_err());
    }

    proptest! {
        /// Never more than the burst and the rate allow, in any window; and as many, if they come evenly.
        #[test]
        fn no_window_has_more_than_its_share(
            burst in 1_u32..20,
            interval_ms in 1_u64..5_000,
            steps in proptest::collection::vec(0_u64..3_000, 1..200),
        ) {
            let (table, rate) =
                (table(8), RequestRate { interval: Duration::from_millis(interval_ms), burst });
            let (mut now, mut allowed) = (1_u64, Vec::new());
            for step in steps {
                now += step;
                match table.count((1, v4(1)), rate, Duration::from_millis(now)) {
                    Ok(()) => allowed.push(now),
                    Err(wait) => {
                        prop_assert!(wait <= rate.interval);
                        // At that moment it would have been allowed.
                        prop_assert!(!wait.is_zero());
                    }
                }
            }
            for (at, first) in allowed.iter().enumerate() {
                for (further, last) in allowed[at..].iter().enumerate() {
                    let share = u64::from(burst) + (last - first) / interval_ms;
                    prop_assert!((further as u64) < share);
                }
            }
        }
    }
}
