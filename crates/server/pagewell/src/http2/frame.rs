//! Frames of HTTP/2 (RFC 9113 sections 4 and 6): what the front reads and writes of them. Their heads are read
//! as they stand; whether a frame may be where it is, and what it does, is for `reader` to say, and for hyper
//! of all that is handed on.

/// The length of a frame's head, in bytes (section 4.1).
pub const HEAD_BYTES: usize = 9;
/// The longest payload, in bytes, that anybody has to take, and that this server does (section 4.2).
pub const PAYLOAD_BYTES_MAX: usize = 16_384;
/// What a client allows to be sent, for the connection and for each stream, where it says nothing else
/// (section 6.9.2); in bytes.
pub const WINDOW_BYTES: u32 = 65_535;
/// No window is larger (section 6.9.1).
pub const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// Kinds of frames (section 6).
pub mod kind {
    /// Content.
    pub const DATA: u8 = 0;
    /// A header block, or its beginning.
    pub const HEADERS: u8 = 1;
    /// A stream is given up.
    pub const RST_STREAM: u8 = 3;
    /// What the sender can take.
    pub const SETTINGS: u8 = 4;
    /// No client has it.
    pub const PUSH_PROMISE: u8 = 5;
    /// The connection is given up.
    pub const GOAWAY: u8 = 7;
    /// More may be sent.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a header block.
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames (section 6).
pub mod flag {
    /// Of HEADERS and DATA: the stream's last.
    pub const END_STREAM: u8 = 0x1;
    /// Of SETTINGS: the other side's have been applied.
    pub const ACK: u8 = 0x1;
    /// Of HEADERS and CONTINUATION: the block's last.
    pub const END_HEADERS: u8 = 0x4;
    /// Of HEADERS and DATA: padding stands behind.
    pub const PADDED: u8 = 0x8;
    /// Of HEADERS: a priority stands before the block.
    pub const PRIORITY: u8 = 0x20;
}

/// Why a connection is given up (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A frame that may not be where it is.
    Protocol = 1,
    /// A window larger than it may be.
    FlowControl = 3,
    /// A frame on a stream that is over.
    StreamClosed = 5,
    /// A frame of a length that it may not have.
    FrameSize = 6,
    /// The stream is not needed any more.
    Cancel = 8,
    /// A header block that cannot be read.
    Compression = 9,
    /// More than anybody needs.
    EnhanceYourCalm = 11,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Of the payload, in bytes.
    pub length: usize,
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// 0 for the connection itself.
    pub stream: u32,
}

impl FrameHead {
    /// Reads one; `None` when not all of it is there.
    pub fn read(bytes: &[u8]) -> Option<FrameHead> {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes.first_chunk::<HEAD_BYTES>()?;
        Some(FrameHead {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        })
    }

    /// Writes one; the length fits 24 bits.
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, s, t, u, v]);
    }

    /// Whether it has this flag.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes a header block in HEADERS and as many CONTINUATION frames as it needs. `before` stands before it
/// (a priority, where `flags` say so).
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

/// Writes the content of a stream, which ends with it, in as many DATA frames as it needs.
pub fn write_content(stream: u32, content: &[u8], out: &mut Vec<u8>) {
    let count = content.len().div_ceil(PAYLOAD_BYTES_MAX);
    for (at, piece) in content.chunks(PAYLOAD_BYTES_MAX).enumerate() {
        let flags = if at + 1 == count { flag::END_STREAM } else { 0 };
        FrameHead { length: piece.len(), kind: kind::DATA, flags, stream }.write(out);
        out.extend_from_slice(piece);
    }
}

/// Writes a frame whose payload is one number.
pub fn write_number(kind: u8, stream: u32, number: u32, out: &mut Vec<u8>) {
    FrameHead { length: 4, kind, flags: 0, stream }.write(out);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes that the connection is given up (section 6.8): streams behind `last` were not looked at.
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
        // The reserved bit does not count.
        bytes[5] |= 0x80;
        assert_eq!(FrameHead::read(&bytes), Some(head));
    }

    #[test]
    fn blocks_and_content_are_cut_to_what_a_frame_holds() {
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
