//! The versions from which a page was rendered, written into the page: its number, its variant,
//! five versions.
//!
//! Every line of the content repeats the stamp, its own number and the number of lines. So any
//! piece with a whole line determines the rest, byte for byte. A page that was truncated, or
//! combined from two renders, is always detected.

use std::fmt::{self, Write};
use std::str::FromStr;

/// How many things a page reads: four items, and what only this page shows.
pub const READS: usize = 5;

/// The versions that a page was made from, in the order in which it reads them.
pub type Versions = [u64; READS];

/// The number and variant of a page, and the versions that it was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the page.
    pub page: usize,
    /// The variant; `-` for pages that have only one.
    pub variant: char,
    /// The versions that its render read.
    pub versions: Versions,
}

/// How long a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many lines the content has.
    pub lines: usize,
    /// How many bytes each line has in addition to stamp and count.
    pub filling_bytes: usize,
}

impl Stamp {
    /// The content of the page with this stamp.
    pub fn content(&self, shape: Shape) -> Vec<u8> {
        let start = self.to_string();
        let Shape { lines, filling_bytes } = shape;
        let mut text = String::with_capacity(lines * (start.len() + filling_bytes + 20));
        for line in 1..=lines {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{start} line {line} of {lines} {:.>filling_bytes$}", "");
        }
        text.into_bytes()
    }

    /// The stamp in a piece of content that begins `at` bytes into the page.
    pub fn in_piece(piece: &[u8], at: usize) -> Option<Stamp> {
        let text = str::from_utf8(piece).ok()?;
        let whole = if at == 0 { text } else { text.split_once('\n')?.1 };
        whole.split_once(" line ")?.0.parse().ok()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.page, self.variant, dotted(&self.versions))
    }
}

impl FromStr for Stamp {
    type Err = ();

    fn from_str(text: &str) -> Result<Stamp, ()> {
        let mut words = text.trim().split(' ');
        let page = words.next().and_then(|word| word.parse().ok()).ok_or(())?;
        let mut variant = words.next().ok_or(())?.chars();
        let (Some(variant), None) = (variant.next(), variant.next()) else { return Err(()) };
        let versions = words.next().ok_or(())?.split('.').map(str::parse);
        let versions: Vec<u64> = versions.collect::<Result<_, _>>().map_err(|_| ())?;
        let versions = versions.try_into().map_err(|_| ())?;
        words.next().is_none().then_some(Stamp { page, variant, versions }).ok_or(())
    }
}

/// Versions as they are written into pages: `3.4.5.6.2`.
pub fn dotted(versions: &Versions) -> String {
    versions.map(|version| version.to_string()).join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { page: 17, variant: 'b', versions: [3, 4, 5, 6, 2] };
    const SHAPE: Shape = Shape { lines: 4, filling_bytes: 3 };

    #[test]
    fn is_read_as_it_is_written() {
        assert_eq!(STAMP.to_string(), "17 b 3.4.5.6.2");
        assert_eq!("17 b 3.4.5.6.2".parse(), Ok(STAMP));
        for broken in ["", "17", "17 b", "17 bc 3.4.5.6.2", "17 b 3.4.5.6", "17 b 3.4.5.6.2 x"] {
            assert_eq!(broken.parse::<Stamp>(), Err(()), "{broken}");
        }
    }

    #[test]
    fn any_piece_with_a_whole_line_has_it() {
        let content = STAMP.content(SHAPE);
        assert!(content.starts_with(b"17 b 3.4.5.6.2 line 1 of 4 ...\n"));
        let line = content.len() / SHAPE.lines;
        for at in 0..line {
            assert_eq!(Stamp::in_piece(&content[at..], at), Some(STAMP), "from {at}");
        }
        assert_eq!(Stamp::in_piece(&content[1..line], 1), None);
        assert_eq!(Stamp::in_piece(b"", 0), None);
    }
}
