//! `[misses]`: whether requests that need the origin are rationed while it is overloaded.
//!
//! All other figures are constants of the crate `miss-control`, with their reasons there.

use super::origin_servers::{self, OriginServer};
use super::raw;
use super::resolve::LoadError;
use dns_query::{DNS_PORT, DomainName, name_servers};
use miss_control::RequestRate;
use request_values::networks::Networks;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// How requests that need the origin are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissesMode {
    /// First come, first served, without reports.
    Off,
    /// First come, first served; reports show what is requested, and by which clients.
    #[default]
    Observe,
    /// By level and group; requests are deferred while the origin is overloaded.
    Protect,
}

impl MissesMode {
    /// The mode as it is configured.
    pub fn as_str(self) -> &'static str {
        match self {
            MissesMode::Off => "off",
            MissesMode::Observe => "observe",
            MissesMode::Protect => "protect",
        }
    }
}

/// The settings for requests that need the origin.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    /// How they are treated.
    pub mode: MissesMode,
    /// The clients whose requests are never deferred.
    pub exempt: Networks,
    /// Crawlers that are recognised by their addresses, or by the names of these.
    pub crawlers: Vec<VerifiedCrawler>,
    /// The DNS servers for the names of crawlers; empty if no crawler has any.
    pub resolvers: Vec<SocketAddr>,
    /// The challenge for clients that are deferred a second time.
    pub challenge: Option<OriginServer>,
}

/// A crawler that is recognised by its addresses, or by the names of these.
#[derive(Clone, Debug)]
pub struct VerifiedCrawler {
    /// The name in reports. Addresses are looked up only for a `User-Agent` that contains it.
    pub name: String,
    /// The networks of its addresses.
    pub networks: Networks,
    /// The domains of the names of its addresses, in lower case.
    pub hosts: Vec<String>,
    /// Its requests to the origin that are never deferred.
    pub rate: RequestRate,
}

/// The file that names the DNS servers of the machine.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The most crawlers, and the longest file with addresses of one.
const CRAWLERS_MAX: usize = 32;
const RANGES_BYTES_MAX: u64 = 1 << 20;

/// Checks and completes `[misses]`.
pub(super) fn resolve(raw: &raw::MissesKeys) -> Result<Misses, LoadError> {
    let mode = match raw.mode.as_deref() {
        None => MissesMode::default(),
        Some("off") => MissesMode::Off,
        Some("observe") => MissesMode::Observe,
        Some("protect") => MissesMode::Protect,
        Some(other) => {
            let text = format!("misses.mode: {other:?} must be off, observe or protect");
            return Err(LoadError(text));
        }
    };
    let exempt =
        Networks::read(&raw.exempt).map_err(|why| LoadError(format!("misses.exempt: {why}")))?;
    if raw.crawlers.len() > CRAWLERS_MAX {
        return Err(LoadError(format!("misses.crawlers: at most {CRAWLERS_MAX}")));
    }
    let crawlers = raw.crawlers.iter().map(crawler).collect::<Result<Vec<_>, _>>()?;
    let has_names = crawlers.iter().any(|crawler| !crawler.hosts.is_empty());
    let resolvers = resolvers(raw.resolver.as_deref(), has_names)?;
    let challenge = raw.challenge.as_deref();
    let challenge = challenge.map(|url| origin_servers::server("misses.challenge", url));
    Ok(Misses { mode, exempt, crawlers, resolvers, challenge: challenge.transpose()? })
}

/// The DNS servers, if any are needed: the one that is configured, or those of the machine.
fn resolvers(written: Option<&str>, is_needed: bool) -> Result<Vec<SocketAddr>, LoadError> {
    if let Some(written) = written {
        let address = written.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
        let address = address.or_else(|_| written.parse()).map_err(|_| {
            LoadError(format!(
                "misses.resolver: {written:?}: write an address, such as \"127.0.0.53\""
            ))
        })?;
        return Ok(vec![address]);
    }
    if !is_needed {
        return Ok(Vec::new());
    }
    let found = name_servers(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default());
    if found.is_empty() {
        let text = format!(
            "misses.crawlers.hosts: {RESOLV_CONF} names no server for them; set misses.resolver to the address of one"
        );
        return Err(LoadError(text));
    }
    Ok(found)
}

fn crawler(raw: &raw::CrawlerKeys) -> Result<VerifiedCrawler, LoadError> {
    let wrong = |key: &str, why: String| LoadError(format!("misses.crawlers.{key}: {why}"));
    if raw.name.is_empty() {
        return Err(wrong("name", "is missing: write the name that reports show".into()));
    }
    let rate = RequestRate::read(raw.rate.as_deref().unwrap_or("60/m"));
    let rate = rate.map_err(|why| wrong("rate", why))?;
    if raw.ranges.is_none() && raw.hosts.is_empty() {
        let why =
            "is missing: write the file with its networks, or hosts with the domains of its names";
        return Err(wrong("ranges", why.into()));
    }
    let networks = raw.ranges.as_deref().map(networks).transpose();
    let networks = networks.map_err(|why| wrong("ranges", why))?.unwrap_or_default();
    let hosts = raw.hosts.iter().map(|host| domain(host)).collect::<Result<_, _>>();
    let hosts = hosts.map_err(|why| wrong("hosts", why))?;
    Ok(VerifiedCrawler { name: raw.name.clone(), networks, hosts, rate })
}

/// A domain of host names: with a dot, so that no whole top-level domain is a crawler's.
fn domain(written: &str) -> Result<String, String> {
    let name =
        DomainName::from_text(written.trim_start_matches('.')).ok().and_then(|name| name.text());
    let name = name.filter(|name| name.contains('.'));
    name.ok_or_else(|| format!("{written:?}: write a domain, such as \"googlebot.com\""))
}

/// The networks in a file.
fn networks(path: &Path) -> Result<Networks, String> {
    let text = trusted_files::read(path, RANGES_BYTES_MAX as _);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let networks = ranges(&String::from_utf8_lossy(&text));
    if networks.is_empty() {
        let why = "has no network: it is the JSON that the search engine publishes, or one network in a line";
        return Err(format!("{}: {why}", path.display()));
    }
    Networks::read(&networks)
}

/// The networks of a file, such as `66.249.64.0/27`: of JSON as search engines publish it, or of lines.
fn ranges(text: &str) -> Vec<String> {
    let is_of_network = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '/');
    let words = text.split(|c| !is_of_network(c)).filter(|word| word.contains('/'));
    let all = words.map(|word| word.trim_matches(':').to_owned());
    all.filter(|word| Networks::read(std::slice::from_ref(word)).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_of_a_search_engine_are_found_in_its_json() {
        let google = r#"{"creationTime": "2026-11-20T15:00:46.000000", "prefixes": [
            {"ipv6Prefix": "2001:4860:4801:10::/64"}, {"ipv4Prefix": "66.249.64.0/27"}]}"#;
        assert_eq!(ranges(google), ["2001:4860:4801:10::/64", "66.249.64.0/27"]);
        assert_eq!(
            ranges("# mine\n192.0.2.0/24\n\n198.51.100.7/32\n"),
            ["192.0.2.0/24", "198.51.100.7/32"]
        );
        assert!(ranges("http://example.test/ 1/2 12/2026").is_empty());
    }

    #[test]
    fn a_crawler_has_networks_or_domains() {
        let read = |hosts: &[&str], resolver: Option<&str>| {
            let hosts = hosts.iter().map(ToString::to_string).collect();
            let crawler = raw::CrawlerKeys { name: "google".into(), hosts, ..Default::default() };
            let resolver = resolver.map(str::to_owned);
            resolve(&raw::MissesKeys { crawlers: vec![crawler], resolver, ..Default::default() })
        };
        let found = read(&[".GoogleBot.com", "google.com."], Some("::1")).unwrap();
        assert_eq!(found.crawlers[0].hosts, ["googlebot.com", "google.com"]);
        assert_eq!(found.resolvers, ["[::1]:53".parse().unwrap()]);
        assert_eq!(read(&["a.test"], Some("192.0.2.1:5353")).unwrap().resolvers[0].port(), 5353);
        assert!(read(&[], Some("::1")).unwrap_err().0.contains("ranges: is missing"));
        for wrong in ["com", "*.a.test", "http://a.test", ""] {
            assert!(read(&[wrong], Some("::1")).unwrap_err().0.contains("hosts:"), "{wrong}");
        }
        assert!(read(&["a.test"], Some("localhost")).unwrap_err().0.contains("misses.resolver"));
    }

    #[test]
    fn a_challenge_is_a_server() {
        let read = |url: &str| {
            resolve(&raw::MissesKeys { challenge: Some(url.to_owned()), ..Default::default() })
        };
        let found = read("http://127.0.0.1:8923").unwrap().challenge.unwrap();
        assert_eq!(found.authority, "127.0.0.1:8923");
        assert!(read("127.0.0.1:8923").unwrap_err().0.contains("misses.challenge"));
    }

    #[test]
    fn a_mode_is_one_of_three_words() {
        let read = |mode: Option<&str>| {
            resolve(&raw::MissesKeys { mode: mode.map(str::to_owned), ..Default::default() })
        };
        assert_eq!(read(None).unwrap().mode, MissesMode::Observe);
        assert_eq!(read(Some("off")).unwrap().mode, MissesMode::Off);
        assert_eq!(read(Some("protect")).unwrap().mode, MissesMode::Protect);
        assert!(read(Some("on")).unwrap_err().0.contains("off, observe or protect"));
    }
}
