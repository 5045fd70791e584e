//! Authorises purge requests (decision 0024). A request may purge if its connection comes from an
//! address in `purge.from` and nothing shows that a proxy forwarded it. A request with the token may
//! purge from any address.
//!
//! The address is that of the connection, or the one that a trusted proxy names in the PROXY protocol,
//! never one from a header field. A loopback address counts only for the connection itself, not in the
//! PROXY protocol. Behind a proxy on the same machine, all connections come from loopback; the fields
//! that proxies add reveal forwarded requests. Requests that a website makes a browser send are
//! rejected. **Behind a local proxy that adds no such fields, set `purge.from = []` and use a token.**
//! Its requests cannot be distinguished from those of a local program. The response does not reveal the
//! reason.

use config::{Config, Purging};
use http::{HeaderMap, header};
use request_values::hosts::Hosts;
use std::net::IpAddr;
use subtle::ConstantTimeEq;
use telemetry::client::{AddressSource, Client};

/// Fields by which a proxy reveals that it forwards a request.
const PASSED_ON: [&str; 16] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-prefix",
    "x-forwarded-server",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "cdn-loop",
    "x-varnish",
];

/// Why a request may not purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayNot {
    /// The address of the connection is not in `purge.from`.
    NotListed,
    /// A proxy forwarded the request.
    PassedOn,
    /// A browser sent the request, from a page of another site or after DNS rebinding. An `Origin`
    /// field suffices, because no plugin sends it.
    CrossSite,
    /// The request has a token, but not the configured one.
    TokenWrong,
}

impl MayNot {
    /// The reason's name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            MayNot::NotListed => "not-listed",
            MayNot::PassedOn => "passed-on",
            MayNot::CrossSite => "cross-site",
            MayNot::TokenWrong => "token-wrong",
        }
    }
}

/// Checks that a request over this client's connection may purge.
///
/// # Errors
/// The reason why it may not.
pub fn check(config: &Config, headers: &HeaderMap, client: &Client) -> Result<(), MayNot> {
    check_with(&config.purging, headers, client)
}

fn check_with(purging: &Purging, headers: &HeaderMap, client: &Client) -> Result<(), MayNot> {
    if let Some(right) = &purging.token
        && let Some(given) = token(headers)
    {
        return if given.ct_eq(right.as_bytes()).into() { Ok(()) } else { Err(MayNot::TokenWrong) };
    }
    if !purging.from.have_peer(client.connection.peer) {
        return Err(MayNot::NotListed);
    }
    let for_somebody = match client.connection.address_source {
        AddressSource::Socket => false,
        // The proxy's loopback address: it belongs to another machine, or to a proxy in front of that
        // one.
        AddressSource::Proxy => {
            client.connection.peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback())
        }
        AddressSource::Nobody => true,
    };
    if for_somebody || PASSED_ON.iter().any(|name| headers.contains_key(*name)) {
        return Err(MayNot::PassedOn);
    }
    // Fetch standard, section 3.2: browsers send `Origin` with every method but GET and HEAD; no plugin
    // does.
    if headers.contains_key(header::ORIGIN) {
        return Err(MayNot::CrossSite);
    }
    // Only browsers send these fields (Fetch Metadata, section 2), and no browser is to purge.
    if headers.keys().any(|name| name.as_str().starts_with("sec-fetch-")) {
        return Err(MayNot::CrossSite);
    }
    Ok(())
}

/// Whether a GET that purges may name this host. A web page can make a browser send such a GET to this machine
/// under the page's own name (DNS rebinding). A browser that sends no `Sec-Fetch` fields cannot be distinguished from
/// a plugin otherwise. Without `site.host`, the GET reaches only the pages of the name that it has.
pub fn may_name(hosts: &Hosts, host: &str) -> bool {
    let name =
        host.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(host, |two| two.0);
    let is_local = name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    hosts.canonical.is_none() || is_local || hosts.all().any(|known| known == host || known == name)
}

/// The token in the request, from one of the supported fields.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let bearer = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
    bearer.or_else(|| headers.get("fastly-key").map(|value| value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use request_values::networks::Networks;
    use rule_conditions::Peer;
    use telemetry::client::ClientConnection;

    fn asked(peer: &str, fields: &[(&'static str, &str)]) -> Result<(), MayNot> {
        over(peer, AddressSource::Socket, fields)
    }

    fn over(
        peer: &str,
        address_source: AddressSource,
        fields: &[(&'static str, &str)],
    ) -> Result<(), MayNot> {
        let purging = Purging {
            from: Networks::read(&["127.0.0.0/8".into(), "::1".into(), "10.0.0.0/8".into()])
                .unwrap(),
            token: Some("a token of some length".into()),
            get_below: None,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let peer = Some(std::net::SocketAddr::new(peer.parse().unwrap(), 99));
        let connection = ClientConnection {
            peer,
            local: peer,
            proxy_trust: Peer::Trusted,
            address_source,
            scheme: "http",
            evidence: None,
        };
        check_with(&purging, &headers, &Client::of(connection.into()))
    }

    #[test]
    fn by_address_and_only_at_first_hand() {
        assert_eq!(asked("127.0.0.1", &[]), Ok(()));
        assert_eq!(asked("10.1.2.3", &[("authorization", "Basic eDp5")]), Ok(()));
        assert_eq!(asked("192.0.2.1", &[]), Err(MayNot::NotListed));
        assert_eq!(asked("192.0.2.1", &[("x-forwarded-for", "127.0.0.1")]), Err(MayNot::NotListed));
        for name in PASSED_ON {
            assert_eq!(asked("127.0.0.1", &[(name, "127.0.0.1")]), Err(MayNot::PassedOn), "{name}");
        }
        assert_eq!(asked("127.0.0.1", &[("sec-fetch-site", "cross-site")]), Err(MayNot::CrossSite));
        assert_eq!(asked("127.0.0.1", &[("sec-fetch-site", "none")]), Err(MayNot::CrossSite));
        assert_eq!(asked("127.0.0.1", &[("sec-fetch-mode", "cors")]), Err(MayNot::CrossSite));
        for origin in ["null", "http://127.0.0.1", "http://rebound.test:8080"] {
            assert_eq!(
                asked("127.0.0.1", &[("origin", origin)]),
                Err(MayNot::CrossSite),
                "{origin}"
            );
        }
    }

    #[test]
    fn from_the_machine_of_a_trusted_proxy() {
        assert_eq!(over("10.9.0.1", AddressSource::Socket, &[]), Ok(()));
        assert_eq!(over("10.9.0.1", AddressSource::Nobody, &[]), Err(MayNot::PassedOn));
        let named = [("x-forwarded-for", "10.0.0.1")];
        assert_eq!(over("10.9.0.1", AddressSource::Socket, &named), Err(MayNot::PassedOn));
    }

    #[test]
    fn a_proxy_s_loopback_is_not_this_machine() {
        for loopback in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(over(loopback, AddressSource::Socket, &[]), Ok(()), "{loopback}");
            assert_eq!(
                over(loopback, AddressSource::Proxy, &[]),
                Err(MayNot::PassedOn),
                "{loopback}"
            );
        }
        assert_eq!(over("10.1.2.3", AddressSource::Proxy, &[]), Ok(()));
        assert_eq!(over("192.0.2.1", AddressSource::Proxy, &[]), Err(MayNot::NotListed));
    }

    #[test]
    fn by_token_from_anywhere() {
        let right = ("authorization", "Bearer a token of some length");
        assert_eq!(asked("192.0.2.1", &[right]), Ok(()));
        assert_eq!(asked("192.0.2.1", &[right, ("via", "1.1 x")]), Ok(()));
        assert_eq!(asked("192.0.2.1", &[("fastly-key", "a token of some length")]), Ok(()));
        assert_eq!(
            asked("127.0.0.1", &[("fastly-key", "a token of some")]),
            Err(MayNot::TokenWrong)
        );
        assert_eq!(asked("192.0.2.1", &[("authorization", "Bearer ")]), Err(MayNot::TokenWrong));
    }
}
