//! The journal: changes that were told by word of mouth (in responses, by purges, through the control
//! interface), which no database's stream will tell again. Each is appended once it has been applied and
//! before it is acknowledged. And whether something is in hand that may tell of a change once it has ended: what
//! that would have been is not known to whoever reads a journal that ends so.
//!
//! A journal that cannot be read to its last byte is refused: what is missing may be a change that somebody
//! was told is done.

use crate::Unreadable;
use crate::frame::{self, Before, FRAME_BYTES, Place};
use crate::parts::{Put, Rest};

const MAGIC: &[u8; 8] = b"PwChange";
const VERSION: u32 = 2;
const PREFIX_BYTES: usize = 8 + 4 + 8 + 8;
/// A change.
const CHANGE: u8 = 4;
/// Whether something is in hand.
const IN_HAND: u8 = 5;
/// The most names of one change; one with more is a change of everything.
const NAMES_MAX: usize = 100_000;

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A tag.
    Tag(Vec<u8>),
    /// A path and query.
    Url(Vec<u8>),
    /// A path with any query.
    Path(Vec<u8>),
    /// What lies below a path.
    Prefix(Vec<u8>),
    /// Every page, or what has no name.
    Everything,
}

impl Name {
    fn parts(&self) -> (u8, &[u8]) {
        match self {
            Name::Tag(name) => (1, name),
            Name::Url(name) => (2, name),
            Name::Path(name) => (3, name),
            Name::Prefix(name) => (4, name),
            Name::Everything => (5, b""),
        }
    }

    fn of(kind: u8, name: &[u8]) -> Result<Name, Unreadable> {
        let name = name.to_vec();
        Ok(match kind {
            1 => Name::Tag(name),
            2 => Name::Url(name),
            3 => Name::Path(name),
            4 => Name::Prefix(name),
            5 => Name::Everything,
            _ => return Err(Unreadable::Invalid),
        })
    }
}

/// A journal that is written to.
#[derive(Debug)]
pub struct Journal {
    place: Place,
}

impl Journal {
    /// A new one, of the snapshot with this number. `file` tells it from every other; the bytes are what it
    /// begins with.
    pub fn begin(generation: u64, file: u64) -> (Journal, Vec<u8>) {
        let mut out = MAGIC.to_vec();
        out.u32(VERSION);
        out.u64(generation);
        out.u64(file);
        (Journal { place: Place { file, number: 0 } }, out)
    }

    /// The bytes to be appended for one change.
    pub fn change(&mut self, names: &[Name]) -> Vec<u8> {
        let mut out = Vec::new();
        let at = frame::begin(&mut out);
        let names = if names.len() > NAMES_MAX { &[Name::Everything][..] } else { names };
        for name in names {
            let (kind, name) = name.parts();
            out.u8(kind);
            out.bytes(name);
        }
        self.end(out, at, CHANGE)
    }

    /// The bytes to be appended when something is taken in hand, or nothing is any more.
    pub fn in_hand(&mut self, is: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let at = frame::begin(&mut out);
        out.u8(is.into());
        self.end(out, at, IN_HAND)
    }

    fn end(&mut self, mut out: Vec<u8>, at: usize, kind: u8) -> Vec<u8> {
        frame::end(&mut out, at, kind, self.place);
        self.place.number += 1;
        out
    }
}

/// What is in a journal.
#[derive(Debug)]
pub struct Left {
    /// The names that have changed, each once.
    pub names: Vec<Name>,
    /// Whether something was in hand when it ends.
    pub in_hand: bool,
    /// Where it goes on.
    pub journal: Journal,
}

/// Reads a whole journal of the snapshot with this number.
///
/// # Errors
/// Anything in it that is not as it was written, its end included.
pub fn read_journal(bytes: &[u8], generation: u64) -> Result<Left, Unreadable> {
    let mut rest = Rest(bytes);
    if bytes.len() < PREFIX_BYTES {
        return Err(Unreadable::CutOff);
    }
    if rest.take(8)? != MAGIC {
        return Err(Unreadable::Foreign);
    }
    if rest.u32()? != VERSION {
        return Err(Unreadable::OtherVersion);
    }
    if rest.u64()? != generation {
        return Err(Unreadable::Foreign);
    }
    let mut place = Place { file: rest.u64()?, number: 0 };
    let (mut names, mut in_hand) = (Vec::new(), false);
    while !rest.0.is_empty() {
        let before = rest.take(FRAME_BYTES)?;
        let before = Before::read(before.try_into().map_err(|_| Unreadable::CutOff)?)?;
        let piece = rest.take(before.length)?;
        before.check(piece, place)?;
        place.number += 1;
        let mut piece = Rest(piece);
        match before.kind {
            CHANGE => {
                while !piece.0.is_empty() {
                    let kind = piece.u8()?;
                    names.push(Name::of(kind, piece.bytes()?)?);
                }
            }
            IN_HAND if piece.0.len() == 1 => in_hand = piece.u8()? != 0,
            _ => return Err(Unreadable::Damaged),
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(Left { names, in_hand, journal: Journal { place } })
}
