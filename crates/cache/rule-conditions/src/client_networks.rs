//! The condition `from`: networks of the client's address, such as `10.0.0.0/8`; `!` excludes one.
//!
//! Invariant: a client without a known address is in no network. Not here: which address a client has, which a
//! trusted proxy may name (`RequestClient`).

use crate::alternatives::lists_cover;
use ipnet::IpNet;
use std::net::IpAddr;

/// A list of networks: an address must be in one of them, and in none of those written with `!`.
#[derive(Clone, Debug, Default)]
pub struct ClientNetworks {
    any: Vec<IpNet>,
    none: Vec<IpNet>,
}

impl ClientNetworks {
    /// Reads the networks; the error is a message for the operator.
    pub(crate) fn read(words: &[String]) -> Result<ClientNetworks, String> {
        let mut all = ClientNetworks::default();
        for word in words {
            match word.strip_prefix('!') {
                Some(word) => all.none.push(named(word)?),
                None => all.any.push(named(word)?),
            }
        }
        Ok(all)
    }

    /// Whether there are no networks, so that every client fits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    /// Whether all clients that fit `other` fit these.
    pub(crate) fn cover(&self, other: &ClientNetworks) -> bool {
        let contains = |one: &IpNet, other: &IpNet| one.contains(other);
        lists_cover((&self.any, &self.none), (&other.any, &other.none), contains)
    }

    /// Whether a client with this address fits.
    pub(crate) fn fit(&self, address: Option<IpAddr>) -> bool {
        let address = address.map(|address| address.to_canonical());
        let is_in = |all: &[IpNet]| {
            address.is_some_and(|address| all.iter().any(|network| network.contains(&address)))
        };
        (self.any.is_empty() || is_in(&self.any)) && !is_in(&self.none)
    }
}

fn named(word: &str) -> Result<IpNet, String> {
    network(word).ok_or(format!("{word:?}: write for instance 10.0.0.0/8 or 2001:db8::/32"))
}

/// Reads a network or an address. An IPv4 address in IPv6 form is an IPv4 address.
pub fn network(word: &str) -> Option<IpNet> {
    // Not with IpNet's own parser, which accepts addresses that the standard library rejects.
    let (address, bits) = match word.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (word, None),
    };
    let address = address.parse::<IpAddr>().ok()?.to_canonical();
    match bits {
        None => Some(IpNet::from(address)),
        Some(bits) => IpNet::new(address, bits.parse().ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<ClientNetworks, String> {
        ClientNetworks::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn networks_and_exceptions() {
        let office = read(&["192.0.2.0/24", "2001:db8::/32", "!192.0.2.9"]).unwrap();
        for (address, right) in [
            ("192.0.2.1", true),
            ("192.0.2.9", false),
            ("192.0.3.1", false),
            ("::ffff:192.0.2.1", true),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
            // The same bits as 192.0.2.1, but of IPv6.
            ("c000:201::", false),
        ] {
            assert_eq!(office.fit(Some(address.parse().unwrap())), right, "{address}");
        }
        assert!(!office.fit(None));
        let others = read(&["!10.0.0.0/8"]).unwrap();
        assert!(others.fit(None) && others.fit(Some([192, 0, 2, 1].into())));
        assert!(!others.fit(Some([10, 1, 2, 3].into())));
        assert!(read(&["0.0.0.0/0"]).unwrap().fit(Some([9, 9, 9, 9].into())));
        for wrong in ["10.0.0.0/33", "::/129", "unix", "10.0.0", "1.2.3.4/x"] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
    }
}
