//! `[codings]` as used: the content codings in which responses are sent. `http_cache::codings`
//! decides which content is compressed; this module only contains the operator's settings. An empty
//! list of codings disables compression, and the client's `Accept-Encoding` is then forwarded to
//! the origin.

use super::raw;
use super::resolve::LoadError;
use http_cache::codings::{Coding, CompressionFilter, MediaTypes};

/// Shorter content is not compressed: with its header section it fits into one packet anyway.
const BYTES_MIN: u64 = 256;

/// The content codings, and the content that is compressed.
#[derive(Clone, Debug)]
pub struct Codings {
    /// The codings that Pagewell uses; empty: none.
    pub make: Vec<Coding>,
    /// The filter for content that is compressed.
    pub codable: CompressionFilter,
    /// Whether content that is not stored compressed is compressed while it is sent.
    pub on_the_way: bool,
    /// Whether precompressed files next to a file are used (`app.js.br`).
    pub files_beside: bool,
}

impl Codings {
    /// Whether Pagewell compresses content, so that the origin need not.
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
        .ok_or_else(|| LoadError(format!("codings.make: {name:?}: must be gzip, br or zstd")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_words_are_refused_with_a_reason() {
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
