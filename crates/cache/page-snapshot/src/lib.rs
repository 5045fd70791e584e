//! Pages and the changes noted beside them, encoded as bytes that outlive a process. No I/O: bytes in,
//! bytes out.
//!
//! Where to read: `record.rs` (one page), `snapshot.rs` (a whole snapshot: head, statements, pages, end), `journal.rs`
//! (changes that no database stream repeats), `frame.rs` (length and checksum of each piece), `parts.rs`
//! (integers and byte strings).
//!
//! Invariants: no input causes a panic, and every length is checked before memory is allocated for it. A
//! piece with a wrong checksum, in a wrong position or from another file is refused, and so is a truncated
//! file. Input that cannot be read is never treated as a shorter input. Not in this crate: files, clocks,
//! the choice of a snapshot (`pagewell`), the meaning of a statement's bytes (`footprint`), and the dependency index,
//! which follows from the keys, tags and statements of the pages.

#![forbid(unsafe_code)]

mod frame;
mod journal;
mod parts;
mod record;
mod snapshot;

pub use frame::{FRAME_BYTES, FRAME_BYTES_MAX};
pub use journal::{ChangedName, Journal, JournalContents, read_journal};
pub use record::{Content, PageStatements, SavedPage, read_page, write_page};
pub use snapshot::{
    End, Head, PREFIX_BYTES, Piece, Position, Reader, SOURCES_MAX, SavedStatements, VERSION,
    WriteOutcome, Writer,
};

use std::fmt;

/// The reason why a snapshot, a page or a journal cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotError {
    /// The magic bytes or the snapshot number do not match: it is some other file.
    Foreign,
    /// The file has another version of the format.
    OtherVersion,
    /// The input ends too early.
    CutOff,
    /// A checksum is wrong, or a piece is out of position.
    Damaged,
    /// A length or a count exceeds its limit.
    TooLarge,
    /// The checksum is right, but a value is not valid.
    Invalid,
}

impl SnapshotError {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            SnapshotError::Foreign => "foreign",
            SnapshotError::OtherVersion => "other-version",
            SnapshotError::CutOff => "cut-off",
            SnapshotError::Damaged => "damaged",
            SnapshotError::TooLarge => "too-large",
            SnapshotError::Invalid => "invalid",
        }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for SnapshotError {}
