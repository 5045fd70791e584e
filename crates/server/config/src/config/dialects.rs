//! `[dialects]` as used: the compatibility headers of other caches.
//!
//! LiteSpeed's are enabled by default: a site whose plugin looks for a cache finds one, and other
//! sites are not affected. Its ESI is announced only where it is enabled. Tag fields are not sent to
//! clients unless they are listed.

use super::raw;
use super::resolve::{LoadError, wrong};
use http::HeaderName;
use http_cache::FieldUse;
use http_cache::SENDFILE_FIELDS;
use http_cache::tags::DIALECTS;

/// The compatibility headers that are enabled.
#[derive(Clone, Debug)]
pub struct Dialects {
    /// Whether LiteSpeed's fields are used and announced to its plugins.
    pub litespeed: FieldUse,
    /// Whether LiteSpeed's ESI is processed and announced to its plugins.
    pub litespeed_esi: FieldUse,
    /// Fields that are still sent to clients, for a cache or a web server in front: those of tags,
    /// and those that request a file.
    pub pass_on: Vec<HeaderName>,
}

/// Checks and completes `[dialects]`.
pub(super) fn resolve(raw: &raw::Dialects) -> Result<Dialects, LoadError> {
    let pass_on = raw.pass_on.iter().map(|name| field(name)).collect::<Result<_, _>>()?;
    let used = |is_on| if is_on { FieldUse::Obey } else { FieldUse::Ignore };
    let litespeed = used(raw.litespeed.unwrap_or(true));
    let litespeed_esi = used(raw.litespeed_esi.unwrap_or(false));
    if litespeed_esi == FieldUse::Obey && litespeed == FieldUse::Ignore {
        return wrong("dialects.litespeed_esi", "needs `dialects.litespeed = true`");
    }
    Ok(Dialects { litespeed, litespeed_esi, pass_on })
}

fn field(name: &str) -> Result<HeaderName, LoadError> {
    let mut all = DIALECTS.iter().map(|dialect| dialect.field).chain(SENDFILE_FIELDS);
    match all.clone().find(|known| known.eq_ignore_ascii_case(name)) {
        Some(known) => Ok(HeaderName::from_static(known)),
        None => {
            let first = all.next().unwrap_or_default();
            let all = all.fold(first.to_owned(), |list, field| list + ", " + field);
            wrong("dialects.pass_on", format!("{name:?}: must be one of {all}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_of_tags_and_of_files_are_passed_on() {
        let read = |name: &str| {
            resolve(&raw::Dialects { pass_on: vec![name.to_owned()], ..raw::Dialects::default() })
        };
        assert_eq!(read("Cache-Tag").expect("known").pass_on, ["cache-tag"]);
        assert_eq!(read("X-Accel-Redirect").expect("known").pass_on, ["x-accel-redirect"]);
        for name in ["x-litespeed-purge", "lsc-cookie", "", "x"] {
            assert!(read(name).is_err(), "{name}");
        }
    }

    #[test]
    fn litespeeds_esi_needs_litespeeds_headers() {
        let read = |text: &str| resolve(&toml::from_str(text).expect("a table"));
        assert_eq!(read("").expect("valid").litespeed_esi, FieldUse::Ignore);
        assert_eq!(read("litespeed_esi = true").expect("valid").litespeed_esi, FieldUse::Obey);
        let error = read("litespeed = false\nlitespeed_esi = true").expect_err("a contradiction");
        assert!(error.0.contains("dialects.litespeed_esi"), "{}", error.0);
    }
}
