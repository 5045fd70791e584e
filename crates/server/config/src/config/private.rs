//! `[private]` as used: the owners of private copies, the number of copies, and their lifetime.
//!
//! Disabled if the site lists no cookies that identify an owner, and LiteSpeed's compatibility
//! headers are off. Without a list, the cookies are those of the applications of LiteSpeed's
//! plugins, and only responses that the plugin declares private are stored.

use super::Dialects;
use super::raw;
use super::resolve::{LoadError, wrong};
use super::units::parse_duration;
use http_cache::{FieldUse, PrivateWord};
use known_names::LITESPEED_OWNERS;
use site_rules::OwnerCookies;
use std::time::Duration;

/// The default maximum number of copies per owner.
const PAGES_PER_OWNER: usize = 50;
/// The default maximum lifetime of a copy.
const LIFETIME_MAX: Duration = Duration::from_secs(600);
/// Maximum number of name patterns.
const COOKIES_MAX: usize = 32;

/// The settings for private copies.
#[derive(Clone, Debug)]
pub struct PrivateCopies {
    /// The cookies that identify an owner.
    pub cookies: OwnerCookies,
    /// The fields by which a response declares itself private.
    pub word: PrivateWord,
    /// Maximum number of copies per owner.
    pub pages_per_owner: usize,
    /// Maximum freshness lifetime of a copy.
    pub lifetime_max: Duration,
}

/// Returns the configured cookie names, which are also session cookies.
pub(super) fn named(raw: &raw::Private) -> &[String] {
    match raw.enabled {
        Some(false) => &[],
        _ => &raw.cookies,
    }
}

/// Checks and completes `[private]`; `None` if it is disabled.
pub(super) fn resolve(
    raw: &raw::Private,
    dialects: &Dialects,
) -> Result<Option<PrivateCopies>, LoadError> {
    if raw.enabled == Some(false) && dialects.litespeed_esi == FieldUse::Obey {
        return wrong("private.enabled", "`dialects.litespeed_esi` needs private copies");
    }
    let pages_per_owner = raw.pages_per_owner.unwrap_or(PAGES_PER_OWNER);
    if !(1..=10_000).contains(&pages_per_owner) {
        return wrong("private.pages_per_owner", "must be 1 to 10000");
    }
    let lifetime_max = match &raw.lifetime_max {
        Some(text) => parse_duration(text).or_else(|e| wrong("private.lifetime_max", e))?,
        None => LIFETIME_MAX,
    };
    if raw.cookies.len() > COOKIES_MAX {
        return wrong("private.cookies", format!("at most {COOKIES_MAX} names"));
    }
    let (words, word) = match (raw.cookies.is_empty(), dialects.litespeed) {
        (false, _) => (raw.cookies.clone(), PrivateWord::Anybodys),
        (true, FieldUse::Obey) => {
            (LITESPEED_OWNERS.map(str::to_owned).to_vec(), PrivateWord::LiteSpeeds)
        }
        (true, FieldUse::Ignore) if raw.enabled == Some(true) => {
            return wrong("private.cookies", "name the cookies that identify a session");
        }
        (true, FieldUse::Ignore) => return Ok(None),
    };
    let cookies = OwnerCookies::read(&words).or_else(|e| wrong("private.cookies", e))?;
    let copies = PrivateCopies { cookies, word, pages_per_owner, lifetime_max };
    Ok((raw.enabled != Some(false)).then_some(copies))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, litespeed: FieldUse) -> Result<Option<PrivateCopies>, String> {
        read_with(text, litespeed, FieldUse::Ignore)
    }

    fn read_with(
        text: &str,
        litespeed: FieldUse,
        litespeed_esi: FieldUse,
    ) -> Result<Option<PrivateCopies>, String> {
        let dialects = Dialects { litespeed, litespeed_esi, pass_on: Vec::new() };
        resolve(&toml::from_str(text).unwrap(), &dialects).map_err(|error| error.0)
    }

    #[test]
    fn it_is_off_by_default() {
        assert!(read("", FieldUse::Ignore).unwrap().is_none());
        assert!(read("enabled = false", FieldUse::Obey).unwrap().is_none());
        assert!(read("enabled = false\ncookies = [\"a\"]", FieldUse::Obey).unwrap().is_none());
        let plugins = read("", FieldUse::Obey).unwrap().unwrap();
        assert_eq!((plugins.word, plugins.pages_per_owner), (PrivateWord::LiteSpeeds, 50));
        let refused = read_with("enabled = false", FieldUse::Obey, FieldUse::Obey).unwrap_err();
        assert!(refused.contains("private.enabled"), "{refused}");
        let sites = read("cookies = [\"PHPSESSID\"]", FieldUse::Obey).unwrap().unwrap();
        assert_eq!((sites.word, sites.lifetime_max), (PrivateWord::Anybodys, LIFETIME_MAX));
    }

    #[test]
    fn invalid_values_are_refused_with_a_reason() {
        for (text, part) in [
            ("enabled = true", "name the cookies"),
            ("cookies = [\"*\"]", "fits any cookie"),
            ("cookies = [\"\"]", "fits any cookie"),
            ("cookies = [\"a\"]\npages_per_owner = 0", "1 to 10000"),
            ("cookies = [\"a\"]\nlifetime_max = \"long\"", "private.lifetime_max"),
        ] {
            let said = read(text, FieldUse::Ignore).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
