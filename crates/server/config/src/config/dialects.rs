//! `[dialects]` as used: the compatibility headers of other caches.
//!
//! LiteSpeed's are enabled by default: a site whose plugin looks for a cache finds one, and other
//! sites are not affected. Tag fields are not sent to clients unless they are listed.

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
    /// Fields that are still sent to clients, for a cache or a web server in front: those of tags,
    /// and those that request a file.
    pub pass_on: Vec<HeaderName>,
}

/// Checks and completes `[dialects]`.
pub(super) fn resolve(raw: &raw::Dialects) -> Result<Dialects, LoadError> {
    let pass_on = raw.pass_on.iter().map(|name| field(name)).collect::<Result<_, _>>()?;
    let litespeed = if raw.litespeed.unwrap_or(true) { FieldUse::Obey } else { FieldUse::Ignore };
    Ok(Dialects { litespeed, pass_on })
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
            resolve(&raw::Dialects { litespeed: None, pass_on: vec![name.to_owned()] })
        };
        assert_eq!(read("Cache-Tag").expect("known").pass_on, ["cache-tag"]);
        assert_eq!(read("X-Accel-Redirect").expect("known").pass_on, ["x-accel-redirect"]);
        for name in ["x-litespeed-purge", "lsc-cookie", "", "x"] {
            assert!(read(name).is_err(), "{name}");
        }
    }
}
