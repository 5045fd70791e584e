//! `[misses]`: whether requests that need the origin are rationed while it is overloaded.
//!
//! All other figures are constants of the crate `miss-control`, with their reasons there.

use super::raw;
use super::resolve::LoadError;
use crate::networks::Networks;
use miss_control::RequestRate;

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
    /// Crawlers that are recognised by their addresses.
    pub crawlers: Vec<VerifiedCrawler>,
}

/// A crawler that is recognised by its addresses.
#[derive(Clone, Debug)]
pub struct VerifiedCrawler {
    /// The name in reports.
    pub name: String,
    /// The networks of its addresses.
    pub networks: Networks,
    /// Its requests to the origin that are never deferred.
    pub rate: RequestRate,
}

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
    let crawlers = raw.crawlers.iter().map(crawler).collect::<Result<_, _>>()?;
    Ok(Misses { mode, exempt, crawlers })
}

fn crawler(raw: &raw::CrawlerKeys) -> Result<VerifiedCrawler, LoadError> {
    let wrong = |key: &str, why: String| LoadError(format!("misses.crawlers.{key}: {why}"));
    if raw.name.is_empty() {
        return Err(wrong("name", "is missing: write the name that reports show".into()));
    }
    let rate = RequestRate::read(raw.rate.as_deref().unwrap_or("60/m"));
    let text = trusted_files::read(&raw.ranges, RANGES_BYTES_MAX as _)
        .map_err(|error| wrong("ranges", format!("{}: {error}", raw.ranges.display())))?;
    let networks = ranges(&String::from_utf8_lossy(&text));
    if networks.is_empty() {
        let why = "has no network: it is the JSON that the search engine publishes, or one network in a line";
        return Err(wrong("ranges", format!("{}: {why}", raw.ranges.display())));
    }
    let networks = Networks::read(&networks).map_err(|why| wrong("ranges", why))?;
    let rate = rate.map_err(|why| wrong("rate", why))?;
    Ok(VerifiedCrawler { name: raw.name.clone(), networks, rate })
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
