//! Frames: a type byte, four bytes of length, the payload.
//!
//! [`FrameReader`] assembles frames from the pieces that a socket delivers. Of a payload over the limit, only
//! the first bytes are kept, which include the table of a row; the rest is counted and discarded. Memory
//! therefore stays within the limit, whatever the other side sends. Source: PostgreSQL's manual, "Message
//! Flow". Not here: the meaning of a payload.

use crate::Refusal;
use bytes::{Buf, Bytes, BytesMut};

const HEADER_BYTES: usize = 5;
/// The number of bytes that are kept of a payload over the limit.
const HEAD_BYTES: usize = 256;

/// A frame of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The byte of the message's type.
    pub tag: u8,
    /// The payload, or the first bytes of one that was too long.
    pub payload: Bytes,
    /// The length of the payload as sent, in bytes.
    pub wire_bytes: u64,
}

impl Frame {
    /// Whether the payload is complete.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.wire_bytes == self.payload.len() as u64
    }

    /// The payload, if it is complete.
    ///
    /// # Errors
    /// `TooLong` if only its first bytes were kept.
    pub fn whole(&self) -> Result<&[u8], Refusal> {
        if self.is_whole() { Ok(&self.payload) } else { Err(Refusal::TooLong) }
    }
}

/// Assembles frames from received bytes.
#[derive(Debug)]
pub struct FrameReader {
    payload_bytes: usize,
    long: Option<Long>,
}

/// A payload over the limit, whose remaining bytes are skipped.
#[derive(Debug)]
struct Long {
    tag: u8,
    head: BytesMut,
    wire_bytes: u64,
    left: u64,
}

impl FrameReader {
    /// A reader that holds payloads of up to `payload_bytes` bytes.
    #[must_use]
    pub fn new(payload_bytes: usize) -> FrameReader {
        FrameReader { payload_bytes, long: None }
    }

    /// Consumes bytes from `input`, and returns a frame as soon as one is complete.
    ///
    /// # Errors
    /// `BadLength`; the connection cannot be used any more.
    pub fn read(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, Refusal> {
        if self.long.is_none() {
            let Some(header) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
            let [tag, a, b, c, d] = *header;
            let length = i32::from_be_bytes([a, b, c, d]);
            // The length includes its own four bytes.
            let wire_bytes = length.checked_sub(4).and_then(|length| usize::try_from(length).ok());
            let wire_bytes = wire_bytes.ok_or(Refusal::BadLength)?;
            if wire_bytes <= self.payload_bytes {
                return Ok(whole(input, tag, wire_bytes));
            }
            input.advance(HEADER_BYTES);
            let (head, wire_bytes) = (BytesMut::new(), wire_bytes as u64);
            self.long = Some(Long { tag, head, wire_bytes, left: wire_bytes });
        }
        Ok(self.pass_over(input))
    }

    fn pass_over(&mut self, input: &mut BytesMut) -> Option<Frame> {
        let mut long = self.long.take()?;
        let count = input.len().min(usize::try_from(long.left).unwrap_or(usize::MAX));
        let kept = count.min(HEAD_BYTES - long.head.len());
        long.head.extend_from_slice(&input[..kept]);
        input.advance(count);
        long.left -= count as u64;
        if long.left > 0 {
            self.long = Some(long);
            return None;
        }
        let Long { tag, head, wire_bytes, .. } = long;
        Some(Frame { tag, payload: head.freeze(), wire_bytes })
    }
}

fn whole(input: &mut BytesMut, tag: u8, wire_bytes: usize) -> Option<Frame> {
    if input.len() < HEADER_BYTES + wire_bytes {
        return None;
    }
    input.advance(HEADER_BYTES);
    let payload = input.split_to(wire_bytes).freeze();
    Some(Frame { tag, payload, wire_bytes: wire_bytes as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(tag: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![tag];
        out.extend_from_slice(&(payload.len() as u32 + 4).to_be_bytes());
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn frames_come_out_however_they_are_cut() {
        let long: Vec<u8> = (0..1000).map(|at| at as u8).collect();
        let wire = [framed(b'd', b"abc"), framed(b'x', &long), framed(b'Z', b"")].concat();
        for pieces in 1..=wire.len() {
            let (mut reader, mut input) = (FrameReader::new(100), BytesMut::new());
            let mut frames = Vec::new();
            for piece in wire.chunks(pieces) {
                input.extend_from_slice(piece);
                while let Some(frame) = reader.read(&mut input).expect("frames") {
                    frames.push(frame);
                }
                assert!(input.len() <= 100 + HEADER_BYTES + pieces);
            }
            let [first, second, third] = frames.as_slice() else { panic!("{frames:?}") };
            assert_eq!((first.tag, first.whole()), (b'd', Ok(&b"abc"[..])));
            assert_eq!((&second.payload[..], second.wire_bytes), (&long[..HEAD_BYTES], 1000));
            assert_eq!(second.whole(), Err(Refusal::TooLong));
            assert_eq!((third.tag, third.whole()), (b'Z', Ok(&b""[..])));
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        for length in [0_i32, 3, -1, i32::MIN] {
            let mut input = BytesMut::from(&[&b"d"[..], &length.to_be_bytes()].concat()[..]);
            assert_eq!(FrameReader::new(100).read(&mut input), Err(Refusal::BadLength));
        }
    }
}
