//! Frames of HTTP/2 (RFC 9113 sections 4 and 6): constants, and functions to read and write them.
//!
//! Frame headers are read without validation. `reader` decides whether a frame is allowed and what it
//! does; hyper decides for the frames that it is given.

/// The length of a frame header, in bytes (section 4.1).
pub const HEAD_BYTES: usize = 9;
/// The maximum payload of a frame, in bytes: the default of SETTINGS_MAX_FRAME_SIZE, which this server
/// uses (section 4.2).
pub const PAYLOAD_BYTES_MAX: usize = 16_384;
/// The initial flow-control window of the connection and of each stream, in bytes (section 6.9.2).
pub const WINDOW_BYTES: u32 = 65_535;
/// The maximum flow-control window, in bytes (section 6.9.1).
pub const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// Frame types (section 6).
pub mod kind {
    /// Content of a stream.
    pub const DATA: u8 = 0;
    /// A header block, or its first part.
    pub const HEADERS: u8 = 1;
    /// The stream is terminated.
    pub const RST_STREAM: u8 = 3;
    /// Settings of the sender.
    pub const SETTINGS: u8 = 4;
    /// Servers only; an error if a client sends it.
    pub const PUSH_PROMISE: u8 = 5;
    /// The connection is about to be closed.
    pub const GOAWAY: u8 = 7;
    /// Increases the flow-control window.
    pub const WINDOW_UPDATE: u8 = 8;
    /// A further part of a header block.
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames (section 6).
pub mod flag {
    /// HEADERS and DATA: the last frame of the stream in this direction.
    pub const END_STREAM: u8 = 0x1;
    /// SETTINGS: acknowledges the peer's settings.
    pub const ACK: u8 = 0x1;
    /// HEADERS and CONTINUATION: the last frame of the header block.
    pub const END_HEADERS: u8 = 0x4;
    /// HEADERS and DATA: padding follows the payload.
    pub const PADDED: u8 = 0x8;
    /// HEADERS: a priority precedes the block.
    pub const PRIORITY: u8 = 0x20;
}

/// Error codes with which a connection or stream is terminated (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A frame that is not allowed in this state.
    Protocol = 1,
    /// A flow-control window above the maximum.
    FlowControl = 3,
    /// A frame on a closed stream.
    StreamClosed = 5,
    /// A frame with an invalid length.
    FrameSize = 6,
    /// The stream is no longer needed.
    Cancel = 8,
    /// A header block that cannot be decoded.
    Compression = 9,
    /// The peer causes excessive load.
    EnhanceYourCalm = 11,
}

/// The header of an HTTP/2 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The payload's length in bytes.
    pub length: usize,
    /// The frame type; see [`kind`].
    pub kind: u8,
    /// The flags; see [`flag`].
    pub flags: u8,
    /// The stream identifier; 0 for the connection.
    pub stream: u32,
}

impl FrameHead {
    /// Reads a frame header; `None` if `bytes` is too short.
    pub fn read(bytes: &[u8]) -> Option<FrameHead> {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes.first_chunk::<HEAD_BYTES>()?;
        Some(FrameHead {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        })
    }

    /// Writes the frame header. The length must fit in 24 bits.
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, s, t, u, v]);
    }

    /// Whether `flag` is set.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes a header block as a HEADERS frame and as many CONTINUATION frames as needed. `before`
/// precedes the block: a priority, if `flags` has `PRIORITY`.
pub fn write_block(stream: u32, flags: u8, before: &[u8], block: &[u8], out: &mut Vec<u8>) {
    let mut rest = block;
    let (mut kind, mut flags, mut before) = (kind::HEADERS, flags, before);
    loop {
        let (piece, behind) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX - before.len()));
        rest = behind;
        let last = if rest.is_empty() { flag::END_HEADERS } else { 0 };
        let length = before.len() + piece.len();
        FrameHead { length, kind, flags: flags | last, stream }.write(out);
        out.extend_from_slice(before);
        out.extend_from_slice(piece);
        if rest.is_empty() {
            return;
        }
        (kind, flags, before) = (kind::CONTINUATION, 0, &[]);
    }
}

/// Writes the content of a stream, and ends the stream, in as many DATA frames as needed.
pub fn write_content(stream: u32, content: &[u8], out: &mut Vec<u8>) {
    let count = content.len().div_ceil(PAYLOAD_BYTES_MAX);
    for (at, piece) in content.chunks(PAYLOAD_BYTES_MAX).enumerate() {
        let flags = if at + 1 == count { flag::END_STREAM } else { 0 };
        FrameHead { length: piece.len(), kind: kind::DATA, flags, stream }.write(out);
        out.extend_from_slice(piece);
    }
}

/// Writes a frame whose payload is one 32-bit number.
pub fn write_number(kind: u8, stream: u32, number: u32, out: &mut Vec<u8>) {
    FrameHead { length: 4, kind, flags: 0, stream }.write(out);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes GOAWAY (section 6.8). Streams above `last` have not been processed.
pub fn write_goaway(last: u32, error: ErrorCode, out: &mut Vec<u8>) {
    FrameHead { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(error as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = FrameHead { length: 0x01_02_03, kind: 9, flags: 0x25, stream: 0x7fff_fffe };
        let mut bytes = Vec::new();
        head.write(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 9, 0x25, 0x7f, 0xff, 0xff, 0xfe]);
        assert_eq!(FrameHead::read(&bytes), Some(head));
        assert_eq!(FrameHead::read(&bytes[..8]), None);
        // The reserved bit is ignored.
        bytes[5] |= 0x80;
        assert_eq!(FrameHead::read(&bytes), Some(head));
    }

    #[test]
    fn blocks_and_content_are_cut_to_the_length_of_a_frame() {
        let mut out = Vec::new();
        write_block(5, flag::END_STREAM | flag::PRIORITY, &[0; 5], &[7; 20_000], &mut out);
        write_content(5, &[8; 32_768], &mut out);
        let (mut seen, mut rest) = (Vec::new(), &out[..]);
        while let Some(head) = FrameHead::read(rest) {
            seen.push((head.kind, head.flags, head.length));
            rest = &rest[HEAD_BYTES + head.length..];
        }
        let continued = 20_000 - (16_384 - 5);
        assert_eq!(seen, [(1, 0x21, 16_384), (9, 4, continued), (0, 0, 16_384), (0, 1, 16_384)]);
        assert!(rest.is_empty());
    }
}
