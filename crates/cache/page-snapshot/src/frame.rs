//! The frame around each piece of a file: kind, length, checksum, then the bytes of the piece.
//!
//! The checksum (XXH3, 64 bits) covers kind, length and bytes. It is seeded with the file's own number and
//! the position of the piece in the file. A piece that was moved, duplicated, left out or taken from
//! another file therefore fails the check. The checksum detects accidents; it does not protect against
//! somebody who can write the file.

use crate::SnapshotError;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The bytes of the frame header before a piece: kind, length, checksum.
pub const FRAME_BYTES: usize = 1 + 4 + 8;
/// The maximum length of a piece, in bytes.
pub const FRAME_BYTES_MAX: usize = 128 << 20;

/// Begins a piece in `out` by reserving room for its frame header. Returns the offset at which it begins.
pub(crate) fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.resize(at + FRAME_BYTES, 0);
    at
}

/// Ends the piece that begins at the offset `at` by filling in its frame header.
pub(crate) fn end(out: &mut [u8], at: usize, kind: u8, place: Place) {
    let length = u32::try_from(out.len() - at - FRAME_BYTES).unwrap_or(u32::MAX);
    let (before, piece) = out[at..].split_at_mut(FRAME_BYTES);
    before[0] = kind;
    before[1..5].copy_from_slice(&length.to_le_bytes());
    before[5..].copy_from_slice(&place.sum(kind, length, piece).to_le_bytes());
}

/// The frame header of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) kind: u8,
    pub(crate) length: usize,
    sum: u64,
}

impl Before {
    pub(crate) fn read(bytes: &[u8; FRAME_BYTES]) -> Result<Before, SnapshotError> {
        let [kind, a, b, c, d, sum @ ..] = *bytes;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(SnapshotError::Damaged);
        }
        Ok(Before { kind, length, sum: u64::from_le_bytes(sum) })
    }

    /// Checks that `piece` has the length and the checksum of this header for the position `place`.
    ///
    /// # Errors
    /// [`SnapshotError::Damaged`] if it does not.
    pub(crate) fn check(&self, piece: &[u8], place: Place) -> Result<(), SnapshotError> {
        let length = u32::try_from(piece.len()).map_err(|_| SnapshotError::Damaged)?;
        let is_same = piece.len() == self.length && place.sum(self.kind, length, piece) == self.sum;
        if is_same { Ok(()) } else { Err(SnapshotError::Damaged) }
    }
}

/// The position of a piece: which file, and which piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A number that identifies the file.
    pub(crate) file: u64,
    /// The number of pieces before this one.
    pub(crate) number: u64,
}

impl Place {
    fn sum(self, kind: u8, length: u32, piece: &[u8]) -> u64 {
        let number = self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let seed = self.file ^ number ^ (u64::from(kind) << 56) ^ (u64::from(length) << 24);
        xxh3_64_with_seed(piece, seed)
    }
}
