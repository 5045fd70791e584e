//! The resolvers that `/etc/resolv.conf` names (resolv.conf(5)): the lines `nameserver ADDRESS`.
//!
//! Search lists and options are not read: all names that this program asks for are complete, and its timeouts
//! are its own. Without a usable line there is no server: the caller has to say so.

use std::net::{IpAddr, SocketAddr};

/// The port of a resolver (RFC 1035, section 4.2).
pub const DNS_PORT: u16 = 53;
/// The maximum number of resolvers. resolv.conf(5): "Up to MAXNS (currently 3)".
pub const SERVERS_MAX: usize = 3;

/// The resolvers of a file like `/etc/resolv.conf`, in its order. Addresses with a zone (`fe80::1%eth0`) are
/// left out.
pub fn name_servers(text: &str) -> Vec<SocketAddr> {
    let address = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
        Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, DNS_PORT))
    };
    text.lines().filter_map(address).take(SERVERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_an_address_count() {
        let text = "# nameserver 192.0.2.9\nsearch a.example\nnameserver 127.0.0.53\n\
                    nameserver\tfe80::1%eth0\n  nameserver ::1 # local\nnameserver x\n";
        let found: Vec<_> = name_servers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["127.0.0.53:53", "[::1]:53"]);
        assert!(name_servers("nameserver").is_empty());
        assert_eq!(name_servers(&"nameserver 192.0.2.1\n".repeat(9)).len(), SERVERS_MAX);
    }
}
