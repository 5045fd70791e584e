//! HTTP/2 frames (RFC 9113 sections 4 and 6), encoded and decoded by the test clients.
//!
//! The product has its own implementation. The tests do not use it, so that a wrong constant in it is detected.

/// The bytes that a client sends first (section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame's head, in bytes (section 4.1).
pub const HEAD_BYTES: usize = 9;

/// Frame types (section 6).
pub mod kind {
    /// Content of a message.
    pub const DATA: u8 = 0;
    /// A header block, or its beginning.
    pub const HEADERS: u8 = 1;
    /// The stream is cancelled.
    pub const RST_STREAM: u8 = 3;
    /// Settings of the sender.
    pub const SETTINGS: u8 = 4;
    /// The connection is closed.
    pub const GOAWAY: u8 = 7;
    /// The receiver may send this many more bytes.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a header block.
    pub const CONTINUATION: u8 = 9;
}

/// Frame flags (section 6).
pub mod flag {
    /// On HEADERS and DATA: the last frame of the stream.
    pub const END_STREAM: u8 = 0x1;
    /// On SETTINGS: the peer's settings have been applied.
    pub const ACK: u8 = 0x1;
    /// On HEADERS and CONTINUATION: the last frame of the block.
    pub const END_HEADERS: u8 = 0x4;
}

/// Error codes (section 7).
pub mod error {
    /// A frame that is not allowed at this point.
    pub const PROTOCOL: u32 = 1;
    /// A frame whose length is not allowed.
    pub const FRAME_SIZE: u32 = 6;
    /// The peer causes too much work.
    pub const ENHANCE_YOUR_CALM: u32 = 11;
}

/// The head of a frame (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The length of the payload, in bytes.
    pub length: usize,
    /// The frame type, a constant of [`kind`].
    pub kind: u8,
    /// The frame's flags, constants of [`flag`].
    pub flags: u8,
    /// The stream; 0 for the connection itself.
    pub stream: u32,
}

impl FrameHead {
    /// Decodes the head of a frame; `None` if there are too few bytes.
    pub fn read(bytes: &[u8]) -> Option<FrameHead> {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes.first_chunk::<HEAD_BYTES>()?;
        Some(FrameHead {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        })
    }

    /// Appends the encoded head to `out`. The length must fit in 24 bits.
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, s, t, u, v]);
    }

    /// Whether the frame has this flag.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
