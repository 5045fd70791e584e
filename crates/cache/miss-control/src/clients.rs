//! The evidence about clients: the credit of addresses, the rates of all, and the level that follows. The size is fixed.
//!
//! **Credit**: 1 for each hit or file, 60 at most, halved in ten minutes; a miss costs 3. An address with the price
//! of a miss, seen for two seconds, is known. It is kept in 16,384 buckets of 8 entries of 8 bytes (1 MiB): a 32-bit
//! tag, the credit, the seconds of first and last use. In a full bucket the least credit gives way. A network
//! reaches 64 buckets only, so it cannot fill the table. The hash is keyed. Under overload more credit is first.
//!
//! **Rates** of addresses and sessions are in a [`RateSketch`]: a full one puts all last alike. Tickets, which would all
//! be worthless then, are in a [`RateTable`]: the least used gives way.
//!
//! | race | what happens |
//! |---|---|
//! | two misses spend the same credit | the second compares again, and finds the rest |
//! | two addresses take one entry | the last one has it; the other is unknown |
//!
//! Everything is a relaxed atomic: an entry is one word, and nothing else depends on its order.

use crate::group::ClientLevel;
use crate::pace::RequestRate;
use crate::rate_limits::RateTable;
use crate::rates::RateSketch;
use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const BUCKETS: usize = 16_384;
const ENTRIES: usize = 8;
/// The buckets that one network reaches.
const REACH: u64 = 64;
/// The most credit of an address.
const CREDIT_MAX: u32 = 60;
/// The credit that a miss costs.
pub(crate) const PRICE: u32 = 3;
/// After this time credit is halved.
const HALVED_AFTER: u64 = 600;
/// An address with credit is known after this time: a crawler that fetches an image first must wait.
const KNOWN_AFTER: u64 = 2;
/// The seconds in an entry are modulo this. An entry that old has lost all its credit long before; its
/// address is counted as new, or gets an old credit once.
const SECONDS: u64 = 1 << 13;
/// One entry in so many gives way to an address with less credit, so that old ones do not stay for ever.
const GIVES_WAY: u64 = 8;

/// An address without credit: ten misses at once, and one in two seconds for long.
const ADDRESS_RATE: (u16, u64) = (10, 10);
/// A ticket: twenty misses at once, and one in ten seconds for long.
const TICKET_RATE: RequestRate = RequestRate { interval: Duration::from_secs(10), burst: 20 };
/// The tickets, marks and addresses with marks whose misses are counted: those of ten seconds, if 400 come each second.
const TICKETS: usize = 4_096;
/// A confirmed session: forty misses at once, and two a second for long.
const SESSION_RATE: (u16, u64) = (40, 10);
/// The requests of a session at once with which it is still known, and a tenth of them each second for long. Beyond,
/// it is worth what its address is: a crawler with an account must not come before visitors.
const SESSION_KNOWN: u16 = 160;

/// The network of an address in reports: /24, or /48 for IPv6. Never a whole address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientNetwork {
    /// The first 24 bits of an IPv4 address.
    V4(u32),
    /// The first 48 bits of an IPv6 address.
    V6(u64),
}

impl ClientNetwork {
    /// The network of an address.
    pub fn of(address: IpAddr) -> ClientNetwork {
        match address.to_canonical() {
            IpAddr::V4(address) => ClientNetwork::V4(address.to_bits() & 0xffff_ff00),
            IpAddr::V6(address) => ClientNetwork::V6((address.to_bits() >> 80) as u64),
        }
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ClientNetwork::V4(bits) => write!(f, "{}/24", std::net::Ipv4Addr::from_bits(bits)),
            ClientNetwork::V6(bits) => {
                write!(f, "{}/48", std::net::Ipv6Addr::from_bits(u128::from(bits) << 80))
            }
        }
    }
}

/// The address of a client as a number; for IPv6 that of its /64 network, because a single subscriber
/// has that.
pub fn address_number(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

/// One entry, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AddressRecord {
    tag: u32,
    credit: u32,
    first: u64,
    last: u64,
}

impl AddressRecord {
    fn unpack(word: u64) -> Option<AddressRecord> {
        (word != 0).then_some(AddressRecord {
            tag: (word >> 32) as u32,
            credit: (word >> 26) as u32 & 63,
            first: word >> 13 & (SECONDS - 1),
            last: word & (SECONDS - 1),
        })
    }

    fn pack(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.credit) << 26 | self.first << 13 | self.last
    }

    /// Its credit at this second: halved for each ten minutes since its last use, and in between on a
    /// straight line.
    fn credit_at(self, second: u64) -> u32 {
        let age = age(self.last, second);
        let halved = u64::from(self.credit) >> (age / HALVED_AFTER).min(63);
        (halved - halved * (age % HALVED_AFTER) / (2 * HALVED_AFTER)) as u32
    }
}

/// The seconds from an earlier one.
fn age(since: u64, second: u64) -> u64 {
    second.wrapping_sub(since) % SECONDS
}

#[repr(align(64))]
struct Bucket([AtomicU64; ENTRIES]);

/// The evidence about the addresses of clients.
pub struct ClientTable<S> {
    hasher: S,
    buckets: Box<[Bucket]>,
    rates: RateSketch,
    ticket_rates: RateTable<S>,
    session_rates: RateSketch,
}

/// The evidence that a request shows about its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownEvidence {
    /// The client's address; none over a Unix socket.
    pub address: Option<IpAddr>,
    /// The number of a session that the application has confirmed.
    pub session: Option<u64>,
    /// The number of a valid ticket.
    pub ticket: Option<u64>,
    /// Whether the ticket was issued to this address.
    pub is_own_ticket: bool,
    /// The number of the signed mark of a client that has sent a write just before.
    pub written: Option<u64>,
    /// Whether the challenge has let the client pass.
    pub has_passed: bool,
    /// Whether the operator has exempted the client.
    pub is_exempt: bool,
}

impl<S> fmt::Debug for ClientTable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTable").finish_non_exhaustive()
    }
}

/// The place of an address in the table, and its tag there.
struct AddressPlace<'a> {
    entries: &'a [AtomicU64; ENTRIES],
    tag: u32,
    hash: u64,
}

impl<S: BuildHasher + Clone + Default> Default for ClientTable<S> {
    fn default() -> ClientTable<S> {
        ClientTable::new(S::default())
    }
}

impl<S: BuildHasher> ClientTable<S> {
    /// An empty table. `hasher` has a secret key.
    pub fn new(hasher: S) -> ClientTable<S>
    where
        S: Clone,
    {
        let bucket = || Bucket(Default::default());
        ClientTable {
            hasher: hasher.clone(),
            buckets: std::iter::repeat_with(bucket).take(BUCKETS).collect(),
            rates: RateSketch::new(ADDRESS_RATE.0, ADDRESS_RATE.1),
            ticket_rates: RateTable::new(hasher, TICKETS),
            session_rates: RateSketch::new(SESSION_RATE.0, SESSION_RATE.1),
        }
    }

    fn place_of(&self, address: IpAddr) -> AddressPlace<'_> {
        let network = self.hasher.hash_one(ClientNetwork::of(address));
        let hash = self.hasher.hash_one((address_number(address), 0));
        let bucket = network.wrapping_add(hash % REACH) % BUCKETS as u64;
        // A tag of 0 would look like an empty entry.
        let tag = (hash >> 32) as u32 | 1;
        AddressPlace { entries: &self.buckets[bucket as usize].0, tag, hash }
    }

    /// Adds the hits of an address to its credit.
    pub fn add(&self, address: IpAddr, hits: u32, now: Duration) {
        let (place, second) = (self.place_of(address), now.as_secs() % SECONDS);
        let hits = hits.min(CREDIT_MAX);
        let mut least: Option<(&AtomicU64, u64, u32)> = None;
        for entry in place.entries {
            let word = entry.load(Ordering::Relaxed);
            let record = AddressRecord::unpack(word);
            if let Some(record) = record.filter(|record| record.tag == place.tag) {
                let credit = (record.credit_at(second) + hits).min(CREDIT_MAX);
                let record = AddressRecord { credit, last: second, ..record };
                // Of two that add at once, one may be lost.
                let _ = exchange(entry, word, record.pack());
                return;
            }
            let credit = record.map_or(0, |record| record.credit_at(second) + 1);
            if least.is_none_or(|(.., fewest)| credit < fewest) {
                least = Some((entry, word, credit));
            }
        }
        // An empty entry counts 0, any other its credit and 1.
        let Some((entry, word, credit)) = least else { return };
        let drawn =
            (place.hash >> 16).wrapping_add(now.as_millis() as u64).is_multiple_of(GIVES_WAY);
        if hits + 1 >= credit || drawn {
            let new = AddressRecord { tag: place.tag, credit: hits, first: second, last: second };
            let _ = exchange(entry, word, new.pack());
        }
    }

    /// Whether the address has the credit for a miss.
    pub fn is_known(&self, address: IpAddr, now: Duration) -> bool {
        self.known_credit(address, now).is_some()
    }

    /// The credit of an address that is known.
    fn known_credit(&self, address: IpAddr, now: Duration) -> Option<u32> {
        let (place, second) = (self.place_of(address), now.as_secs() % SECONDS);
        let mut words = place.entries.iter().map(|entry| entry.load(Ordering::Relaxed));
        let record = words.find_map(|word| self.known(word, place.tag, second))?;
        Some(record.credit_at(second))
    }

    fn known(&self, word: u64, tag: u32, second: u64) -> Option<AddressRecord> {
        AddressRecord::unpack(word).filter(|record| {
            record.tag == tag
                && age(record.first, second) >= KNOWN_AFTER
                && record.credit_at(second) >= PRICE
        })
    }

    /// Counts a miss of an address: takes its price from the credit, or else counts it for the rate.
    pub fn note_miss(&self, address: IpAddr, now: Duration) {
        let (place, second) = (self.place_of(address), now.as_secs() % SECONDS);
        for entry in place.entries {
            let mut word = entry.load(Ordering::Relaxed);
            while let Some(record) = self.known(word, place.tag, second) {
                let credit = record.credit_at(second) - PRICE;
                let record = AddressRecord { credit, last: second, ..record };
                match exchange(entry, word, record.pack()) {
                    Ok(()) => return,
                    Err(other) => word = other,
                }
            }
        }
        self.rates.note(&self.hasher, address_number(address), now);
    }

    /// Whether an unknown address sends more misses than one visitor would.
    pub fn is_over_rate(&self, address: IpAddr, now: Duration) -> bool {
        self.rates.is_over(&self.hasher, address_number(address), now)
    }

    /// The level of a client that shows this evidence: the best for which it has any.
    pub fn level(&self, shown: &ShownEvidence, now: Duration) -> ClientLevel {
        self.identity(shown, now).0
    }

    /// The level of a client, and the identity for which its misses count.
    fn identity(&self, shown: &ShownEvidence, now: Duration) -> (ClientLevel, CountedAs) {
        let key = &self.hasher;
        if shown.is_exempt {
            return (ClientLevel::Confirmed, CountedAs::Nobody);
        }
        if let Some(session) = shown.session {
            match self.session_rates.count(key, session, now) {
                count if count < SESSION_RATE.0 => {
                    return (ClientLevel::Confirmed, CountedAs::Session(session));
                }
                count if count < SESSION_KNOWN => {
                    return (ClientLevel::Known, CountedAs::Session(session));
                }
                _ => {}
            }
        }
        if let Some(mark) = shown.written
            && self.ticket_rates.check(self.mark(mark), TICKET_RATE, now).is_ok()
            && (shown.address.is_none()
                || self.ticket_rates.check(self.writer(shown), TICKET_RATE, now).is_ok())
        {
            return (ClientLevel::Known, CountedAs::Mark(mark));
        }
        if shown.address.is_some_and(|address| self.is_known(address, now)) {
            return (ClientLevel::Known, CountedAs::Address);
        }
        if let Some(ticket) = shown.ticket
            && self.ticket_rates.check((ticket, None), TICKET_RATE, now).is_ok()
        {
            let level = if shown.has_passed { ClientLevel::Passed } else { ClientLevel::Returned };
            return (level, CountedAs::Ticket(ticket));
        }
        let is_over = shown.address.is_some_and(|address| self.is_over_rate(address, now));
        let level = if is_over { ClientLevel::OverRate } else { ClientLevel::Unknown };
        (level, CountedAs::Address)
    }

    /// The credit by which a client of this level comes before others of it; 0 if the level has no such order. A ticket
    /// counts as the price of a miss: its client has paid for a page that it did not get. It does so for the address only
    /// to which it was issued, so copies of it are worth nothing at others.
    pub fn credit(&self, level: ClientLevel, shown: &ShownEvidence, now: Duration) -> u8 {
        if level != ClientLevel::Known {
            return 0;
        }
        let credit = shown.address.and_then(|address| self.known_credit(address, now));
        let paid = if shown.is_own_ticket { PRICE } else { 0 };
        // A session or a mark is worth one miss.
        (credit.unwrap_or(PRICE) + paid) as u8
    }

    /// Counts a miss of a client that shows this evidence, and returns its level and [credit](ClientTable::credit)
    /// before. It is counted for the identity by which the client has its level, so a visitor with a session or a ticket
    /// does not spend what an office shares.
    pub fn note_miss_of(&self, shown: &ShownEvidence, now: Duration) -> (ClientLevel, u8) {
        let (level, counted_as) = self.identity(shown, now);
        let credit = self.credit(level, shown, now);
        match counted_as {
            CountedAs::Session(session) => self.session_rates.note(&self.hasher, session, now),
            CountedAs::Mark(mark) => {
                self.note_ticket(self.mark(mark), now);
                self.note_ticket(self.writer(shown), now);
            }
            CountedAs::Ticket(ticket) => self.note_ticket((ticket, None), now),
            CountedAs::Address => {
                if let Some(address) = shown.address {
                    self.note_miss(address, now);
                }
            }
            CountedAs::Nobody => {}
        }
        (level, credit)
    }

    fn note_ticket(&self, ticket: (u64, Option<IpAddr>), now: Duration) {
        // Of two requests at once, the last one of the rate may be used twice.
        let _ = self.ticket_rates.count(ticket, TICKET_RATE, now);
    }

    /// A mark among the tickets, which have the same rate.
    fn mark(&self, mark: u64) -> (u64, Option<IpAddr>) {
        (self.hasher.hash_one((mark, "mark")), None)
    }

    /// The address of a client with a mark among the tickets. Each write gives another mark, so it has the same rate.
    fn writer(&self, shown: &ShownEvidence) -> (u64, Option<IpAddr>) {
        (self.hasher.hash_one("writer"), shown.address)
    }
}

/// The identity for which the misses of a client count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedAs {
    Session(u64),
    Mark(u64),
    Ticket(u64),
    Address,
    /// The operator has exempted it.
    Nobody,
}

fn exchange(entry: &AtomicU64, from: u64, to: u64) -> Result<(), u64> {
    entry.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::RandomState;
    use std::net::Ipv4Addr;

    fn table() -> ClientTable<RandomState> {
        ClientTable::new(RandomState::new())
    }

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_entry_is_one_word() {
        let record = AddressRecord { tag: u32::MAX, credit: 60, first: 8_191, last: 4_097 };
        assert_eq!(AddressRecord::unpack(record.pack()), Some(record));
        assert_eq!(AddressRecord::unpack(0), None);
        // 1 MiB, and twice 32 KiB; 64 KiB for tickets.
        assert_eq!(size_of::<Bucket>() * BUCKETS, 1 << 20);
        let table = table();
        for rates in [&table.rates, &table.session_rates] {
            assert_eq!(rates.bytes(), 32 << 10);
        }
        assert_eq!(table.ticket_rates.bytes(), 64 << 10);
    }

    #[test]
    fn an_address_with_hits_is_known_after_two_seconds_until_its_credit_is_spent() {
        let (table, address) = (table(), v4(0xc633_6401));
        table.add(address, 7, at(100));
        assert!(!table.is_known(address, at(101)), "too early");
        assert!(table.is_known(address, at(102)));
        for _ in 0..2 {
            assert!(table.is_known(address, at(102)));
            table.note_miss(address, at(102));
        }
        assert!(!table.is_known(address, at(102)));
        assert!(!table.is_known(v4(0xc633_6402), at(102)), "another address of the network");
    }

    #[test]
    fn credit_is_bounded_and_halved_in_ten_minutes() {
        let (table, address) = (table(), v4(1));
        for second in 0..100 {
            table.add(address, 60, at(second));
        }
        let spent = |now: Duration| {
            let before = (0..100).take_while(|_| {
                let known = table.is_known(address, now);
                if known {
                    table.note_miss(address, now);
                }
                known
            });
            before.count()
        };
        assert_eq!(spent(at(99 + 600)), 10, "30 of 60");
        let record = AddressRecord { tag: 1, credit: 60, first: 0, last: 0 };
        let credit: Vec<u32> = (0..10).map(|n| record.credit_at(n * 300)).collect();
        assert_eq!(credit, [60, 45, 30, 23, 15, 12, 7, 6, 3, 3]);
    }

    #[test]
    fn the_best_evidence_decides_and_is_spent() {
        let (table, address) = (table(), v4(9));
        let unknown = ShownEvidence { address: Some(address), ..ShownEvidence::default() };
        let level = |shown: &ShownEvidence| table.level(shown, at(100));
        let spend = |shown: &ShownEvidence, count: usize| {
            (0..count).for_each(|_| {
                table.note_miss_of(shown, at(100));
            });
        };
        assert_eq!(level(&ShownEvidence::default()), ClientLevel::Unknown);
        assert_eq!(level(&unknown), ClientLevel::Unknown);
        let ticket = ShownEvidence { ticket: Some(5), ..unknown };
        assert_eq!(level(&ticket), ClientLevel::Returned);
        // Shared by many clients, a ticket is worth no more than by one.
        for n in 0..20 {
            let other = ShownEvidence { address: Some(v4(n)), ..ticket };
            assert_eq!(level(&other), ClientLevel::Returned, "{n}");
            spend(&other, 1);
        }
        assert_eq!(level(&ticket), ClientLevel::Unknown, "the ticket is spent, not the address");
        spend(&unknown, 10);
        assert_eq!(level(&unknown), ClientLevel::OverRate);
        assert_eq!(level(&ticket), ClientLevel::OverRate);
        let session = ShownEvidence { session: Some(7), ..ticket };
        assert_eq!(level(&session), ClientLevel::Confirmed);
        spend(&session, 40);
        assert_eq!(level(&session), ClientLevel::Known, "a session has a rate");
        spend(&session, 120);
        assert_eq!(level(&session), ClientLevel::OverRate, "it is worth what its address is");
        let written = ShownEvidence { written: Some(5), ..unknown };
        assert_eq!(level(&written), ClientLevel::Known);
        spend(&written, 20);
        assert_eq!(level(&written), ClientLevel::OverRate, "a mark has the rate of a ticket");
        let again = ShownEvidence { written: Some(6), ..unknown };
        assert_eq!(level(&again), ClientLevel::OverRate, "another write renews nothing");
        let elsewhere = |shown| ShownEvidence { address: Some(v4(99)), ..shown };
        assert_eq!(level(&elsewhere(again)), ClientLevel::Known);
        assert_eq!(level(&elsewhere(written)), ClientLevel::Unknown, "it is spent everywhere");
        let passed = ShownEvidence { ticket: Some(6), has_passed: true, ..unknown };
        assert_eq!(level(&passed), ClientLevel::Passed);
        spend(&passed, 20);
        assert_eq!(level(&passed), ClientLevel::OverRate);
        assert_eq!(level(&ShownEvidence { has_passed: true, ..unknown }), ClientLevel::OverRate);
        let exempt = ShownEvidence { is_exempt: true, ..unknown };
        spend(&exempt, 100);
        assert_eq!(level(&exempt), ClientLevel::Confirmed);
    }

    #[test]
    fn the_credit_orders_known_clients_and_a_ticket_returns_the_price() {
        let (table, address) = (table(), v4(9));
        table.add(address, 8, at(10));
        let shown = ShownEvidence { address: Some(address), ..ShownEvidence::default() };
        assert_eq!(table.note_miss_of(&shown, at(20)), (ClientLevel::Known, 8));
        assert_eq!(table.credit(ClientLevel::Known, &shown, at(20)), 5);
        // Copied from another address, it adds nothing.
        let copied = ShownEvidence { ticket: Some(1), ..shown };
        assert_eq!(table.credit(ClientLevel::Known, &copied, at(20)), 5);
        let again = ShownEvidence { is_own_ticket: true, ..copied };
        assert_eq!(table.note_miss_of(&again, at(20)), (ClientLevel::Known, 8));
        // The rest is less than the price.
        assert_eq!(table.note_miss_of(&again, at(20)), (ClientLevel::Returned, 0));
        assert_eq!(table.note_miss_of(&shown, at(20)), (ClientLevel::Unknown, 0));
        let written = ShownEvidence { written: Some(7), ..shown };
        assert_eq!(table.note_miss_of(&written, at(20)), (ClientLevel::Known, 3));
    }

    /// Behind one address, a crawler spends the credit of the office, but no session and no ticket.
    #[test]
    fn an_office_keeps_its_sessions_and_tickets() {
        let (table, address) = (table(), v4(9));
        table.add(address, 60, at(10));
        let anyone = ShownEvidence { address: Some(address), ..ShownEvidence::default() };
        for second in 20..80 {
            for _ in 0..20 {
                table.note_miss_of(&anyone, at(second));
            }
        }
        assert_eq!(table.level(&anyone, at(80)), ClientLevel::OverRate);
        let colleague = ShownEvidence { session: Some(1), ..anyone };
        assert_eq!(table.level(&colleague, at(80)), ClientLevel::Confirmed);
        let visitor = ShownEvidence { ticket: Some(1), ..anyone };
        assert_eq!(table.level(&visitor, at(80)), ClientLevel::Returned);
    }

    /// The flood of `table.py`: 12 hits each, 500 addresses a second. Its figures were 23 % and 1 %.
    #[test]
    fn a_flood_of_addresses_does_not_push_visitors_out() {
        let lost = |attacker: fn(u32) -> IpAddr| {
            let table = table();
            let visitor = |n: u32| v4(0x0a00_0000 | n << 8 | 1);
            (0..1_000).for_each(|n| table.add(visitor(n), 12, at(0)));
            let mut number = 0;
            // 600,000 addresses in 20 minutes.
            for second in 0..1_200 {
                for _ in 0..500 {
                    number += 1;
                    table.add(attacker(number), 12, at(second));
                }
                // Each visitor has a hit in 15 s.
                (0..1_000).filter(|n| n % 15 == second as u32 % 15).for_each(|n| {
                    if table.is_known(visitor(n), at(second + 2)) {
                        table.add(visitor(n), 1, at(second));
                    }
                });
            }
            (0..1_000).filter(|n| !table.is_known(visitor(*n), at(1_202))).count()
        };
        let many = lost(|n| v4(0x5000_0000 + n * 256));
        let one =
            lost(|n| IpAddr::V6(((0x2001_0db8_0001_u128 << 80) | u128::from(n) << 64).into()));
        assert!(many < 250, "{many} of 1,000 visitors lost their entry");
        assert!(one < 15, "{one} of 1,000 visitors lost their entry to one network");
    }

    /// A subscriber has a whole /64, and a browser may use another address of it for each connection.
    #[test]
    fn the_addresses_of_an_ipv6_subscriber_are_one_client() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let (table, first) = (table(), address("2001:db8:1:2::3"));
        table.add(first, 10, at(10));
        assert!(table.is_known(address("2001:db8:1:2:ffff::9"), at(20)));
        assert!(!table.is_known(address("2001:db8:1:3::3"), at(20)));
        assert_eq!(address_number(address("::ffff:198.51.100.7")), u64::from(0xc633_6407_u32));
    }

    #[test]
    fn a_network_of_reports_is_no_whole_address() {
        let shown = |address: &str| ClientNetwork::of(address.parse().unwrap()).to_string();
        assert_eq!(shown("198.51.100.7"), "198.51.100.0/24");
        assert_eq!(shown("::ffff:198.51.100.7"), "198.51.100.0/24");
        assert_eq!(shown("2001:db8:1:2::3"), "2001:db8:1::/48");
    }
}
