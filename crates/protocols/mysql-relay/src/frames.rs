//! Cuts a stream of bytes into packets without buffering their content.
//!
//! A payload of 16 MiB or more has several frames ("Sending More Than 16Mb"). Each piece says whether it
//! begins or ends a payload, so that a 20 MB statement passes in the pieces in which it arrived. Sequence
//! numbers within a payload must be consecutive. Not here: what the payloads mean.

use crate::RelayRefused;
use mysql_wire::packet::PIECE_MAX;

/// The length of the header of a frame in bytes.
pub const HEADER_BYTES: usize = 4;

/// Where a stream is between the frames of its packets.
#[derive(Debug, Default)]
pub struct FrameCutter {
    header: [u8; HEADER_BYTES],
    /// The number of bytes of the next header that have arrived.
    header_bytes: usize,
    /// The number of bytes of the frame that have not arrived.
    left: usize,
    /// Whether another frame of the same payload follows the present one.
    is_continued: bool,
    /// The sequence number that the next frame of the same payload must have.
    expected: Option<u8>,
    is_in_frame: bool,
}

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum FramePiece<'b> {
    /// The header of a frame.
    Header {
        /// The bytes of the header.
        bytes: [u8; HEADER_BYTES],
        /// Whether the frame is the first of its payload.
        is_first: bool,
    },
    /// Bytes of a payload; may be empty.
    Data {
        /// The bytes.
        bytes: &'b [u8],
        /// Whether the payload is complete with them.
        is_last: bool,
    },
}

impl FrameCutter {
    /// The next piece of `bytes`, which is removed from them. `None` if more bytes are needed.
    ///
    /// # Errors
    /// The frames of a payload are out of order.
    pub fn next<'b>(
        &mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<FramePiece<'b>>, RelayRefused> {
        if !self.is_in_frame {
            let (taken, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES - self.header_bytes));
            self.header[self.header_bytes..][..taken.len()].copy_from_slice(taken);
            self.header_bytes += taken.len();
            *bytes = rest;
            if self.header_bytes < HEADER_BYTES {
                return Ok(None);
            }
            return self.begin().map(Some);
        }
        if bytes.is_empty() && self.left > 0 {
            return Ok(None);
        }
        let (data, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= data.len();
        *bytes = rest;
        self.is_in_frame = self.left > 0;
        let is_last = !self.is_in_frame && !self.is_continued;
        if is_last {
            self.expected = None;
        }
        Ok(Some(FramePiece::Data { bytes: data, is_last }))
    }

    fn begin<'b>(&mut self) -> Result<FramePiece<'b>, RelayRefused> {
        let [a, b, c, sequence] = self.header;
        if self.expected.is_some_and(|expected| expected != sequence) {
            return Err(RelayRefused::OutOfSequence);
        }
        let is_first = self.expected.is_none();
        self.header_bytes = 0;
        self.left = u32::from_le_bytes([a, b, c, 0]) as usize;
        self.is_continued = self.left == PIECE_MAX;
        self.expected = Some(sequence.wrapping_add(1));
        self.is_in_frame = true;
        Ok(FramePiece::Header { bytes: self.header, is_first })
    }

    /// Whether the stream is between two packets.
    pub fn is_between_packets(&self) -> bool {
        self.header_bytes == 0 && self.expected.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_wire::packet::put_packet;

    /// The payloads of a stream that arrives in chunks.
    fn payloads(wire: &[u8], chunk: usize) -> Vec<Vec<u8>> {
        let (mut frames, mut payload, mut all) = (FrameCutter::default(), Vec::new(), Vec::new());
        for mut bytes in wire.chunks(chunk) {
            while let Some(piece) = frames.next(&mut bytes).expect("in order") {
                if let FramePiece::Data { bytes, is_last } = piece {
                    payload.extend_from_slice(bytes);
                    if is_last {
                        all.push(std::mem::take(&mut payload));
                    }
                }
            }
        }
        assert!(frames.is_between_packets());
        all
    }

    #[test]
    fn packets_come_out_however_they_are_cut() {
        let mut wire = Vec::new();
        for payload in [&b"abc"[..], b"", b"defg", b""] {
            put_packet(&mut wire, 3, payload);
        }
        for chunk in 1..=wire.len() {
            assert_eq!(payloads(&wire, chunk), [&b"abc"[..], b"", b"defg", b""]);
        }
        for length in [PIECE_MAX - 1, PIECE_MAX, PIECE_MAX + 1, 2 * PIECE_MAX] {
            let mut wire = Vec::new();
            put_packet(&mut wire, 255, &vec![7; length]);
            assert_eq!(payloads(&wire, 1 << 20), [vec![7; length]]);
        }
    }

    #[test]
    fn frames_out_of_order_are_refused() {
        let mut wire = Vec::new();
        put_packet(&mut wire, 1, &vec![0; PIECE_MAX]);
        let last = wire.len() - 1;
        wire[last] = 9;
        let (mut frames, mut bytes) = (FrameCutter::default(), &wire[..]);
        let refused = loop {
            match frames.next(&mut bytes) {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(refused) => break Some(refused),
            }
        };
        assert_eq!(refused, Some(RelayRefused::OutOfSequence));
    }
}
