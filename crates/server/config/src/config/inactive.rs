//! `cache.inactive`: the time after which an unrequested page is removed (nginx: `inactive`).
//! Disabled by default: memory is bounded anyway, and rarely requested pages are evicted first.
//! `crate::inactive` and `page_store` implement it; this module parses it.

use super::raw;
use super::resolve::LoadError;
use super::units::parse_duration;
use std::time::Duration;

/// The minimum, because all pages are scanned eight times within it.
const MIN: Duration = Duration::from_secs(60);

/// Checks the value; `None` if it is disabled.
pub(super) fn resolve(raw: &raw::Cache) -> Result<Option<Duration>, LoadError> {
    let wrong = |what| LoadError(format!("cache.inactive: {what}"));
    let Some(text) = &raw.inactive else { return Ok(None) };
    match parse_duration(text).map_err(wrong)? {
        Duration::ZERO => Ok(None),
        short if short < MIN => {
            Err(wrong(format!("{text:?}: must be at least 1m, or 0s for never")))
        }
        time => Ok(Some(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_unless_it_is_given_and_never_short() {
        let read = |text: &str| resolve(&toml::from_str(text).unwrap()).map_err(|error| error.0);
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("inactive = \"0s\""), Ok(None));
        assert_eq!(read("inactive = \"2h\""), Ok(Some(Duration::from_secs(7_200))));
        for wrong in ["59s", "1", "long"] {
            let said = read(&format!("inactive = {wrong:?}")).unwrap_err();
            assert!(said.starts_with("cache.inactive: "), "{said}");
        }
    }
}
