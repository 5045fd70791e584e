//! Clients for HTTP/2 with raw frames, for input that a client library would not send, with full control over
//! the timing.
//!
//! The header blocks are encoded by hand: indexed fields and literals without Huffman coding (RFC 7541).

use super::BOUND;
use crate::http2::flag::{END_HEADERS, END_STREAM};
use crate::http2::kind::{GOAWAY, HEADERS, SETTINGS};
use crate::http2::{FrameHead, HEAD_BYTES, PREFACE};
use harness::{Address, Pagewell};
use std::io::{Read, Write};
use std::net::TcpStream;

/// A frame: its type, flags, stream and payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

/// An HTTP/2 connection of a client, frame by frame.
pub struct Frames {
    /// The TCP connection to the server.
    pub stream: TcpStream,
}

impl Frames {
    /// A connection on which nothing has been sent.
    pub fn connect(pagewell: &Pagewell) -> Frames {
        let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
        Frames::over(TcpStream::connect(address).expect("it accepts connections"))
    }

    /// A client on an open connection.
    pub fn over(stream: TcpStream) -> Frames {
        stream.set_read_timeout(Some(BOUND)).expect("can be set");
        stream.set_nodelay(true).expect("can be set");
        Frames { stream }
    }

    /// Connects, and sends the preface and these settings (RFC 9113 section 3.4).
    pub fn begin(pagewell: &Pagewell, settings: &[(u16, u32)]) -> Frames {
        Frames::connect(pagewell).settings(settings)
    }

    /// Sends the preface and these settings.
    pub fn settings(self, settings: &[(u16, u32)]) -> Frames {
        let mut frames = self;
        frames.stream.write_all(PREFACE).expect("sent");
        let all = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let payload: Vec<u8> = all.collect();
        assert!(frames.send(SETTINGS, 0, 0, &payload));
        frames
    }

    /// Sends a frame. Returns false if the server has closed the connection.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let mut frame = Vec::new();
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut frame);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).is_ok()
    }

    /// Sends a GET request for a path.
    pub fn get(&mut self, stream: u32, path: &str) -> bool {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, &block(path))
    }

    /// Sends GET requests for these streams and paths in one piece, so that none of them comes alone.
    pub fn get_all(&mut self, requests: &[(u32, &str)]) -> bool {
        let mut all = Vec::new();
        for (stream, path) in requests {
            let (block, flags) = (block(path), END_STREAM | END_HEADERS);
            FrameHead { length: block.len(), kind: HEADERS, flags, stream: *stream }
                .write(&mut all);
            all.extend_from_slice(&block);
        }
        self.stream.write_all(&all).is_ok()
    }

    /// The next frame; `None` if the connection has ended.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let mut head = [0; HEAD_BYTES];
        self.stream.read_exact(&mut head).ok()?;
        let FrameHead { length, kind, flags, stream } = FrameHead::read(&head)?;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).ok()?;
        Some((kind, flags, stream, payload))
    }

    /// The next frame of this type; other frames are skipped.
    pub fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next_frame()?;
            if frame.0 == kind {
                return Some(frame);
            }
        }
    }

    /// The error code of the GOAWAY frame that closes the connection.
    pub fn given_up(&mut self) -> Option<u32> {
        let (_, _, _, payload) = self.next_of(GOAWAY)?;
        payload.get(4..8)?.try_into().ok().map(u32::from_be_bytes)
    }
}

/// The header block of `GET path`.
pub fn block(path: &str) -> Vec<u8> {
    block_of(0x82, path, &[])
}

/// The header block for a method with this static-table index; `more` contains further encoded fields.
pub fn block_of(method: u8, path: &str, more: &[u8]) -> Vec<u8> {
    let literal = |index: u8, text: &str| {
        [&[index, u8::try_from(text.len()).expect("short")], text.as_bytes()].concat()
    };
    [&[method, 0x86][..], &literal(0x04, path), &literal(0x01, "a.test"), more].concat()
}
