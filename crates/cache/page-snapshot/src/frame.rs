//! A piece of a file: what kind it is of, its length, its checksum, its bytes.
//!
//! The checksum (XXH3, 64 bits) is of kind, length and bytes, and is begun with a number that is the file's
//! own and the piece's place in it. So a piece that was moved, doubled, left out or taken from another file
//! does not fit where it stands. It is against accidents; whoever may write the file may write anything.

use crate::Unreadable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before those of the piece itself: kind, length, checksum.
pub const FRAME_BYTES: usize = 1 + 4 + 8;
/// The longest piece.
pub const FRAME_BYTES_MAX: usize = 128 << 20;

/// Begins a piece in `out`: room for what stands before it. Returns where it begins.
pub(crate) fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.resize(at + FRAME_BYTES, 0);
    at
}

/// Ends the piece that began at `at`: fills in what stands before it.
pub(crate) fn end(out: &mut [u8], at: usize, kind: u8, place: Place) {
    let length = u32::try_from(out.len() - at - FRAME_BYTES).unwrap_or(u32::MAX);
    let (before, piece) = out[at..].split_at_mut(FRAME_BYTES);
    before[0] = kind;
    before[1..5].copy_from_slice(&length.to_le_bytes());
    before[5..].copy_from_slice(&place.sum(kind, length, piece).to_le_bytes());
}

/// What stands before a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) kind: u8,
    pub(crate) length: usize,
    sum: u64,
}

impl Before {
    pub(crate) fn read(bytes: &[u8; FRAME_BYTES]) -> Result<Before, Unreadable> {
        let [kind, a, b, c, d, sum @ ..] = *bytes;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(Unreadable::Damaged);
        }
        Ok(Before { kind, length, sum: u64::from_le_bytes(sum) })
    }

    /// Whether this is the piece, and stands here.
    pub(crate) fn check(&self, piece: &[u8], place: Place) -> Result<(), Unreadable> {
        let length = u32::try_from(piece.len()).map_err(|_| Unreadable::Damaged)?;
        let is_same = piece.len() == self.length && place.sum(self.kind, length, piece) == self.sum;
        if is_same { Ok(()) } else { Err(Unreadable::Damaged) }
    }
}

/// Where a piece stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file's own number.
    pub(crate) file: u64,
    /// How many pieces come before.
    pub(crate) number: u64,
}

impl Place {
    fn sum(self, kind: u8, length: u32, piece: &[u8]) -> u64 {
        let number = self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let seed = self.file ^ number ^ (u64::from(kind) << 56) ^ (u64::from(length) << 24);
        xxh3_64_with_seed(piece, seed)
    }
}
