//! How many connections each address has open, and how many requests over HTTP/2, so that nobody takes all that
//! there is (`limits.connections_per_address`, `limits.http2_streams_per_address`).
//!
//! Of IPv6 a network of 64 bits counts as one address: that is what a single subscriber has. Behind a
//! trusted proxy the connections are the proxy's and not counted; where it names its clients by the PROXY
//! protocol, theirs are. One lock, held to count one in or out, once for each connection and never for a
//! request; an entry for each address that has one open, so no more than `limits.connections`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections of each address.
#[derive(Default)]
pub struct PerAddress {
    open: Mutex<HashMap<IpAddr, Open>>,
}

/// The connections and requests of one address.
#[derive(Default)]
struct Open {
    connections: usize,
    /// Requests over HTTP/2.
    requests: Arc<AtomicUsize>,
}

/// The requests over HTTP/2 of the address that a connection comes from.
#[derive(Clone)]
pub struct AddressRequests(Arc<AtomicUsize>);

impl AddressRequests {
    /// Counts a request in; `None` where the address has `most` already.
    pub fn enter(&self, most: usize) -> Option<AddressRequest> {
        let more = |count: usize| (count < most).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(AddressRequest(self.0.clone()))
    }
}

/// Counts a request out when it is dropped.
pub struct AddressRequest(Arc<AtomicUsize>);

impl Drop for AddressRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PerAddress {
    /// Counts one in; `None` where the address has `most` already.
    pub fn enter(self: &Arc<PerAddress>, peer: SocketAddr, most: usize) -> Option<Counted> {
        let address = counted_as(peer.ip());
        let mut open = self.open();
        let count = &mut open.entry(address).or_default().connections;
        if *count >= most {
            // Where none is allowed it may just have been made.
            if *count == 0 {
                open.remove(&address);
            }
            return None;
        }
        *count += 1;
        drop(open);
        Some(Counted { all: self.clone(), address })
    }

    /// The requests of an address that has a connection which was counted in.
    pub fn requests(&self, peer: SocketAddr) -> Option<AddressRequests> {
        let open = self.open();
        open.get(&counted_as(peer.ip())).map(|open| AddressRequests(open.requests.clone()))
    }

    /// Addresses that have one open.
    pub fn addresses(&self) -> usize {
        self.open().len()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts one out when it is dropped.
pub struct Counted {
    all: Arc<PerAddress>,
    address: IpAddr,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.all.open().entry(self.address) {
            entry.get_mut().connections -= 1;
            if entry.get().connections == 0 {
                entry.remove();
            }
        }
    }
}

fn counted_as(address: IpAddr) -> IpAddr {
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
