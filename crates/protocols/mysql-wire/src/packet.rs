//! Packets: three bytes of length, one of sequence number, the payload. Payloads of 16 MiB and more are sent in
//! several pieces ("MySQL Packets", "Sending More Than 16Mb").
//!
//! [`PacketReader`] assembles packets from the pieces that a socket delivers. Of a payload over the limit, only
//! the first bytes are kept ([`Packet::head_of`]), which include the header of an event and its table; the rest
//! is counted and discarded. Memory therefore stays within the limit, whatever the other side sends.

use crate::Refusal;
use bytes::{Buf, Bytes, BytesMut};

/// The maximum length of one piece of a payload, in bytes. A piece of this length is followed by another.
pub const PIECE_MAX: usize = 0xff_ffff;
const HEADER_LEN: usize = 4;
/// The number of bytes that are kept of a payload over the limit.
const HEAD_LEN: usize = 256;

/// A packet, assembled from its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The sequence number of the last piece.
    pub sequence: u8,
    /// The payload, or the first bytes of one that was too long.
    pub payload: Bytes,
    /// The length of the payload as sent, in bytes.
    pub wire_bytes: u64,
}

impl Packet {
    /// The payload, if it is complete.
    ///
    /// # Errors
    /// `TooLong` if only its first bytes were kept.
    pub fn whole(&self) -> Result<&Bytes, Refusal> {
        if self.is_whole() { Ok(&self.payload) } else { Err(Refusal::TooLong) }
    }

    /// Whether the payload is complete.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.wire_bytes == self.payload.len() as u64
    }

    /// A packet whose payload begins with `payload` and is `wire_bytes` long, for tests and recordings.
    #[must_use]
    pub fn head_of(payload: Bytes, wire_bytes: u64) -> Packet {
        Packet { sequence: 0, payload, wire_bytes }
    }
}

/// Assembles packets from received bytes.
#[derive(Debug)]
pub struct PacketReader {
    packet_bytes: usize,
    payload: BytesMut,
    wire_bytes: u64,
    piece: Option<Piece>,
    expected: Option<u8>,
}

#[derive(Debug)]
struct Piece {
    left: usize,
    is_last: bool,
    sequence: u8,
}

impl PacketReader {
    /// A reader that holds payloads of up to `packet_bytes` bytes.
    #[must_use]
    pub fn new(packet_bytes: usize) -> PacketReader {
        let payload = BytesMut::new();
        PacketReader { packet_bytes, payload, wire_bytes: 0, piece: None, expected: None }
    }

    /// Consumes bytes from `input`, and returns a packet as soon as one is complete. The sequence numbers
    /// within one payload must be consecutive.
    ///
    /// # Errors
    /// `OutOfSequence`; the connection cannot be used any more.
    pub fn read(&mut self, input: &mut BytesMut) -> Result<Option<Packet>, Refusal> {
        loop {
            let Some(piece) = &mut self.piece else {
                if !self.begin_piece(input)? {
                    return Ok(None);
                }
                continue;
            };
            let taken = input.split_to(piece.left.min(input.len()));
            piece.left -= taken.len();
            let (complete, is_last, sequence) = (piece.left == 0, piece.is_last, piece.sequence);
            self.take(taken);
            match (complete, is_last) {
                (false, _) => return Ok(None),
                (true, false) => self.piece = None,
                (true, true) => return Ok(Some(self.finish(sequence))),
            }
        }
    }

    fn begin_piece(&mut self, input: &mut BytesMut) -> Result<bool, Refusal> {
        let Some(&[a, b, c, sequence]) = input.first_chunk::<HEADER_LEN>() else {
            return Ok(false);
        };
        if self.expected.is_some_and(|expected| expected != sequence) {
            return Err(Refusal::OutOfSequence);
        }
        input.advance(HEADER_LEN);
        let left = u32::from_le_bytes([a, b, c, 0]) as usize;
        self.expected = Some(sequence.wrapping_add(1));
        self.piece = Some(Piece { left, is_last: left < PIECE_MAX, sequence });
        Ok(true)
    }

    fn take(&mut self, piece: BytesMut) {
        self.wire_bytes += piece.len() as u64;
        if self.wire_bytes > self.packet_bytes as u64 {
            let mut head = std::mem::take(&mut self.payload);
            head.truncate(HEAD_LEN);
            let room = HEAD_LEN - head.len();
            head.extend_from_slice(&piece[..room.min(piece.len())]);
            // A copy, so that the long buffer is freed.
            self.payload = BytesMut::from(&head[..]);
        } else if self.payload.is_empty() {
            self.payload = piece;
        } else {
            self.payload.extend_from_slice(&piece);
        }
    }

    fn finish(&mut self, sequence: u8) -> Packet {
        self.piece = None;
        self.expected = None;
        let payload = std::mem::take(&mut self.payload).freeze();
        Packet { sequence, payload, wire_bytes: std::mem::take(&mut self.wire_bytes) }
    }
}

/// Appends `payload` as packets that start with sequence number `sequence`, and returns the next number.
pub fn put_packet(out: &mut Vec<u8>, mut sequence: u8, payload: &[u8]) -> u8 {
    let mut rest = payload;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(PIECE_MAX));
        out.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend_from_slice(piece);
        sequence = sequence.wrapping_add(1);
        rest = after;
        if piece.len() < PIECE_MAX {
            return sequence;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in(pieces: usize, wire: &[u8], bound: usize) -> Vec<Packet> {
        let (mut reader, mut input, mut packets) =
            (PacketReader::new(bound), BytesMut::new(), Vec::new());
        for piece in wire.chunks(pieces) {
            input.extend_from_slice(piece);
            while let Some(packet) = reader.read(&mut input).expect("in sequence") {
                packets.push(packet);
            }
        }
        packets
    }

    #[test]
    fn packets_come_out_however_they_are_cut() {
        let mut wire = Vec::new();
        for payload in [&b"abc"[..], b"", b"defg"] {
            put_packet(&mut wire, 7, payload);
        }
        for pieces in 1..=wire.len() {
            let packets = read_in(pieces, &wire, 100);
            let payloads: Vec<&[u8]> = packets.iter().map(|packet| &packet.payload[..]).collect();
            assert_eq!(payloads, [&b"abc"[..], b"", b"defg"]);
            assert!(packets.iter().all(|packet| packet.sequence == 7 && packet.is_whole()));
        }
    }

    #[test]
    fn long_payloads_are_put_together_and_overlong_ones_cut() {
        for len in [PIECE_MAX - 1, PIECE_MAX, PIECE_MAX + 1, 2 * PIECE_MAX] {
            let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut wire = Vec::new();
            put_packet(&mut wire, 255, &payload);
            assert_eq!(read_in(1 << 20, &wire, len)[0].payload, payload);
            let cut = &read_in(1 << 20, &wire, len - 1)[0];
            assert_eq!((&cut.payload[..], cut.wire_bytes), (&payload[..HEAD_LEN], len as u64));
            assert_eq!(cut.whole(), Err(Refusal::TooLong));
        }
    }

    #[test]
    fn pieces_out_of_sequence_are_refused() {
        let mut wire = Vec::new();
        put_packet(&mut wire, 1, &vec![0; PIECE_MAX]);
        let last = wire.len() - 1;
        wire[last] = 9;
        let mut input = BytesMut::from(&wire[..]);
        let refused = PacketReader::new(1 << 30).read(&mut input);
        assert_eq!(refused, Err(Refusal::OutOfSequence));
    }
}
