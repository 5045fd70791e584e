//! Clients of HTTP/2 as raw frames: what a client library would not do, and exactly what is sent when.
//!
//! The header blocks are written by hand: indexed fields and literals without Huffman (RFC 7541).

use super::BOUND;
use crate::http2::flag::{END_HEADERS, END_STREAM};
use crate::http2::kind::{GOAWAY, HEADERS, SETTINGS};
use crate::http2::{FrameHead, HEAD_BYTES, PREFACE};
use harness::{Address, Pagewell};
use std::io::{Read, Write};
use std::net::TcpStream;

/// A frame: its kind, flags, stream, payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

/// A client's connection of HTTP/2, frame by frame.
pub struct Frames {
    /// The socket.
    pub stream: TcpStream,
}

impl Frames {
    /// A connection on which nothing was said.
    pub fn connect(pagewell: &Pagewell) -> Frames {
        let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
        Frames::over(TcpStream::connect(address).expect("it accepts connections"))
    }

    /// The same over a socket that is connected already.
    pub fn over(stream: TcpStream) -> Frames {
        stream.set_read_timeout(Some(BOUND)).expect("can be set");
        stream.set_nodelay(true).expect("can be set");
        Frames { stream }
    }

    /// Begins with these settings (RFC 9113 section 3.4).
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

    /// Sends a frame; whether the other side is still there.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let mut frame = Vec::new();
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut frame);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).is_ok()
    }

    /// Asks for a path.
    pub fn get(&mut self, stream: u32, path: &str) -> bool {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, &block(path))
    }

    /// The next frame; none when the connection has ended.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let mut head = [0; HEAD_BYTES];
        self.stream.read_exact(&mut head).ok()?;
        let FrameHead { length, kind, flags, stream } = FrameHead::read(&head)?;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).ok()?;
        Some((kind, flags, stream, payload))
    }

    /// The next frame of a kind; others are passed over.
    pub fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next_frame()?;
            if frame.0 == kind {
                return Some(frame);
            }
        }
    }

    /// The error with which the connection is given up.
    pub fn given_up(&mut self) -> Option<u32> {
        let (_, _, _, payload) = self.next_of(GOAWAY)?;
        payload.get(4..8)?.try_into().ok().map(u32::from_be_bytes)
    }
}

/// A header block for `GET path`.
pub fn block(path: &str) -> Vec<u8> {
    block_of(0x82, path, &[])
}

/// The same for a method of the static table, with more fields as they are encoded.
pub fn block_of(method: u8, path: &str, more: &[u8]) -> Vec<u8> {
    let literal = |index: u8, text: &str| {
        [&[index, u8::try_from(text.len()).expect("short")], text.as_bytes()].concat()
    };
    [&[method, 0x86][..], &literal(0x04, path), &literal(0x01, "a.test"), more].concat()
}
