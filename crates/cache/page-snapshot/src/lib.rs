//! Pages, and the changes that were told, as bytes that outlive a process. Bytes in, bytes out.
//!
//! Where to read: `record.rs` (a page ↔ bytes), `snapshot.rs` (head, pages, end: a whole snapshot),
//! `journal.rs` (changes that no database's stream tells), `frame.rs` (length and checksum of each piece),
//! `parts.rs` (numbers and strings of bytes).
//!
//! Invariants: nothing panics on anything that is read; everything is bounded before memory is taken for
//! it; a piece whose checksum is wrong, that stands elsewhere than where it was written, or that belongs to
//! another file is refused, and so is a file that ends early. What cannot be read is never taken for less
//! than it was. Deliberately not here: files, times, which snapshot may be used when (`pagewell`), and the
//! dependency index: what a page depends on follows from its key and its tags.

#![forbid(unsafe_code)]

mod frame;
mod journal;
mod parts;
mod record;
mod snapshot;

pub use frame::{FRAME_BYTES, FRAME_BYTES_MAX};
pub use journal::{Journal, Left, Name, read_journal};
pub use record::{Content, Record, SavedPage, read_page, write_page};
pub use snapshot::{
    End, Head, PREFIX_BYTES, Piece, Position, Reader, SOURCES_MAX, VERSION, Writer, Written,
};

use std::fmt;

/// Why something is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It does not begin as it should: it is something else.
    Foreign,
    /// It was written in another version of the format.
    OtherVersion,
    /// It ends before its end.
    CutOff,
    /// A checksum is wrong, or a piece is not where it belongs.
    Damaged,
    /// Something is over its bound.
    TooLarge,
    /// The checksum is right, and what it is about cannot be.
    Invalid,
}

impl Unreadable {
    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Unreadable::Foreign => "foreign",
            Unreadable::OtherVersion => "other-version",
            Unreadable::CutOff => "cut-off",
            Unreadable::Damaged => "damaged",
            Unreadable::TooLarge => "too-large",
            Unreadable::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Unreadable {}
