//! The compressible media types: a short list of patterns. The first matching pattern applies.
//!
//! Formats that are compressed already (images except SVG, audio, video, archives, WOFF) are left out.
//! Event streams are left out too, because their events must not wait for each other. An unlisted type is
//! not compressed.

use http_fields::fields;

/// A list of patterns of media types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaTypes {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// Whether content of a matching type is compressible; `!` excludes it.
    shrinks: bool,
    text: Vec<u8>,
    before: usize,
}

/// The error message for a malformed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongPattern(pub String);

/// The patterns used if none are configured.
pub const DEFAULT: [&str; 16] = [
    "!text/event-stream",
    "text/*",
    "application/javascript",
    "application/x-javascript",
    "application/json",
    "application/manifest+json",
    "application/*+json",
    "application/xml",
    "application/*+xml",
    "application/wasm",
    "application/vnd.ms-fontobject",
    "font/ttf",
    "font/otf",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
];

impl Default for MediaTypes {
    fn default() -> MediaTypes {
        MediaTypes::read(&DEFAULT).expect("the built-in patterns are tested")
    }
}

impl MediaTypes {
    /// Reads patterns such as `text/*`, `application/*+json` or `!text/event-stream`. A `!` excludes the
    /// type.
    ///
    /// # Errors
    /// A pattern without a slash, or with more than one `*`.
    pub fn read(patterns: &[impl AsRef<str>]) -> Result<MediaTypes, WrongPattern> {
        let read = |text: &str| {
            let (shrinks, name) = match text.strip_prefix('!') {
                Some(name) => (false, name),
                None => (true, text),
            };
            if !name.contains('/') || name.matches('*').count() > 1 {
                let why = "write for instance text/html, text/* or !text/event-stream";
                return Err(WrongPattern(format!("{text:?} is no media type; {why}")));
            }
            let before = name.find('*').unwrap_or(name.len());
            let text = name.replace('*', "").to_ascii_lowercase().into_bytes();
            Ok(Pattern {
                shrinks,
                before: if name.contains('*') { before } else { usize::MAX },
                text,
            })
        };
        let patterns = patterns.iter().map(|text| read(text.as_ref())).collect::<Result<_, _>>()?;
        Ok(MediaTypes { patterns })
    }

    /// Whether content of this type is compressible. `content_type` is the field's value with its
    /// parameters.
    pub fn contain(&self, content_type: &[u8]) -> bool {
        let end = content_type.iter().position(|byte| *byte == b';');
        let name = fields::trim(&content_type[..end.unwrap_or(content_type.len())]);
        let found = self.patterns.iter().find(|pattern| pattern.matches(name));
        found.is_some_and(|pattern| pattern.shrinks)
    }
}

impl Pattern {
    fn matches(&self, name: &[u8]) -> bool {
        let Some((start, end)) = self.text.split_at_checked(self.before) else {
            return name.eq_ignore_ascii_case(&self.text);
        };
        name.len() >= self.text.len()
            && name[..start.len()].eq_ignore_ascii_case(start)
            && name[name.len() - end.len()..].eq_ignore_ascii_case(end)
    }
}
