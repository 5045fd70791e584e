//! `[codings]`: in which content codings responses are sent, as used. What is worth coding is decided
//! by `http_cache::codings`; here is only what the operator chose.
//! An empty list of codings turns everything off, and the origin is asked as if there were no Pagewell.

use super::raw;
use super::resolve::LoadError;
use http_cache::codings::{Coding, CompressionFilter, MediaTypes};

/// Content below this length is sent as it is: with its header section it fits one packet anyway.
const BYTES_MIN: u64 = 256;

/// In which codings content is sent, and which content.
#[derive(Clone, Debug)]
pub struct Codings {
    /// Those that are made; none turns everything here off.
    pub make: Vec<Coding>,
    /// What is worth it.
    pub codable: CompressionFilter,
    /// Whether what is not kept in a coding is compressed while it is sent.
    pub on_the_way: bool,
    /// Whether a file's compressed form is taken from beside it (`app.js.br`).
    pub files_beside: bool,
}

impl Codings {
    /// Whether content is coded here, so that the origin is not asked to.
    pub fn are_made(&self) -> bool {
        !self.make.is_empty()
    }
}

/// Checks and completes `[codings]`.
pub(super) fn resolve(raw: &raw::Codings) -> Result<Codings, LoadError> {
    let make = match &raw.make {
        None => vec![Coding::Brotli, Coding::Zstd, Coding::Gzip],
        Some(names) => names.iter().map(|name| coding(name)).collect::<Result<_, _>>()?,
    };
    let types = match &raw.types {
        None => MediaTypes::default(),
        Some(patterns) => MediaTypes::read(patterns)
            .map_err(|wrong| LoadError(format!("codings.types: {}", wrong.0)))?,
    };
    let bytes_min = raw.min_bytes.unwrap_or(BYTES_MIN);
    Ok(Codings {
        make,
        codable: CompressionFilter { types, bytes_min },
        on_the_way: raw.on_the_way.unwrap_or(true),
        files_beside: raw.files_beside.unwrap_or(false),
    })
}

fn coding(name: &str) -> Result<Coding, LoadError> {
    Coding::from_name(name.as_bytes())
        .ok_or_else(|| LoadError(format!("codings.make: {name:?}: gzip, br and zstd are made")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_cannot_be_used_say_why() {
        let make = Some(vec!["lzma".to_owned()]);
        let said = resolve(&raw::Codings { make, ..Default::default() }).unwrap_err().0;
        assert!(said.contains("codings.make") && said.contains("zstd"), "{said}");
        let types = Some(vec!["html".to_owned()]);
        let said = resolve(&raw::Codings { types, ..Default::default() }).unwrap_err().0;
        assert!(said.contains("codings.types") && said.contains("text/html"), "{said}");
    }

    #[test]
    fn an_empty_list_turns_it_off() {
        assert!(resolve(&raw::Codings::default()).unwrap().are_made());
        let make = Some(Vec::new());
        assert!(!resolve(&raw::Codings { make, ..Default::default() }).unwrap().are_made());
    }
}
