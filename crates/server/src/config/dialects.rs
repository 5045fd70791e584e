//! `[dialects]`: which other caches' languages are spoken, as used.
//!
//! LiteSpeed's is spoken unless the operator says otherwise: a site whose plugin asks for a cache gets
//! one, and to all others it makes no difference. Fields of tags stay here unless they are named.

use super::raw;
use super::resolve::{LoadError, wrong};
use http::HeaderName;
use http_cache::FieldUse;
use http_cache::tags::DIALECTS;

/// Which dialects are spoken.
#[derive(Clone, Debug)]
pub struct Dialects {
    /// LiteSpeed's: its fields are obeyed, and its plugins told so.
    pub litespeed: FieldUse,
    /// Fields of tags that clients get all the same, for a cache in front.
    pub pass_on: Vec<HeaderName>,
}

/// Checks and completes `[dialects]`.
pub(super) fn resolve(raw: &raw::Dialects) -> Result<Dialects, LoadError> {
    let pass_on = raw.pass_on.iter().map(|name| field(name)).collect::<Result<_, _>>()?;
    let litespeed = match raw.litespeed.unwrap_or(true) {
        true => FieldUse::Obey,
        false => FieldUse::Ignore,
    };
    Ok(Dialects { litespeed, pass_on })
}

fn field(name: &str) -> Result<HeaderName, LoadError> {
    let known = DIALECTS.iter().find(|dialect| dialect.field.eq_ignore_ascii_case(name));
    match known {
        Some(dialect) => Ok(HeaderName::from_static(dialect.field)),
        None => {
            let all: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.field).collect();
            wrong("dialects.pass_on", format!("{name:?}: one of {}", all.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_of_tags_are_passed_on() {
        let read = |name: &str| {
            resolve(&raw::Dialects { litespeed: None, pass_on: vec![name.to_owned()] })
        };
        assert_eq!(read("Cache-Tag").expect("known").pass_on, ["cache-tag"]);
        for name in ["x-litespeed-purge", "lsc-cookie", "", "x"] {
            assert!(read(name).is_err(), "{name}");
        }
    }
}
