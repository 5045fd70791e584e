//! Networks such as `10.0.0.0/8`, and the word `unix` for Unix sockets. They define the trusted
//! proxies.
//!
//! A trusted proxy sends the client's address in `X-Forwarded-For` and its scheme in
//! `X-Forwarded-Proto`. Of several addresses, the last one is used that is not a trusted proxy: an
//! untrusted party may have written those before it. The fields of other clients are ignored, and
//! the fields are never forwarded unchanged.

use http::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// A set of networks, which may include Unix sockets.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    networks: Vec<IpNet>,
    unix: bool,
}

impl Networks {
    /// Parses a list of addresses, networks, and the word `unix`.
    ///
    /// # Errors
    /// The first word that is none of these.
    pub fn read(words: &[String]) -> Result<Networks, String> {
        let mut all = Networks::default();
        for word in words {
            if word == "unix" {
                all.unix = true;
                continue;
            }
            let wrong = || format!("{word:?}: write for instance 10.0.0.0/8, ::1 or unix");
            all.networks.push(rule_conditions::network(word).ok_or_else(wrong)?);
        }
        Ok(all)
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// Whether the peer of a connection is in the set; `None` is a Unix socket.
    #[inline]
    pub fn have_peer(&self, peer: Option<SocketAddr>) -> bool {
        match peer {
            None => self.unix,
            Some(peer) => self.have(peer.ip()),
        }
    }

    /// Whether an address is in the set.
    #[inline]
    pub fn have(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Returns the client's address from a trusted proxy's fields, if it can be parsed.
    pub fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        self.client_of(lines.map(|line| line.as_bytes()))
    }

    /// Returns the same from the values of the field lines, the last one first.
    pub fn client_of<'a>(&self, lines: impl Iterator<Item = &'a [u8]>) -> Option<IpAddr> {
        let mut nearest = None;
        for word in lines.flat_map(|line| line.rsplit(|byte| *byte == b',')) {
            let address = address(str::from_utf8(word).ok()?.trim())?;
            nearest = Some(address);
            if !self.have(address) {
                break;
            }
        }
        nearest
    }
}

/// Parses an address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let inside = text.strip_prefix('[').and_then(|rest| rest.split(']').next());
    let plain = inside.unwrap_or(text).parse().ok();
    plain.or_else(|| text.parse::<SocketAddr>().ok().map(|both| both.ip()))
}

/// Returns the client's scheme from a trusted proxy's field, if there is one.
pub fn forwarded_scheme(headers: &HeaderMap) -> Option<&'static str> {
    let value = headers.get_all("x-forwarded-proto").iter().next_back()?;
    let last = value.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default();
    match last.trim_ascii() {
        word if word.eq_ignore_ascii_case(b"https") => Some("https"),
        word if word.eq_ignore_ascii_case(b"http") => Some("http"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(words: &[&str]) -> Networks {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Networks::read(&words).unwrap()
    }

    #[test]
    fn addresses_are_matched_with_networks() {
        let some = networks(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
        for (address, right) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
            ("::ffff:10.0.0.1", true),
        ] {
            assert_eq!(some.have(address.parse().unwrap()), right, "{address}");
        }
        assert!(!some.have_peer(None) && networks(&["unix"]).have_peer(None));
        assert!(networks(&["0.0.0.0/0"]).have("1.2.3.4".parse().unwrap()));
        // An address in a network selects the whole network, and IPv4 is not a part of IPv6.
        assert!(networks(&["10.1.2.3/8"]).have("10.255.0.1".parse().unwrap()));
        assert!(networks(&["::ffff:10.1.2.3"]).have("10.1.2.3".parse().unwrap()));
        assert!(!networks(&["::/0"]).have("::ffff:10.0.0.1".parse().unwrap()));
        for wrong in
            ["10.0.0.0/33", "x", "10.0.0.0/", "::/129", "10.0.0/8", "010.0.0.0/8", "10.0.0.0/256"]
        {
            assert!(Networks::read(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_last_address_that_is_not_trusted_counts() {
        let some = networks(&["10.0.0.0/8"]);
        for (lines, right) in [
            (&["1.1.1.1"][..], Some("1.1.1.1")),
            (&["6.6.6.6, 1.1.1.1"], Some("1.1.1.1")),
            (&["6.6.6.6", "1.1.1.1, 10.0.0.2"], Some("1.1.1.1")),
            (&["10.0.0.3, 10.0.0.2"], Some("10.0.0.3")),
            (&["[2001:db8::1]:99"], Some("2001:db8::1")),
            (&["1.1.1.1:99"], Some("1.1.1.1")),
            (&["1.1.1.1, unknown"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().unwrap());
            }
            let right = right.map(|address| address.parse().unwrap());
            assert_eq!(some.client(&headers), right, "{lines:?}");
        }
    }

    #[test]
    fn the_nearest_proxy_tells_the_scheme() {
        let mut headers = HeaderMap::new();
        assert_eq!(forwarded_scheme(&headers), None);
        headers.append("x-forwarded-proto", "https, HTTP".parse().unwrap());
        assert_eq!(forwarded_scheme(&headers), Some("http"));
        headers.append("x-forwarded-proto", "https".parse().unwrap());
        assert_eq!(forwarded_scheme(&headers), Some("https"));
    }
}
