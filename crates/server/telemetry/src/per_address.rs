//! Counts the open connections and the HTTP/2 requests of each address, so that no single address can
//! use up the server (`limits.connections_per_address`, `limits.http2_streams_per_address`).
//!
//! For IPv6, a /64 network counts as one address, because a single subscriber has that. Connections of
//! a trusted proxy do not count. If it sends the PROXY protocol, its clients' addresses count instead.
//! One lock, held to increment or decrement a count, once per connection and never per request. There
//! is one entry per address with an open connection, so at most `limits.connections`.

use miss_control::{ClientTable, RateTable};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::RandomState;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// The counts of connections and requests of all addresses.
#[derive(Default)]
pub struct PerAddress {
    open: Mutex<HashMap<IpAddr, Open>>,
    /// The evidence about clients: their hits and misses, of all sites. Allocated at the first connection.
    pub clients: Arc<LazyLock<ClientTable<RandomState>>>,
    /// The rates of clients under the limits of rules. Allocated at the first request that counts.
    rates: OnceLock<RateTable<RandomState>>,
}

impl std::fmt::Debug for PerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerAddress").finish_non_exhaustive()
    }
}

/// The connections and requests of one address.
#[derive(Default)]
struct Open {
    connections: usize,
    /// HTTP/2 requests in progress.
    requests: Arc<AtomicUsize>,
}

/// The HTTP/2 requests of the address that a connection comes from.
#[derive(Clone)]
pub struct AddressRequests(Arc<AtomicUsize>);

impl AddressRequests {
    /// Counts a request; `None` if the address has `most` already.
    pub fn enter(&self, most: usize) -> Option<AddressRequest> {
        let more = |count: usize| (count < most).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(AddressRequest(self.0.clone()))
    }
}

/// A counted request; dropping it decrements the count.
pub struct AddressRequest(Arc<AtomicUsize>);

impl Drop for AddressRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PerAddress {
    /// The counts of another site of the process, for which the evidence about clients counts, too.
    #[must_use]
    pub fn of_other_site(&self) -> PerAddress {
        PerAddress { clients: self.clients.clone(), ..PerAddress::default() }
    }

    /// Counts a connection; `None` if the address has `most` already.
    pub fn enter(self: &Arc<PerAddress>, peer: SocketAddr, most: usize) -> Option<ConnectionGuard> {
        let address = subscriber(peer.ip());
        let mut open = self.open();
        let count = &mut open.entry(address).or_default().connections;
        if *count >= most {
            // If `most` is 0, the entry may have just been created.
            if *count == 0 {
                open.remove(&address);
            }
            return None;
        }
        *count += 1;
        drop(open);
        Some(ConnectionGuard { all: self.clone(), address })
    }

    /// The rates of clients under the limits of rules. `entries`: its size, if it is not allocated yet.
    pub fn rates(&self, entries: usize) -> &RateTable<RandomState> {
        self.rates.get_or_init(|| RateTable::new(RandomState::new(), entries))
    }

    /// How often a client was forgotten before its limit ended (`limits.rate_limit_entries`).
    pub fn rates_replaced(&self) -> u64 {
        self.rates.get().map_or(0, RateTable::replaced)
    }

    /// The requests of an address; `None` unless it has a counted connection.
    pub fn requests(&self, peer: SocketAddr) -> Option<AddressRequests> {
        let open = self.open();
        open.get(&subscriber(peer.ip())).map(|open| AddressRequests(open.requests.clone()))
    }

    /// The number of addresses with an open connection.
    pub fn addresses(&self) -> usize {
        self.open().len()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counted connection; dropping it decrements the count.
pub struct ConnectionGuard {
    all: Arc<PerAddress>,
    address: IpAddr,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.all.open().entry(self.address) {
            entry.get_mut().connections -= 1;
            if entry.get().connections == 0 {
                entry.remove();
            }
        }
    }
}

/// The part of an address that a subscriber has: for IPv6 a /64 network.
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 1)
    }

    #[test]
    fn each_address_has_so_many_and_nothing_is_left_of_them() {
        let all = Arc::new(PerAddress::default());
        let held: Vec<_> = (0..3).map(|_| all.enter(at("192.0.2.1"), 3).unwrap()).collect();
        assert!(all.enter(at("192.0.2.1"), 3).is_none());
        assert!(all.enter(at("::ffff:192.0.2.1"), 3).is_none(), "the same, by another name");
        let other = all.enter(at("192.0.2.2"), 3);
        assert!(other.is_some() && all.addresses() == 2);
        drop(held);
        assert!(all.enter(at("192.0.2.1"), 3).is_some());
        assert!(all.enter(at("192.0.2.3"), 0).is_none());
        drop(other);
        assert_eq!(all.addresses(), 0);
    }

    #[test]
    fn requests_are_counted_over_all_connections_of_an_address() {
        let all = Arc::new(PerAddress::default());
        assert!(all.requests(at("192.0.2.1")).is_none(), "none was counted in");
        let _held = [1, 2].map(|_| all.enter(at("192.0.2.1"), 3).unwrap());
        let [one, other] = [1, 2].map(|_| all.requests(at("192.0.2.1")).unwrap());
        let held = one.enter(1).unwrap();
        assert!(other.enter(1).is_none());
        drop(held);
        assert!(other.enter(1).is_some());
    }

    #[test]
    fn of_ipv6_a_network_is_one() {
        let all = Arc::new(PerAddress::default());
        let _held = all.enter(at("2001:db8:0:1::1"), 1).unwrap();
        assert!(all.enter(at("2001:db8:0:1:ffff::2"), 1).is_none());
        assert!(all.enter(at("2001:db8:0:2::1"), 1).is_some());
    }
}
