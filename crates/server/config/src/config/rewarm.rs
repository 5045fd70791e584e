//! `[rewarm]`: whether, and at which rate, pages are fetched again in the background after a change
//! (cache warming). `page_store` selects the pages; this module only contains the operator's
//! settings. The rate applies to each site, because each has its own origin.

use super::raw;
use super::resolve::LoadError;
use std::time::Duration;

/// The default maximum number of fetches per second.
const PAGES_PER_SECOND: u32 = 10;
/// The default maximum number of concurrent fetches.
const AT_ONCE: usize = 2;
/// The default minimum number of uses of a page.
const MIN_USES: u8 = 1;
/// The highest number of uses that is counted.
const USES_MAX: u8 = 3;

/// The settings for cache warming.
#[derive(Clone, Debug)]
pub struct Rewarm {
    /// Minimum time between the starts of two fetches.
    pub pause: Duration,
    /// Maximum number of concurrent fetches.
    pub at_once: usize,
    /// Minimum number of uses for a page to be fetched.
    pub min_uses: u8,
}

/// Checks and completes `[rewarm]`; `None` if it is disabled.
pub(super) fn resolve(raw: &raw::Rewarm) -> Result<Option<Rewarm>, LoadError> {
    let wrong = |what: &str| Err(LoadError(format!("rewarm.{what}")));
    let pace = raw.pages_per_second.unwrap_or(PAGES_PER_SECOND);
    if !(1..=1_000).contains(&pace) {
        return wrong("pages_per_second: must be 1 to 1000; `enabled = false` turns it off");
    }
    let at_once = raw.at_once.unwrap_or(AT_ONCE);
    if !(1..=1_000).contains(&at_once) {
        return wrong("at_once: must be 1 to 1000; `enabled = false` turns it off");
    }
    let min_uses = raw.min_uses.unwrap_or(MIN_USES);
    if min_uses > USES_MAX {
        return wrong("min_uses: must be 0 to 3, because uses are counted only up to 3");
    }
    let pause = Duration::from_secs(1) / pace;
    Ok(raw.enabled.unwrap_or(false).then_some(Rewarm { pause, at_once, min_uses }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Rewarm>, String> {
        resolve(&toml::from_str(text).unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn it_is_off_unless_it_is_turned_on() {
        assert!(read("").unwrap().is_none());
        assert!(read("pages_per_second = 5").unwrap().is_none());
        let on = read("enabled = true\npages_per_second = 5").unwrap().unwrap();
        assert_eq!((on.pause, on.at_once, on.min_uses), (Duration::from_millis(200), 2, 1));
    }

    #[test]
    fn invalid_values_are_refused_with_a_reason() {
        assert!(read("pages_per_second = 0").unwrap_err().contains("1 to 1000"));
        assert!(read("at_once = 0").unwrap_err().contains("rewarm.at_once"));
        assert!(read("min_uses = 4").unwrap_err().contains("0 to 3"));
    }
}
