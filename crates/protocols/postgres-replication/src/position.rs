//! A position in the write-ahead log (LSN): bytes since the beginning of the log, written as two hexadecimal
//! numbers.
//!
//! Some positions can be written in two ways: at the boundary of a log page, the next record begins after the
//! page header, and the previous record ended before it. [`Lsn::before_header`] converts both to one. Source:
//! PostgreSQL's manual, "pg_lsn Type"; `xlog_internal.h`. Not here: the content of the log.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The size in bytes of a log page, unless the server was built with another, and of the longer page header.
const PAGE_BYTES: u64 = 8192;
const HEADER_BYTES: u64 = 40;

/// A position in the write-ahead log, in bytes since its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The same position, written as the end of the record before it: no record is within a page header.
    #[must_use]
    pub fn before_header(self) -> Lsn {
        let within = self.0 % PAGE_BYTES;
        if within <= HEADER_BYTES { Lsn(self.0 - within) } else { self }
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

/// A text is not a valid position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLsn;

impl fmt::Display for NoLsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a place in the log has the form 16/B374D848")
    }
}

impl std::error::Error for NoLsn {}

impl From<ParseIntError> for NoLsn {
    fn from(_: ParseIntError) -> NoLsn {
        NoLsn
    }
}

impl FromStr for Lsn {
    type Err = NoLsn;

    fn from_str(text: &str) -> Result<Lsn, NoLsn> {
        let (high, low) = text.split_once('/').ok_or(NoLsn)?;
        let half = |half: &str| {
            let plain = !half.is_empty() && half.bytes().all(|byte| byte.is_ascii_hexdigit());
            if plain { Ok(u64::from(u32::from_str_radix(half, 16)?)) } else { Err(NoLsn) }
        };
        Ok(Lsn(half(high)? << 32 | half(low)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_there_and_back() {
        for text in ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"] {
            assert_eq!(text.parse::<Lsn>().map(|lsn| lsn.to_string()).as_deref(), Ok(text));
        }
        for wrong in ["", "0", "/", "0/", "+1/2", "1/100000000", "1/2/3", "x/1"] {
            assert_eq!(wrong.parse::<Lsn>(), Err(NoLsn), "{wrong}");
        }
    }

    #[test]
    fn the_edge_of_a_page_is_one_place() {
        assert_eq!(Lsn(8192 + 24).before_header(), Lsn(8192));
        assert_eq!(Lsn(8192 + 40).before_header(), Lsn(8192));
        assert_eq!(Lsn(8192 + 48).before_header(), Lsn(8192 + 48));
        assert_eq!(Lsn(8192).before_header(), Lsn(8192));
    }
}
