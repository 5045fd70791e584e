//! The journal: changes from responses, purges and the control interface, which no database stream repeats
//! after a restart. A change is appended after it was applied and before it is acknowledged.
//!
//! The journal also records whether a request that may carry a change was in flight. If a journal ends in
//! that state, its reader cannot know what that request changed.
//!
//! A journal that cannot be read to its last byte is refused: the unreadable rest may contain an
//! acknowledged change.

use crate::SnapshotError;
use crate::frame::{self, Before, FRAME_BYTES, Place};
use crate::parts::{Put, Rest};

const MAGIC: &[u8; 8] = b"PwChange";
const VERSION: u32 = 2;
const PREFIX_BYTES: usize = 8 + 4 + 8 + 8;
/// The kind of a piece that holds a change.
const CHANGE: u8 = 4;
/// The kind of a piece that says whether a request that may carry a change is in flight.
const IN_FLIGHT: u8 = 5;
/// The maximum number of names in one change. A change with more names is written as a change of
/// everything.
const NAMES_MAX: usize = 100_000;

/// The name of something that changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedName {
    /// A tag.
    Tag(Vec<u8>),
    /// A path with its query.
    Url(Vec<u8>),
    /// A path with any query, or with none.
    Path(Vec<u8>),
    /// All paths below this prefix.
    Prefix(Vec<u8>),
    /// Every page. Also written for a change that has no name, such as one by predicate.
    Everything,
}

impl ChangedName {
    fn parts(&self) -> (u8, &[u8]) {
        match self {
            ChangedName::Tag(name) => (1, name),
            ChangedName::Url(name) => (2, name),
            ChangedName::Path(name) => (3, name),
            ChangedName::Prefix(name) => (4, name),
            ChangedName::Everything => (5, b""),
        }
    }

    fn of(kind: u8, name: &[u8]) -> Result<ChangedName, SnapshotError> {
        let name = name.to_vec();
        Ok(match kind {
            1 => ChangedName::Tag(name),
            2 => ChangedName::Url(name),
            3 => ChangedName::Path(name),
            4 => ChangedName::Prefix(name),
            5 => ChangedName::Everything,
            _ => return Err(SnapshotError::Invalid),
        })
    }
}

/// A journal that is being written. The caller appends the returned bytes to the file.
#[derive(Debug)]
pub struct Journal {
    place: Place,
}

impl Journal {
    /// Begins a journal for the snapshot with the number `generation`. `file` is a number that identifies
    /// this file. Returns the journal and the bytes with which the file begins.
    pub fn begin(generation: u64, file: u64) -> (Journal, Vec<u8>) {
        let mut out = MAGIC.to_vec();
        out.u32(VERSION);
        out.u64(generation);
        out.u64(file);
        (Journal { place: Place { file, number: 0 } }, out)
    }

    /// The bytes to append for one change.
    pub fn change(&mut self, names: &[ChangedName]) -> Vec<u8> {
        let mut out = Vec::new();
        let at = frame::begin(&mut out);
        let names = if names.len() > NAMES_MAX { &[ChangedName::Everything][..] } else { names };
        for name in names {
            let (kind, name) = name.parts();
            out.u8(kind);
            out.bytes(name);
        }
        self.end(out, at, CHANGE)
    }

    /// The bytes to append when the first request that may carry a change begins, or when the last one has
    /// ended.
    pub fn set_in_flight(&mut self, is: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let at = frame::begin(&mut out);
        out.u8(is.into());
        self.end(out, at, IN_FLIGHT)
    }

    fn end(&mut self, mut out: Vec<u8>, at: usize, kind: u8) -> Vec<u8> {
        frame::end(&mut out, at, kind, self.place);
        self.place.number += 1;
        out
    }
}

/// The contents of a journal.
#[derive(Debug)]
pub struct JournalContents {
    /// The names that have changed, sorted and without duplicates.
    pub names: Vec<ChangedName>,
    /// Whether a request that may carry a change was in flight at the end of the journal.
    pub in_flight: bool,
    /// The journal in the state in which it continues after its last piece.
    pub journal: Journal,
}

/// Reads a whole journal of the snapshot with the number `generation`.
///
/// # Errors
/// Any difference from what was written, including a truncated end.
pub fn read_journal(bytes: &[u8], generation: u64) -> Result<JournalContents, SnapshotError> {
    let mut rest = Rest(bytes);
    if bytes.len() < PREFIX_BYTES {
        return Err(SnapshotError::CutOff);
    }
    if rest.take(8)? != MAGIC {
        return Err(SnapshotError::Foreign);
    }
    if rest.u32()? != VERSION {
        return Err(SnapshotError::OtherVersion);
    }
    if rest.u64()? != generation {
        return Err(SnapshotError::Foreign);
    }
    let mut place = Place { file: rest.u64()?, number: 0 };
    let (mut names, mut in_flight) = (Vec::new(), false);
    while !rest.0.is_empty() {
        let before = rest.take(FRAME_BYTES)?;
        let before = Before::read(before.try_into().map_err(|_| SnapshotError::CutOff)?)?;
        let piece = rest.take(before.length)?;
        before.check(piece, place)?;
        place.number += 1;
        let mut piece = Rest(piece);
        match before.kind {
            CHANGE => {
                while !piece.0.is_empty() {
                    let kind = piece.u8()?;
                    names.push(ChangedName::of(kind, piece.bytes()?)?);
                }
            }
            IN_FLIGHT if piece.0.len() == 1 => in_flight = piece.u8()? != 0,
            _ => return Err(SnapshotError::Damaged),
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(JournalContents { names, in_flight, journal: Journal { place } })
}
